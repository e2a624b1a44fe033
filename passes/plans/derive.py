"""Consequences of a plan: the cut operator, the layouts of its tensors, the merging of partials.

The planner and the conversion to partition both use these functions, so the plan that was priced
is the plan that is built.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...dialects.abele import Plan
from ...dialects.combiners import MEMBERS
from ...dialects.structured import Structure
from ...ir.geometry.layout import Layout, canonical, linear_layout
from ...ir.geometry.space import (
    AccessMap,
    AxisMap,
    Dim,
    Space,
    identity_map,
    split_reduction,
)
from ...ir.geometry.spread import spread
from ...ir.support.number_kinds import is_floating
from .padding import can_pad
from .steps import check_steps, home_over_steps, passes_of, result_over_steps, takes_steps


def leaves_partials(structure: Structure, plan: Plan) -> bool:
    """Whether a plan splits a reduction, so that another compute has to combine the partials."""
    dims = structure.space.dims
    return any([k > 1 and d.kind == "reduction" for k, d in zip(plan.split, dims, strict=False)])


class Refined(NamedTuple):
    """A structure in which only parallel dimensions are cut.

    Attributes:
        cells: the plan of its cells.
    """

    structure: Structure
    cells: Plan


def refined(structure: Structure, plan: Plan) -> Refined:
    """An equivalent structure in which only parallel dimensions are cut, with the plan of its
    cells.

    Each split reduction dimension k keeps a block of itself and gets a new parallel dimension kp,
    appended in order of k. The result gets a leading axis kp for each. In the order, kp takes the
    place of k. Partials have no chain, and may be several members: the compute that combines them
    applies the chain and makes the results.

        [y, k], split [8, 4]   ->   [y, k/4, kp = 4], split [8, 1, 4]

    Raises ValueError if the plan does not belong to this structure, or takes several steps: each
    step is a structure of its own (passes_of).
    """
    return _refined(structure, plan.cells)


@lru_cache(maxsize=8192)
def _refined(structure: Structure, plan: Plan) -> Refined:
    if takes_steps(plan):
        raise ValueError(f"steps {list(plan.steps)}; need those of one step")
    if len(plan.split) != len(structure.space.dims):
        raise ValueError(
            f"a split of {len(plan.split)} parts; the space has {len(structure.space.dims)}"
        )
    if leaves_partials(structure, plan):
        structure = structure.partial
    space, body = structure.space, structure.body
    _check_order(plan)
    split, across = list(plan.split), list(plan.across)
    partial_dim: dict[int, int] = {}
    for d, dim in enumerate(structure.space.dims):
        parts = plan.split[d]
        if not 1 <= parts <= max(dim.size, 1):
            raise ValueError(f"dimension {dim.name}: {parts} parts; need 1..{max(dim.size, 1)}")
        if parts == 1 or dim.kind == "parallel":
            continue
        if structure.is_never_cut(d):
            raise ValueError(f"dimension {dim.name}: {parts} parts; it is never cut")
        if dim.size % parts and not can_pad(structure, d):
            raise ValueError(
                f"dimension {dim.name}: {parts} parts of {dim.size} elements; need a divisor"
            )
        partial_dim[d] = len(space.dims)
        space = split_reduction(space, d, parts, body.identity)
        split[d] = 1
        split.append(parts)
        if across:
            across.append(across[d])
            across[d] = 1
    order = tuple(partial_dim.get(d, d) for d in plan.order)
    cells = Plan(tuple(split), order, plan.first_tile, across=tuple(across), apart=plan.apart)
    return Refined(Structure(space, body), cells)


def check_plan(structure: Structure, plan: Plan, element: np.dtype[Any]) -> None:
    """Raise ValueError if a plan, in one step or several, does not belong to this operator.

    Args:
        element: the dtype of the operator's result.
    """
    check_steps(structure, plan)
    if not takes_steps(plan):
        refined(structure, plan)
        return
    for n, dim in zip(plan.steps, structure.space.dims, strict=True):
        exact_steps = structure.body.tuple_combiner is not None or is_floating(element)
        if n > 1 and dim.kind == "reduction" and not exact_steps:
            raise ValueError(
                f"dimension {dim.name}: {n} steps of a reduction to {element.name}; "
                "need a result of floats, or steps along another dimension"
            )
    step = next(passes_of(structure, plan))[0]
    refined(step.structure, step.plan)


def is_legal_in_steps(structure: Structure, plan: Plan, element: np.dtype[Any]) -> bool:
    """Whether an operator can take the steps of a plan.

    Args:
        element: the dtype of its result.
    """
    try:
        check_plan(structure, plan, element)
    except ValueError:
        return False
    return True


def compute_layouts(structure: Structure, plan: Plan) -> tuple[Layout, ...]:
    """The layouts that the compute reads; without those of its chain if it leaves partials."""
    return _placed(structure, plan.cells)


@lru_cache(maxsize=8192)
def _placed(structure: Structure, cells: Plan) -> tuple[Layout, ...]:
    """The layouts that the compute reads.

    Args:
        cells: a plan reduced to the placement of cells.
    """
    cut, own = refined(structure, cells)
    dims = cut.space.dims
    return tuple(canonical(own.layout(dims, access)) for access in cut.space.operands)


def operand_layouts(structure: Structure, plan: Plan) -> tuple[Layout, ...]:
    """The layout that a plan wants each operand in.

    If there are partials, the compute that combines them decides the layouts of the chain's
    operands. For a plan of several steps, a layout holds the whole operand: the parts of all steps
    side by side if possible, else the layout of the same plan in one step.
    Raises ValueError if the plan leaves partials and has no combine.
    """
    if takes_steps(plan):
        step = next(passes_of(structure, plan))[0]
        each = operand_layouts(step.structure, step.plan)
        # The combine has a single step, and reads all of each operand of the chain.
        plain = compute_layouts(structure, replace(plan, steps=(), ring=(), combine=None))
        return tuple(
            home_over_steps(structure, plan, i, layout) or whole
            for i, (layout, whole) in enumerate(
                zip(each, (*plain, *each[len(plain) :]), strict=True)
            )
        )
    own = compute_layouts(structure, plan)
    if len(own) == len(structure.space.operands):
        return own
    combine, further = combining(structure, plan)
    return own + operand_layouts(combine, further)[combine.own_operands :]


def result_layout(structure: Structure, plan: Plan, result: int = 0) -> Layout:
    """The layout of one result of the compute, or of the partials if a reduction is split."""
    cut, own = refined(structure, plan)
    return canonical(own.layout(cut.space.dims, cut.space.results[result]))


def combine_structure(structure: Structure, plan: Plan) -> Structure | None:
    """The structure that merges the partials; None if no reduction is split.

    Its dimensions are the result's axes, then one reduction for each split dimension, in order of
    that dimension. Its operands are the partials, one per member, then the operands of the chain,
    which this structure applies.
    """
    return _combine_structure(structure, plan.cells)


@lru_cache(maxsize=8192)
def _combine_structure(structure: Structure, plan: Plan) -> Structure | None:
    cut = refined(structure, plan)[0].space
    old = structure.space
    count = len(cut.dims) - len(old.dims)
    if count == 0:
        return None
    axes = old.results[0].axes
    shape = old.results[0].shape
    rank = len(axes)
    dims = tuple(
        Dim(old.dims[axis.terms[0][0]].name if axis.terms else f"axis{i}", axis.size)
        for i, axis in enumerate(axes)
    ) + tuple(Dim(d.name, d.size, "reduction") for d in cut.dims[len(old.dims) :])
    result = identity_map(tuple(range(rank)), shape)
    leading = tuple(AxisMap(dims[d].size, ((d, 1),)) for d in reversed(range(rank, rank + count)))
    operand = AccessMap((*leading, *result.axes))
    axis_of = {axis.terms[0][0]: i for i, axis in enumerate(axes) if axis.terms}
    extras = (a.renamed(axis_of) for a in old.operands[structure.own_operands :])
    kinds = structure.body.member_kinds
    function = MEMBERS if kinds else "identity"
    # Parts are merged in 32 bits, whatever type they are held in.
    body = replace(structure.body, function=function, parameters=(), narrow=None, resumes=False)
    partials = (operand,) * max(len(kinds), 1)
    results = (result, *(a.renamed(axis_of) for a in old.results[1:]))
    merged = Structure(Space(dims, (*partials, *extras), results), body)
    positions = tuple(
        replace(each, access=each.access.renamed(axis_of))
        for each in structure.chain_coordinates(merged.own_places)
    )
    return Structure(replace(merged.space, positions=positions), body) if positions else merged


def combining(structure: Structure, plan: Plan) -> tuple[Structure, Plan]:
    """The structure that merges the partials of a plan, and the plan of that merge.

    Raises ValueError if the plan has no combine.
    """
    combine = combine_structure(structure, plan)
    assert combine is not None
    if plan.combine is None:
        raise ValueError(f"split {list(plan.split)} leaves partials; need a plan to combine them")
    return combine, plan.combine


def final_layout(structure: Structure, plan: Plan, result: int = 0) -> Layout:
    """The layout of one of the operator's results, after partials are combined.

    Raises ValueError if reductions are split and the plan has no combine.
    """
    if takes_steps(plan):
        step = next(passes_of(structure, plan))[0]
        layout = final_layout(step.structure, step.plan, result)
        return result_over_steps(plan, step, layout, result)
    if not leaves_partials(structure, plan):
        return result_layout(structure, plan, result)
    return final_layout(*combining(structure, plan), result)


@lru_cache(maxsize=8192)
def home_of_free(wanted: Layout, itemsize: int, tiles: int, chips: int = 1) -> Layout:
    """A layout for a tensor without a layout of its own, for instance an input, near its first
    user.

    Every element is stored once, on a tile that wants it; in linear order if that is impossible.

    Args:
        tiles: those of all chips.
    """
    return spread(wanted) or linear_layout(wanted.shape, itemsize, tiles, chips=chips)


def movement_result_layout(shape: tuple[int, ...], plan: Plan) -> Layout:
    """The layout of a movement's result. Its plan cuts the axes of the result."""
    if len(plan.split) != len(shape):
        raise ValueError(f"a split of {len(plan.split)} parts; the result has {len(shape)} axes")
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
    access = identity_map(tuple(range(len(shape))), shape)
    return canonical(plan.layout(dims, access))


def _check_order(plan: Plan) -> None:
    """Raise ValueError unless the order of a plan names dimensions, each at most once."""
    rank = len(plan.split)
    if len(set(plan.order)) < len(plan.order) or max(plan.order, default=0) >= max(rank, 1):
        raise ValueError(f"order {list(plan.order)}; need different ones of 0..{rank - 1}")


def check_ranks(structure: Structure, plan: Plan) -> None:
    """Raise ValueError for a plan, or a combine in it, with another number of dimensions."""
    dims = [dim.name for dim in structure.space.dims]
    for what, given in (("split", plan.split), ("workers", plan.workers)):
        if len(given) != len(dims) and (given or what == "split"):
            raise ValueError(f"{what} {list(given)}; need a number for each of {', '.join(dims)}")
    _check_order(plan)
    if plan.combine is None:
        return
    combine = combine_structure(structure, replace(plan, steps=(), ring=()))
    if combine is None:
        raise ValueError("a plan to combine, but no partials; need a reduction that is split")
    try:
        check_ranks(combine, plan.combine)
    except ValueError as error:
        raise ValueError(f"combine: {error}") from None
