"""The compute cycles of one cell of any structured operator, for many sizes of cells at once.

The planner and the price of a program both use these functions, so each codelet has one price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dialects.abele import Plan
from ...dialects.combiners import MEMBERS
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Body, Structure
from ...ir.geometry.grid import Cut
from ...ir.geometry.space import AccessMap, AxisMap, Space
from ...ir.support.arrays import Integers
from ...ir.support.number_kinds import is_floating
from ..codelets.combiners import NUMERICS
from ..codelets.users import users_codelet_of
from ..target import Target
from . import cost
from .block_products import block_product_cycles
from .contractions.contraction import Contraction
from .contractions.methods import contraction_cycles, methods_of
from .packed_products import packed_product_cycles
from .whole_numbers import divided_up
from .workload import Workload, partials_dtype, roles

FloatCycles = NDArray[np.float64]


def chain_cycles(work: Workload, outputs: Integers, skip: int = 0) -> FloatCycles:
    """The cycles that the chain adds: (candidates,).

    The chain runs in the codelet that computes its first value: no further vertex starts, and the
    value is neither stored nor loaded in between (see cost.following_cycles). It computes in the
    dtype of partial sums, 32 bits for narrower floats. Stages that round to a narrower type are
    part of the store, which rounds in any case, by random words too (AI-Float white paper). The
    words of a worker's own generator cost nothing; those that a key decides are the host's.

    Args:
        outputs: result elements of a tile.
        skip: the number of first stages that another price includes.
    """
    # Different numbers of outputs share a price per loop, so compute the loops once per stage.
    counts: Counter[tuple[int, str, str]] = Counter()
    name = partials_dtype(work.begun).name
    counted = {each.operand for each in work.structure.chain_coordinates()}
    place, known = work.structure.own_places, work.structure.body.chained_elements
    stages, rounded = work.structure.body.then, rounds(work.structure.body.function)
    for i, stage in enumerate(stages):
        coordinates = len(counted.intersection(range(place, place + stage.extras)))
        place += stage.extras
        is_store = rounds(stage.function) or (rounded and bool(stage.element))
        rounded = rounds(stage.function)
        if i < skip or is_store:
            continue
        function = "cast" if stage.element else stage.function
        read = 1 + stage.extras - coordinates
        types = {*stage.arguments(known[: i + 1], ["?"] * stage.extras)}
        # A function of truth values costs the same in a chain as alone.
        is_truth = types in ({"i1"}, {"i1", "?"}) and function != "select"
        kind = "bool" if is_truth else name
        counts[read, function, kind] += 1
        if coordinates:
            counts[1, COORDINATE, name] += coordinates
    return cost.all_following_cycles(outputs, counts, work.target).astype(np.float64)


def rounds(function: str) -> bool:
    """Whether a function of a body or a stage only rounds to the numbers of a narrower type."""
    known = FUNCTIONS.get(function)
    return known is not None and known.rounds


COORDINATE = "shift"
"""The function whose price a coordinate has."""


def coordinate_cycles(points: Integers, dtype_name: str, target: Target) -> FloatCycles:
    """The cycles of computing a coordinate at some points, in a dtype: (candidates,).

    Assumed: it is counted in registers, in the dtype in which it is read, by one addition per
    vector, and never loaded.
    """
    cycles = cost.following_cycles(points, 1, COORDINATE, dtype_name, target)
    return np.asarray(cycles, np.float64)


def compute_cycles(
    work: Workload,
    cells: Integers,
    method: str = "",
    workers: Sequence[int] | Integers = (),
) -> tuple[FloatCycles, NDArray[np.str_]]:
    """The cycles of a tile to compute one cell with its workers, and the method that takes them.

    Raises ValueError for a method that the target does not have.

    If there are more parts than workers, the workers take turns, and each turn is priced as a new
    start. The chain is included. A method that the machine lacks costs infinitely much. The
    returned methods are "" if the codelet has only one.

    Args:
        cells: sizes of the cells, (candidates, dimensions).
        method: of a contraction, one of the target's; "" for the cheapest.
        workers: parts of a cell's dimensions over the workers, for all cells or for each, so that
            the busiest worker decides; () shares the work evenly. A codelet that shares its work
            itself takes no notice of them.
    """
    own = shares_by_itself(work.structure)
    shares, threads, turns = _shares(cells, () if own else workers, work.target)
    cycles, methods = _turn_cycles(work, shares, threads, method)
    return cycles * turns, methods


def _result_dims(space: Space) -> tuple[int, ...]:
    """The dimensions of a result's elements, without whole ones that only operands have."""
    named = {d for access in space.results for axis in access.axes for d, _ in axis.terms}
    return (
        *space.of_kind("parallel"),
        *(d for d in space.of_kind("whole") if d in named),
    )


def _turn_cycles(
    work: Workload, shares: Integers, threads: Integers, method: str
) -> tuple[FloatCycles, NDArray[np.str_]]:
    """Like compute_cycles, for cells that consist of equal shares, one per thread."""
    operand, target = work.operand, work.target
    space, body = work.structure.space, work.structure.body
    outputs = elements(shares, _result_dims(space)) * threads
    if body.then:
        if _is_scaled_add(work):
            both = cost.scaled_add_cycles(outputs, operand.name, target)
            return both + chain_cycles(work, outputs, skip=1), np.full(len(shares), "")
        core, methods = _turn_cycles(work.unchained, shares, threads, method)
        return core + chain_cycles(work, outputs), methods
    if space.relations:
        price = _related_product_cycles if body.sums_products else _lookup_cycles
        return price(work, shares, threads), np.full(len(shares), "")
    if body.along is not None:
        return _along_cycles(work, shares, threads), np.full(len(shares), "")
    if body.member_kinds:
        return _combining_cycles(work, shares, threads), np.full(len(shares), "")
    if body.is_packed_product:
        return _packed_product_cycles(work, shares, threads), np.full(len(shares), "")
    if work.roles is not None:
        known = tuple(methods_of(target))
        if method not in ("", *known):
            raise ValueError(f"method {method!r}; need one of {', '.join(known)}")
        methods = (method,) if method else known
        prices = contraction_prices(work, shares, threads, methods)
        return prices.min(axis=0), np.array(methods)[prices.argmin(axis=0)]
    function = body.function
    if function == "identity" and operand != work.result:
        function = "cast"
    points = elements(shares, tuple(range(shares.shape[1]))) * threads
    count, coordinates = len(space.operands), len(space.coordinates)
    if rounds(function):
        function, count, coordinates = "cast", 1, 0
    each = cost.elementwise_cycles(points, count, function, operand.name, target)
    if body.combiner is None:
        cycles = each.astype(np.float64)
        for _ in range(coordinates):
            cycles += coordinate_cycles(points, operand.name, target)
        return cycles, np.full(len(shares), "")
    depth = elements(shares, space.of_kind("reduction"))
    merging = cost.reduce_cycles(outputs, depth, operand.name, target)
    # Merging a single element is free, but the element is still moved to the result.
    plain = (depth > 1) & (body.function == "identity")
    cycles = merging + np.where(plain, 0, each)
    return cycles.astype(np.float64), np.full(len(shares), "")


class _Related(NamedTuple):
    """The relations of a space, in some shares of it.

    Attributes:
        rows, named: the dimensions that must equal an index, and those of the indices.
        reached: the share of the rows that lie in each, (candidates,).
        indices: those that each has, (candidates,).
        found: those of them that name rows in it, as the workload states, (candidates,).
    """

    rows: set[int]
    named: set[int]
    reached: NDArray[np.float64]
    indices: Integers
    found: Integers


def _related(work: Workload, shares: Integers, threads: Integers | int = 1) -> _Related:
    """The relations of a workload. Each of some threads has its own indices."""
    space = work.structure.space
    rows = {d for relation in space.relations for d, _ in relation.axis.terms}
    named = {d for r in space.relations for d in space.operands[r.operand].dims()}
    reached = np.ones(len(shares))
    for relation in space.relations:
        own = elements(shares, tuple(d for d, _ in relation.axis.terms))
        reached *= np.minimum(own / max(relation.axis.size, 1), 1.0)
    indices = elements(shares, tuple(sorted(named - rows))) * threads
    here = reached if work.lookups == "spread" else 1.0
    return _Related(rows, named, reached, indices, np.ceil(indices * here).astype(np.int64))


def _lookup_cycles(work: Workload, shares: Integers, threads: Integers) -> FloatCycles:
    """The cycles of a lookup, with indices distributed over the rows as the workload states."""
    space, body = work.structure.space, work.structure.body
    rows, named, reached, indices, found = _related(work, shares, threads)
    rest = tuple(d for d in range(len(space.dims)) if d not in named | rows)
    merges = body.combiner not in ("pick", "last")
    cycles = cost.lookup_cycles(
        indices, found, elements(shares, rest), merges, work.operand.name, work.target
    )
    outputs = elements(shares, space.of_kind("parallel")) * threads
    if body.updates:
        copied = cost.copy_cycles(outputs * work.result.itemsize, work.target)
        return np.asarray(cycles + (0 if work.in_place else copied), np.float64)
    # Rows that no index names are filled with the identity.
    filled = cost.fill_cycles(outputs * work.result.itemsize, work.target)
    return np.asarray(cycles + np.where(merges | (reached < 1), filled, 0), np.float64)


DEVIATIONS = 3
"""By how many standard deviations the fullest tile has more blocks than the average one. Assumed:
of 1,472 tiles, one is above 3.2 deviations on average."""


def _related_product_cycles(work: Workload, shares: Integers, threads: Integers) -> FloatCycles:
    """The cycles of a sum of products at related points, distributed as the workload states.

    The first operand has a block at each point, and the second one dense rows. Assumed: blocks lie
    at random, so the fullest tile has some deviations more of them than the average one.
    """
    space = work.structure.space
    first, second = (access.dims() for access in space.operands[:2])
    kept = frozenset(space.of_kind("parallel"))
    # The workers share the columns of each block.
    rows, named, _, indices, blocks = _related(work, shares)
    if work.lookups == "spread":
        # An index may stand for no row at all, and a list of blocks is priced as full.
        met = np.ones(len(shares))
        for relation in space.relations:
            along = tuple(d for d, _ in relation.axis.terms)
            whole = prod(space.dims[d].size for d in along)
            met *= np.minimum(elements(shares, along) / max(whole, 1), 1.0)
        more = DEVIATIONS * np.sqrt(indices * met * (1 - met))
        blocks = np.minimum(np.ceil(indices * met + more), indices).astype(np.int64)

    def size(dims: Iterable[int]) -> Integers:
        return elements(shares, tuple(sorted(set(dims) - rows - named)))

    high, across = size(first & kept), size(set(range(len(space.dims))) - kept)
    columns = size((second & kept) - first) * threads
    present = np.minimum(elements(shares, tuple(sorted(rows & kept))), blocks)
    cycles = block_product_cycles(
        blocks, present, (high, across), columns, work.operand.name, work.target
    )
    missed = -(-(indices - blocks) // work.target.workers) * work.target.workers
    outputs = elements(shares, space.of_kind("parallel")) * threads
    filled = cost.fill_cycles(outputs * work.result.itemsize, work.target)
    return cycles + missed * work.target.lookup.missed_cycles + filled


def _packed_product_cycles(work: Workload, shares: Integers, threads: Integers) -> FloatCycles:
    """The cycles of a sum of products with integers that share bytes."""
    space = work.structure.space
    value, packed, scales, *_ = (access.dims() for access in space.operands)
    merged = frozenset(space.of_kind("reduction"))
    plain = Workload(_unpacked(work.structure), work.operand, work.result, work.target)

    def size(dims: Iterable[int]) -> Integers:
        return elements(shares, tuple(sorted(dims)))

    each = {d for d in packed & merged if d not in scales}
    return packed_product_cycles(
        size(packed - merged) * threads,
        size(packed & merged - each),
        size(each),
        size(value - merged),
        int(work.structure.body.parameters[0]),
        work.operand.name,
        contraction_prices(plain, shares, threads).min(axis=0),
        work.target,
    )


@lru_cache(maxsize=1024)
def _unpacked(structure: Structure) -> Structure:
    """The sum of products with a matrix whose integers are elements of their own."""
    space = structure.space
    dims = sorted({d for access in space.operands[1:] for d in access.dims()})
    matrix = AccessMap(tuple(AxisMap(space.dims[d].size, ((d, 1),)) for d in dims))
    operands = (space.operands[0], matrix)
    return Structure(replace(space, operands=operands), Body("mul", "sum"))


def _along_cycles(work: Workload, shares: Integers, threads: Integers) -> FloatCycles:
    """The cycles of a scan or a sort along the whole dimension of each row of a cell."""
    space, along = work.structure.space, work.structure.body.along
    assert along is not None
    if along.signature is not None:
        return _users_cycles(work, shares, threads)
    rows = elements(shares, space.of_kind("parallel")) * threads
    length = elements(shares, space.of_kind("whole"))
    if not along.sorts:
        return np.asarray(cost.scan_cycles(rows, length, work.target), np.float64)
    indices = along.name == "sort_indices"
    return np.asarray(cost.sort_cycles(rows, length, work.target, indices=indices), np.float64)


def _users_cycles(work: Workload, shares: Integers, threads: Integers) -> FloatCycles:
    """The cycles of a user's codelet, whose cells the workers share: the busiest worker decides."""
    space, along, target = work.structure.space, work.structure.body.along, work.target
    assert along is not None
    known = users_codelet_of(along.name)
    cells = elements(shares, known.signature.cell_dims) * threads
    sizes = {dim.name: dim.size for dim in space.dims if dim.kind == "whole"}
    each, which = np.unique(divided_up(cells, target.workers), return_inverse=True)
    prices = [known.price(int(n), sizes, along.parameters) if n else 0.0 for n in each]
    total = target.vector.supervisor_cycles + target.workers * np.array(prices)[which]
    return np.where(cells > 0, total, 0.0)


def shares_by_itself(structure: Structure) -> bool:
    """Whether a codelet decides itself how its workers share a cell.

    That of a product of blocks lists the blocks of each worker. Its workers share the columns of
    each block, or the rows (see block_product_cycles). To cut the rows beforehand would let each
    worker look at the blocks of all others.
    """
    return bool(structure.space.relations) and structure.body.sums_products


def can_share_depth(structure: Structure) -> bool:
    """Whether all workers of a tile may work on one result: each merges a share of its points, and
    then what the workers have is merged (see cost.reduce_cycles)."""
    body = structure.body
    return body.combiner is not None and body.along is None and not structure.space.relations


def _combining_cycles(work: Workload, shares: Integers, threads: Integers) -> FloatCycles:
    """The cycles of a combiner of several values, summed from loops of reductions and functions.

    Assumed: a vertex makes the passes over its elements that the numerics state, and applies their
    functions to values in registers. If all workers merge sets of members for fewer results than
    there are workers, the sets of the workers are merged in the same way.
    """
    space, body, target = work.structure.space, work.structure.body, work.target
    assert body.combiner is not None
    numerics = NUMERICS[body.combiner]
    wide = partials_dtype(work.operand).name
    points = elements(shares, tuple(range(shares.shape[1]))) * threads
    outputs = elements(shares, space.of_kind("parallel")) * threads
    depth = elements(shares, space.of_kind("reduction"))
    cycles = np.zeros(len(shares))
    lifted = points
    if body.function == MEMBERS:
        cycles += merging_cycles(body, outputs, depth, wide, target)
        shared = (threads == 1) & (outputs < target.workers) & (depth > 1)
        again = merging_cycles(body, outputs, np.minimum(depth, target.workers), wide, target)
        cycles += np.where(shared, again, 0)
    else:
        if body.function != "identity":
            cycles += cost.elementwise_cycles(
                points, len(space.operands), body.function, work.operand.name, target
            )
        cycles += numerics.passes * cost.reduce_cycles(
            outputs, np.maximum(depth, 2), work.operand.name, target
        )
        for function in numerics.lifting.split():
            cycles += cost.following_cycles(lifted, 1, function, wide, target)
    if body.resumes:
        cycles += merging_cycles(body, outputs, np.ones_like(depth), wide, target)
    if not body.unfinished:
        for function in numerics.finishing.split():
            cycles += cost.following_cycles(outputs, 1, function, wide, target)
    return cycles


def merging_cycles(
    body: Body, outputs: Integers, depth: Integers, dtype_name: str, target: Target
) -> FloatCycles:
    """The cycles to merge `depth` sets of members into one set per output: (candidates,).

    Assumed: every member is loaded like an operand of an elementwise function, and the merging
    functions of the numerics follow.
    """
    assert body.combiner is not None
    first, *rest = NUMERICS[body.combiner].merging.split()
    points = outputs * depth
    count = len(body.member_kinds)
    cycles = cost.elementwise_cycles(points, count, first, dtype_name, target).astype(np.float64)
    for function in rest:
        cycles += cost.following_cycles(points, 1, function, dtype_name, target)
    return cycles


def _is_scaled_add(work: Workload) -> bool:
    """Whether a chain begins with scale, then add of a tensor of equal size, which is one loop."""
    space, body = work.structure.space, work.structure.body
    first = body.then[0]
    return (
        body.function == "scale"
        and not space.coordinates
        and body.combiner is None
        and body.along is None
        and first.function == "add"
        and first.extras == 1
        and not first.reads
        and is_floating(work.operand)
        and space.operands[0].dims() == space.operands[1].dims() == space.results[0].dims()
    )


def method_cycles(work: Workload, cells: Integers, parts: Integers) -> FloatCycles:
    """The cycles of a contraction by every method of the target: (2, methods, candidates).

    The first axis is the sharing of the work: evenly among the workers, or with these parts of each
    cell. Otherwise as compute_cycles. Infinite for a method that the machine lacks.
    """
    both = (_shares(cells, workers, work.target) for workers in ((), parts))
    shares, threads, turns = (np.concatenate(each) for each in zip(*both, strict=True))
    outputs = elements(shares, work.structure.space.of_kind("parallel")) * threads
    core = contraction_prices(work.unchained, shares, threads)
    cycles = (core + chain_cycles(work, outputs)) * turns
    return cycles.reshape(len(core), 2, len(cells)).swapaxes(0, 1)


def cells_cycles(work: Workload, plan: Plan) -> Integers:
    """The cycles of every cell of a vertex set, in the shape of the split.

    Raises ValueError if the machine has no such codelet.
    """
    space = work.structure.space
    cuts = [Cut(d.size, p) for d, p in zip(space.dims, plan.split, strict=True)]
    sizes, index = (
        zip(*(np.unique(np.diff(cut.edges()), return_inverse=True) for cut in cuts), strict=True)
        if cuts
        else ((), ())
    )
    grid = np.meshgrid(*sizes, indexing="ij")
    cells = np.stack([g.ravel() for g in grid], axis=1) if cuts else np.zeros((1, 0), np.int64)
    cycles = whole_cycles(work, cells, plan.method, plan.workers)
    shape = tuple(len(s) for s in sizes)
    whole = cycles.reshape(shape)
    return whole[np.ix_(*index)] if cuts else whole


def whole_cycles(work: Workload, cells: Integers, method: str, workers: Sequence[int]) -> Integers:
    """The cycles of compute_cycles, rounded up; 0 for empty cells: (candidates,).

    Raises ValueError if the machine has no such codelet.
    """
    cycles, _ = compute_cycles(work, cells, method, workers)
    cycles = np.where((cells > 0).all(axis=1), cycles, 0)
    if not np.isfinite(cycles).all():
        raise ValueError(
            f"target {work.target.called}: no method {method!r} for {work.operand.name} operands "
            f"and a {work.result.name} result"
        )
    return np.ceil(cycles).astype(np.int64)


def contraction_prices(
    work: Workload, cells: Integers, threads: Integers, methods: Sequence[str] = ()
) -> FloatCycles:
    """The cycles of a contraction by some methods of the target, in their order: (methods,
    candidates).

    Args:
        methods: () for all.
    """
    parts = work.roles
    assert parts is not None
    contraction = Contraction(
        field=elements(cells, parts.field) * threads,
        in_channels=elements(cells, parts.in_channels),
        out_channels=elements(cells, parts.out_channels),
        kernel_elements=elements(cells, parts.kernel),
        conv_groups=elements(cells, parts.groups),
        dtype_name=work.operand.name,
        partials_name=work.partials.name,
        field_rows=elements(cells, parts.field[:-1]) * threads,
        stride=_stride(work.structure),
    )
    return contraction_cycles(contraction, work.target, methods)


@lru_cache(maxsize=1024)
def _stride(structure: Structure) -> int:
    """The stride of a contraction's innermost window; 0 if one of its windows is dilated."""
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

    Args:
        cells: (candidates, dimensions).
    """
    if not dims:
        return np.ones(len(cells), np.int64)
    points = cells[:, dims[0]].astype(np.int64)
    for d in dims[1:]:
        points *= cells[:, d]
    return points


def _shares(
    cells: Integers, workers: Sequence[int] | Integers, target: Target
) -> tuple[Integers, Integers, Integers]:
    """The busiest worker's part of each cell, the number of such parts per turn, and the turns.

    Prices divide a cell evenly among the workers, so a part is priced as a cell in which every
    worker has a part of that size. Each turn is charged in full, which is an upper bound: the
    saving of a worker that continues with its next vertex is not published.
    """
    one = np.ones(len(cells), np.int64)
    if not len(workers):
        return cells, one, one
    parts = np.array(workers, np.int64)
    vertices = np.prod(np.minimum(parts, cells), axis=1, dtype=np.int64)
    return -(-cells // parts), one * target.workers, -(-vertices // target.workers)
