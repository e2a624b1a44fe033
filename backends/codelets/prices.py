"""The compute cycles of one cell of any structured operator, for many sizes of cells at once.

The planner and the price of a program both use these functions, so each codelet has one price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialects.abele import Plan
from ...dialects.structured import Body, Structure
from ...ir.geometry.grid import Cut
from .. import cost
from ..contractions.contraction import Contraction
from ..contractions.methods import METHODS, contraction_cycles
from ..target import Target
from .scalar import is_floating

Integers = NDArray[np.int64]
FloatCycles = NDArray[np.float64]


@dataclass(frozen=True)
class Roles:
    """The dimensions of a contraction by the role that they have in its prices.

    field: in the first operand and the result. out_channels: in the second operand and the result.
    groups: in both operands and the result. in_channels: merged, and in both operands. kernel:
    merged, and sliding over an axis of the first operand.
    """

    field: tuple[int, ...]
    in_channels: tuple[int, ...]
    out_channels: tuple[int, ...]
    kernel: tuple[int, ...]
    groups: tuple[int, ...]


@lru_cache(maxsize=1024)
def roles(structure: Structure) -> Roles | None:
    """The roles of the dimensions of a sum of products of two tensors; None for other operators."""
    space, body = structure.space, structure.body
    if body.function != "mul" or body.combiner != "sum":
        return None
    first, second = (access.dims() for access in space.operands[: body.own_arity])
    merged = space.of_kind("reduction", "whole")
    kept = space.of_kind("parallel")
    if not any(d in first and d in second for d in merged):
        return None
    field = tuple(d for d in kept if d not in second)
    slides = {
        d
        for axis in space.operands[0].axes
        if any(e in field for e, _ in axis.terms)
        for d, _ in axis.terms
        if d in merged
    }
    return Roles(
        field=field,
        in_channels=tuple(d for d in merged if d not in slides),
        out_channels=tuple(d for d in kept if d in second and d not in first),
        kernel=tuple(d for d in merged if d in slides),
        groups=tuple(d for d in kept if d in first and d in second),
    )


def partials_dtype(result: np.dtype[Any], body: Body | None = None) -> np.dtype[Any]:
    """The dtype in which a contraction adds up.

    It is float32 for narrower floats, unless the body allows narrow sums.
    """
    if body is not None and body.narrow:
        return result
    return np.dtype(np.float32) if is_floating(result) and result.itemsize < 4 else result


def chain_cycles(
    body: Body, outputs: Integers, result: np.dtype[Any], target: Target
) -> FloatCycles:
    """Cycles that a body's chain adds: (candidates,). outputs: result elements of a tile.

    The chain runs in the codelet that computes its first value: no further vertex starts, and the
    value is neither stored nor loaded in between (see cost.following_cycles). It computes in the
    dtype of partial sums, 32 bits for narrower floats.
    """
    cycles = np.zeros(len(outputs))
    name = partials_dtype(result).name
    for stage in body.then:
        cycles += cost.following_cycles(outputs, 1 + stage.extras, stage.function, name, target)
    return cycles


def compute_cycles(
    structure: Structure,
    cells: Integers,
    operand: np.dtype[Any],
    result: np.dtype[Any],
    target: Target,
    method: str = "",
    workers: Sequence[int] | Integers = (),
) -> tuple[FloatCycles, NDArray[np.str_]]:
    """The cycles of a tile to compute one cell with its workers, and the method that takes them.

    cells: sizes of the cells, (candidates, dimensions). operand: the dtype of the first operand
    that is a number. result: the dtype of the result. method: of a contraction, one of METHODS; the
    cheapest if "". workers: parts of a cell's dimensions over the workers, for all cells or for
    each, so that the busiest worker decides; () shares the work evenly. If there are more parts
    than workers, the workers take turns, and each turn starts anew.
    The chain is included. A method that the machine lacks costs infinitely much. The methods
    returned are "" if there is only one.
    Raises ValueError for a method that no contraction has.
    """
    shares, threads, turns = _shares(cells, workers, target)
    types = operand, result, target
    cycles, methods = _turn_cycles(structure, shares, threads, *types, method)
    return cycles * turns, methods


def _turn_cycles(
    structure: Structure,
    shares: Integers,
    threads: Integers,
    operand: np.dtype[Any],
    result: np.dtype[Any],
    target: Target,
    method: str,
) -> tuple[FloatCycles, NDArray[np.str_]]:
    """As compute_cycles, for cells that consist of equal shares, one per thread."""
    types = operand, result, target
    space, body = structure.space, structure.body
    outputs = elements(shares, space.of_kind("parallel")) * threads
    if body.then:
        if _is_scaled_add(structure, operand):
            both = cost.scaled_add_cycles(outputs, operand.name, target)
            rest = replace(body, then=body.then[1:])
            return both + chain_cycles(rest, outputs, result, target), np.full(len(shares), "")
        core, methods = _turn_cycles(structure.unchained, shares, threads, *types, method)
        return core + chain_cycles(body, outputs, result, target), methods
    if roles(structure) is not None:
        if method not in ("", *METHODS):
            raise ValueError(f"method {method!r}; need one of {', '.join(METHODS)}")
        methods = (method,) if method else METHODS
        prices = _contraction_prices(structure, shares, threads, *types, methods)
        return prices.min(axis=0), np.array(methods)[prices.argmin(axis=0)]
    function = body.function
    if function == "identity" and operand != result:
        function = "cast"
    points = elements(shares, tuple(range(shares.shape[1]))) * threads
    count = len(space.operands)
    each = cost.elementwise_cycles(points, count, function, operand.name, target)
    if body.combiner is None:
        return each.astype(np.float64), np.full(len(shares), "")
    depth = elements(shares, space.of_kind("reduction", "whole"))
    merging = cost.reduce_cycles(outputs, depth, operand.name, target)
    # Merging single elements is free, but they are moved to where the result lies.
    plain = (depth > 1) & (body.function == "identity")
    cycles = merging + np.where(plain, 0, each)
    return cycles.astype(np.float64), np.full(len(shares), "")


def _is_scaled_add(structure: Structure, operand: np.dtype[Any]) -> bool:
    """Whether a chain begins with a scaled tensor plus another of its size, which is one loop."""
    space, body = structure.space, structure.body
    first = body.then[0]
    return (
        body.function == "scale"
        and body.combiner is None
        and first.function == "add"
        and first.extras == 1
        and is_floating(operand)
        and space.operands[0].dims() == space.operands[1].dims() == space.results[0].dims()
    )


def method_cycles(
    structure: Structure,
    cells: Integers,
    operand: np.dtype[Any],
    result: np.dtype[Any],
    target: Target,
    parts: Integers,
) -> FloatCycles:
    """The cycles of a contraction by every method of METHODS: (2, methods, candidates).

    They are given twice: if the workers share the work evenly, and if they have these parts of each
    cell. Otherwise as compute_cycles. Infinite for a method that the machine lacks.
    """
    both = (_shares(cells, workers, target) for workers in ((), parts))
    shares, threads, turns = (np.concatenate(each) for each in zip(*both, strict=True))
    outputs = elements(shares, structure.space.of_kind("parallel")) * threads
    types = operand, result, target
    core = _contraction_prices(structure.unchained, shares, threads, *types, METHODS)
    cycles = (core + chain_cycles(structure.body, outputs, result, target)) * turns
    return cycles.reshape(len(core), 2, len(cells)).swapaxes(0, 1)


def cells_cycles(
    structure: Structure, plan: Plan, dtypes: Sequence[np.dtype[Any]], target: Target
) -> Integers:
    """The cycles of every cell of a vertex set, in the shape of the split.

    dtypes: of the operands and, last, of the result.
    Raises ValueError if the machine has no such codelet.
    """
    space = structure.space
    cuts = [Cut(d.size, p) for d, p in zip(space.dims, plan.split, strict=True)]
    sizes, index = (
        zip(*(np.unique(np.diff(cut.edges()), return_inverse=True) for cut in cuts), strict=True)
        if cuts
        else ((), ())
    )
    grid = np.meshgrid(*sizes, indexing="ij")
    cells = np.stack([g.ravel() for g in grid], axis=1) if cuts else np.zeros((1, 0), np.int64)
    cycles = whole_cycles(structure, cells, dtypes, target, plan.method, plan.workers)
    shape = tuple(len(s) for s in sizes)
    whole = cycles.reshape(shape)
    return whole[np.ix_(*index)] if cuts else whole


def whole_cycles(
    structure: Structure,
    cells: Integers,
    dtypes: Sequence[np.dtype[Any]],
    target: Target,
    method: str,
    workers: Sequence[int],
) -> Integers:
    """The cycles of compute_cycles, rounded up, and 0 for empty cells: (candidates,).

    dtypes: of the operands and, last, of the result.
    Raises ValueError if the machine has no such codelet.
    """
    operand, result = number_dtype(dtypes[:-1]), dtypes[-1]
    cycles, _ = compute_cycles(structure, cells, operand, result, target, method, workers)
    cycles = np.where((cells > 0).all(axis=1), cycles, 0)
    if not np.isfinite(cycles).all():
        names = ", ".join(d.name for d in dtypes)
        raise ValueError(f"target {target.name}: no method {method!r} for {names}")
    return np.ceil(cycles).astype(np.int64)


def number_dtype(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The dtype of the first operand that is not boolean, as the condition of a select is."""
    return next((d for d in dtypes if d != np.bool_), dtypes[0])


def _contraction_prices(
    structure: Structure,
    cells: Integers,
    threads: Integers,
    operand: np.dtype[Any],
    result: np.dtype[Any],
    target: Target,
    methods: Sequence[str],
) -> FloatCycles:
    """The cycles by some methods of METHODS, in their order: (methods, candidates)."""
    parts = roles(structure)
    assert parts is not None
    contraction = Contraction(
        field=elements(cells, parts.field) * threads,
        in_channels=elements(cells, parts.in_channels),
        out_channels=elements(cells, parts.out_channels),
        kernel_elements=elements(cells, parts.kernel),
        conv_groups=elements(cells, parts.groups),
        dtype_name=operand.name,
        partials_name=partials_dtype(result, structure.body).name,
        field_rows=elements(cells, parts.field[:-1]) * threads,
        stride=_stride(structure),
    )
    return contraction_cycles(contraction, target, methods)


@lru_cache(maxsize=1024)
def _stride(structure: Structure) -> int:
    """The stride of the innermost window of a contraction; 0 if one of its windows is dilated."""
    parts = roles(structure)
    assert parts is not None
    stride = 1
    for axis in structure.space.operands[0].axes:
        steps = [abs(a) for d, a in axis.terms if d in parts.kernel]
        moves = [abs(a) for d, a in axis.terms if d in parts.field]
        if any(step > 1 for step in steps):
            return 0
        if steps and moves:
            stride = moves[0]
    return stride


def elements(cells: Integers, dims: tuple[int, ...]) -> Integers:
    """The product of the sizes of some dimensions: (candidates,).

    cells: (candidates, dimensions).
    """
    points = np.ones(len(cells), np.int64)
    for d in dims:
        points *= cells[:, d]
    return points


def _shares(
    cells: Integers, workers: Sequence[int] | Integers, target: Target
) -> tuple[Integers, Integers, Integers]:
    """The busiest worker's part of each cell, the number of such parts per turn, and the turns.

    Prices divide a cell evenly among the workers, so a part is priced as a cell in which every
    worker has a part of that size. Each turn is charged in full, which is an upper bound: what a
    worker saves when it goes on to its next vertex is not published.
    """
    one = np.ones(len(cells), np.int64)
    if not len(workers):
        return cells, one, one
    parts = np.array(workers, np.int64)
    vertices = np.prod(np.minimum(parts, cells), axis=1, dtype=np.int64)
    return -(-cells // parts), one * target.workers, -(-vertices // target.workers)
