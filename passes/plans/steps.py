"""Operators in several steps: the same tiles do one part of the work after another.

A dimension may be cut in time as well as in space. Each step over a parallel dimension makes a part
of the result. Each step over a reduction adds to the sums of the steps before it. A tile needs room
for the operands of one step at a time.

A reduction may also rotate around the tiles over which a parallel dimension (the ring) is cut. Each
tile begins with a different part, so no two tiles hold the same part at once. An operand of which
each tile would otherwise hold a copy is stored once, and its parts move on by one tile at each
step:

    k in 3 steps, not rotated:   tile 0: 0 1 2   tile 1: 0 1 2   tile 2: 0 1 2
    k in 3 steps, rotated:       tile 0: 0 1 2   tile 1: 1 2 0   tile 2: 2 0 1

The access maps say all of this: a step is an ordinary structure whose maps have other offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from ...dialects.abele import Plan
from ...dialects.combiners import TUPLE_COMBINERS
from ...dialects.structured import Stage, Structure
from ...ir.geometry.grid import Cut
from ...ir.geometry.layout import Layout, canonical
from ...ir.geometry.space import AccessMap, AxisMap, Dim, Position, Relation, Space, identity_map

ADDS = {"sum": "add", "max": "max", "min": "min", "prod": "mul"}
"""By combiner, the function that merges the result of a step with that of the steps before.

Combiners of several values are not here: a step begins with the members of the step before.
"""


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan.

    Attributes:
        structure, plan: of the step alone, which has no further steps.
        starts: for each result, the first element of the step's part of it, along each axis.
    """

    structure: Structure
    plan: Plan
    starts: tuple[tuple[int, ...], ...]


def takes_steps(plan: Plan) -> bool:
    """Whether a plan has more than one step."""
    return any(n > 1 for n in plan.steps)


def check_steps(structure: Structure, plan: Plan) -> None:
    """Raise ValueError if the steps of a plan do not belong to this structure."""
    dims = structure.space.dims
    for what, given in (("steps", plan.steps), ("ring", plan.ring)):
        if given and len(given) != len(dims):
            raise ValueError(f"{what} of {len(given)} dimensions; the space has {len(dims)}")
    further = plan.combine
    while further is not None:
        if takes_steps(plan) and takes_steps(further):
            raise ValueError(f"combine in steps {list(further.steps)}, within steps; need one step")
        further = further.combine
    merged = structure.body.combiner
    for d, n in enumerate(plan.steps):
        dim = dims[d]
        if n == 1:
            continue
        if structure.is_never_cut(d):
            raise ValueError(f"dimension {dim.name}: {n} steps; it is never cut")
        if n > max(dim.size, 1) or dim.size % n:
            raise ValueError(f"dimension {dim.name}: {n} steps of {dim.size}; need a divisor")
        if dim.size // n < plan.split[d]:
            raise ValueError(
                f"dimension {dim.name}: {n} steps of {dim.size // n} elements in "
                f"{plan.split[d]} parts; need an element each"
            )
        if dim.kind == "reduction" and merged not in ADDS and merged not in TUPLE_COMBINERS:
            raise ValueError(f"dimension {dim.name}: no function of a chain merges its steps")
    for d, r in enumerate(plan.ring):
        if r >= 0:
            _check_ring(structure.space, plan, d, r)


def _check_ring(space: Space, plan: Plan, d: int, r: int) -> None:
    dims = space.dims
    if not 0 <= r < len(dims) or dims[r].kind != "parallel" or dims[d].kind != "reduction":
        raise ValueError(
            f"dimension {dims[d].name}: need a reduction that goes round a parallel one"
        )
    steps = plan.steps[d] if plan.steps else 1
    if steps == 1:
        raise ValueError(
            f"dimension {dims[d].name}: it goes round {dims[r].name} in 1 step; need 2 or more"
        )
    if plan.split[d] > 1 or plan.split[r] % steps or dims[r].size % plan.split[r]:
        raise ValueError(
            f"dimension {dims[d].name}: {steps} steps round {plan.split[r]} parts of "
            f"{dims[r].size}; need equal parts, as many as steps or a multiple"
        )
    if plan.steps[r] > 1 or sum(r == other for other in plan.ring) > 1:
        raise ValueError(f"dimension {dims[r].name}: a ring takes no steps, and one goes round it")
    chips = plan.across[r] if plan.across else 1
    if plan.split[r] // chips % plan.steps[d]:
        raise ValueError(
            f"dimension {dims[r].name}: {plan.split[r]} parts across {chips} chips; need a "
            f"multiple of {plan.steps[d]} on each, so that a ring stays on its chip"
        )
    if any(d == e and not _is_plain(a, dims) for a in space.axes for e, _ in a.terms):
        raise ValueError(
            f"dimension {dims[d].name}: an axis that goes round has no other dimension"
        )


def _is_plain(axis: AxisMap, dims: tuple[Dim, ...]) -> bool:
    """Whether an axis is the whole of one dimension."""
    return [(dims[d].size, a) for d, a in axis.terms] == [(axis.size, 1)] and not axis.offset


def passes_of(structure: Structure, plan: Plan) -> Iterator[tuple[PlanStep, ...]]:
    """The steps of a plan in order: for each part of the result, the steps that add up to it.

    Raises ValueError as check_steps does.
    """
    check_steps(structure, plan)
    kept = structure.space.of_kind("parallel", "whole")
    merged = structure.space.of_kind("reduction")
    for place in product(*(range(plan.steps[d]) for d in kept)):
        found: list[PlanStep] = []
        for turn in product(*(range(plan.steps[d]) for d in merged)):
            at = dict(zip((*kept, *merged), (*place, *turn), strict=True))
            found.append(_step(structure, plan, tuple(at[d] for d in range(len(plan.steps)))))
        yield tuple(found)


def _step(structure: Structure, plan: Plan, at: tuple[int, ...]) -> PlanStep:
    """The step with these numbers, one along each dimension."""
    rings = tuple((d, r) for d, r in enumerate(plan.ring) if r >= 0)
    parts = tuple(plan.split[r] for _, r in rings)
    part, starts = _part(structure, plan.steps, rings, parts, at)
    return PlanStep(part, _plan_of_part(plan, len(structure.space.dims), rings), starts)


@lru_cache(maxsize=8192)
def _part(
    structure: Structure,
    steps: tuple[int, ...],
    rings: tuple[tuple[int, int], ...],
    parts: tuple[int, ...],
    at: tuple[int, ...],
) -> tuple[Structure, tuple[tuple[int, ...], ...]]:
    """The structure of a step, and the first element of its part of each result.

    Args:
        rings: pairs of a reduction and the dimension around whose tiles it rotates.
        parts: the parts of each ring.
    """
    space = structure.space
    sizes, dims, results = _sizes_of_parts(space, steps)
    first = tuple(i * size for i, size in zip(at, sizes, strict=True))
    rotated = {d for d, _ in rings}

    def narrowed(axis: AxisMap) -> AxisMap:
        # Runs for every step; calling the constructor is several times as fast as replace().
        return AxisMap(
            axis.size,
            axis.terms,
            axis.offset + sum(a * first[d] for d, a in axis.terms),
            axis.divisor,
            axis.division,
            "wrap" if any(d in rotated for d, _ in axis.terms) else axis.outside,
        )

    operands = tuple(
        AccessMap(tuple(map(narrowed, access.axes)), access.fill) for access in space.operands
    )
    starts = tuple(
        tuple(first[axis.terms[0][0]] if axis.terms else 0 for axis in access.axes)
        for access in space.results
    )
    relations = tuple(replace(r, axis=narrowed(r.axis)) for r in space.relations)
    positions = tuple(each.mapped(narrowed) for each in space.positions)
    part = Space(dims, operands, results, relations, positions)
    return Structure(_in_rings(part, steps, rings, parts), structure.body), starts


@lru_cache(maxsize=1024)
def _sizes_of_parts(
    space: Space, steps: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[Dim, ...], tuple[AccessMap, ...]]:
    """The sizes of the dimensions of a step, the dimensions, and the maps of results."""
    sizes = tuple(dim.size // n for dim, n in zip(space.dims, steps, strict=True))
    dims = tuple(replace(dim, size=n) for dim, n in zip(space.dims, sizes, strict=True))
    results = tuple(
        replace(
            access,
            axes=tuple(
                replace(axis, size=sizes[axis.terms[0][0]]) if axis.terms else axis
                for axis in access.axes
            ),
        )
        for access in space.results
    )
    return sizes, dims, results


def _plan_of_part(plan: Plan, rank: int, rings: tuple[tuple[int, int], ...]) -> Plan:
    """The plan of each step, which has no further steps.

    The dimensions of a ring have the numbers that _in_rings gives them.

    Args:
        rank: dimensions of the whole space.
    """
    split, order, workers = list(plan.split), list(plan.order), list(plan.workers)
    across = list(plan.across)
    for i, (d, r) in enumerate(rings):
        steps, rounds, tiles = plan.steps[d], rank + 2 * i, rank + 2 * i + 1
        order = [e for f in order for e in ((rounds, tiles, r) if f == r else (f,))]
        split = [*(1 if e == r else n for e, n in enumerate(split)), split[r] // steps, steps]
        workers = [*workers, 1, 1] if workers else []
        # The tiles of a ring are on one chip.
        across = (
            [*(1 if e == r else n for e, n in enumerate(across)), across[r], 1] if across else []
        )
    return Plan(
        tuple(split),
        tuple(order),
        plan.first_tile,
        plan.method,
        tuple(workers),
        plan.combine,
        across=tuple(across),
        apart=plan.apart,
    )


def _in_rings(
    space: Space,
    steps: tuple[int, ...],
    rings: tuple[tuple[int, int], ...],
    parts: tuple[int, ...],
) -> Space:
    """Give each ring a dimension that numbers its tiles, and let the rotating reduction depend on
    it.

    A ring's dimension r of n elements in p parts becomes three: one of n / p elements and, at the
    end of the space, p / steps rounds of `steps` tiles. The result gets axes for them.
    """
    dims, operands, results = space.dims, space.operands, space.results
    relations: tuple[Relation, ...] = space.relations
    positions: tuple[Position, ...] = space.positions
    for (d, r), count in zip(rings, parts, strict=True):
        turns, block, size, own = steps[d], dims[r].size // count, dims[d].size, len(dims)
        rounds, tiles = own, own + 1
        more = {r: ((rounds, block * turns), (tiles, block)), d: ((tiles, size),)}
        dims = (
            *(replace(dim, size=block) if i == r else dim for i, dim in enumerate(dims)),
            Dim(f"{dims[r].name}r", count // turns),
            Dim(f"{dims[r].name}t", turns),
        )
        operands = tuple(_with_terms(access, more) for access in operands)
        relations = tuple(
            replace(each, axis=_with_terms(AccessMap((each.axis,)), more).axes[0])
            for each in relations
        )
        positions = tuple(replace(p, access=_with_terms(p.access, more)) for p in positions)
        results = tuple(_in_blocks(access, r, (rounds, tiles), dims) for access in results)
    return Space(dims, operands, results, relations, positions)


def _with_terms(access: AccessMap, more: dict[int, tuple[tuple[int, int], ...]]) -> AccessMap:
    """An access map in which some dimensions are sums of several.

    Args:
        more: for each such dimension, the dimensions to add, each with its coefficient.
    """
    return replace(
        access,
        axes=tuple(
            replace(
                axis,
                terms=axis.terms
                + tuple((e, a * n) for d, a in axis.terms for e, n in more.get(d, ())),
            )
            for axis in access.axes
        ),
    )


def _in_blocks(
    access: AccessMap, r: int, outer: tuple[int, int], dims: tuple[Dim, ...]
) -> AccessMap:
    """A result map whose axis along a ring is split into three: rounds, tiles, elements of a
    tile."""
    axes: list[AxisMap] = []
    for axis in access.axes:
        if axis.terms == ((r, 1),):
            axes += [_axis(dims[e].size, e) for e in (*outer, r)]
        else:
            axes.append(axis)
    return replace(access, axes=tuple(axes))


def _axis(size: int, dim: int) -> AxisMap:
    return AxisMap(size, ((dim, 1),) if size > 1 else ())


def adding(structure: Structure, chain: bool) -> Structure:
    """The structure of a step that adds to the result of an earlier step.

    The earlier result is a further operand, after the structure's own; for a combiner of several
    values, each member is one.

    Args:
        chain: whether this is the last step, which applies the chain or finishes the members.
    """
    own = structure.own_operands
    if structure.body.tuple_combiner is not None:
        ends = structure if chain else structure.partial
        members = (AccessMap(ends.space.results[0].axes),) * len(ends.body.member_kinds)
        return Structure(
            replace(ends.space, operands=(*ends.space.operands[:own], *members)),
            replace(ends.body, resumes=True),
        )
    body, space = structure.body, structure.space
    assert body.combiner is not None
    left = AccessMap(space.results[0].axes)
    extras, then = (space.operands[own:], body.then) if chain else ((), ())
    # The operands from the earlier step come before those of the chain.
    positions = structure.chain_coordinates(structure.own_places + 1) if chain else ()
    return Structure(
        replace(space, operands=(*space.operands[:own], left, *extras), positions=positions),
        replace(body, then=(Stage(ADDS[body.combiner]), *(stage.after(1) for stage in then))),
    )


def part_shape(structure: Structure, plan: Plan, result: int = 0) -> tuple[int, ...]:
    """The shape of one step's part of a result."""
    axes = structure.space.results[result].axes
    return tuple(
        axis.size // plan.steps[axis.terms[0][0]] if axis.terms else axis.size for axis in axes
    )


def move_into(part: Sequence[int], start: Sequence[int], whole: Sequence[int]) -> Space:
    """The move of a part of a tensor into the whole tensor.

    Args:
        start: its first element.
    """
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(part))
    there = tuple(
        AxisMap(n, ((i, 1),), at) for i, (n, at) in enumerate(zip(whole, start, strict=True))
    )
    return Space(dims, (identity_map(tuple(range(len(part))), tuple(part)),), (AccessMap(there),))


# Layouts of whole tensors, over all steps


def result_over_steps(plan: Plan, step: PlanStep, layout: Layout, result: int = 0) -> Layout:
    """The layout of a whole result, from the layout of each step's part."""
    axes = step.structure.space.results[result].axes
    cuts = [
        (i, plan.steps[d], axis.size)
        for i, axis in enumerate(axes)
        for d, _ in axis.terms
        if d < len(plan.steps) and plan.steps[d] > 1
    ]
    return _side_by_side(layout, cuts)


def home_over_steps(
    structure: Structure, plan: Plan, operand: int, layout: Layout
) -> Layout | None:
    """The layout of a whole operand, from the layout of the first step's part.

    None if parts overlap, or if a tile needs another part at each step of a ring.
    """
    space = structure.space
    access = space.operands[operand]
    cuts: list[tuple[int, int, int]] = []
    for i, axis in enumerate(access.axes):
        for d, _ in axis.terms:
            if plan.steps[d] == 1:
                continue
            if plan.ring and plan.ring[d] >= 0:
                if plan.ring[d] in access.dims():
                    return None
            elif not _is_plain(axis, space.dims):
                return None
            else:
                cuts.append((i, plan.steps[d], axis.size // plan.steps[d]))
    return _side_by_side(layout, cuts)


def _side_by_side(layout: Layout, cuts: list[tuple[int, int, int]]) -> Layout:
    """The layout of a tensor whose axes are cut into parts, each laid out like the first part.

    Every tile holds its block of each part: an axis is viewed as two, the parts and the elements of
    one.

    Args:
        cuts: (axis, number of parts, elements of a part).
    """
    grid, axes = list(layout.grid), list(layout.access.axes)
    for i, steps, size in sorted(cuts, reverse=True):
        axes[i] = replace(axes[i], size=size, offset=0)
        axes.insert(i, AxisMap(steps, ((len(grid), 1),)))
        grid.append(Cut(steps))
    access = AccessMap(tuple(axes), layout.access.fill)
    return canonical(Layout(tuple(grid), access, layout.first_tile, layout.apart))
