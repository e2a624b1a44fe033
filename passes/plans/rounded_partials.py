"""The stochastic rounding that a narrow sum keeps where it leaves partial sums.

The chain of such a sum begins with a rounding by random words (`Body.rounding_of_sums`). Where the
sum is computed in several parts or steps, each of them is stored in the narrow type, so each keeps
that rounding. Two partial sums of one element must not have the same words. So the place of a part
in the sum is added to the row that its words are made of: part p of P in step s has the row

    row + rows * (s * P + p)

Within a part, the place is the number of the chain of products (backends/codelets/ordered.py).
"""

from __future__ import annotations

from dataclasses import replace

from ...dialects.structured import Structure, extras_of
from ...ir.geometry.space import AccessMap, AxisMap, Position

ROW = 1
"""The row among the further operands of a stochastic rounding."""


def begins_with_rounding(structure: Structure) -> bool:
    """Whether a sum keeps its rounding where it leaves partial sums: it can say their places."""
    if structure.body.rounding_of_sums != 0:
        return False
    row = structure.own_places + ROW
    return any(each.operand == row for each in structure.space.coordinates)


def rounding_operands(structure: Structure) -> range:
    """The operands of the space that the rounding at the beginning of a chain reads."""
    own, first = structure.own_places, structure.own_operands
    stage = structure.body.then[0]
    chained = structure.chain_coordinates()
    absorbed = sum(own <= each.operand < own + stage.extras for each in chained)
    return range(first, first + stage.extras - absorbed)


def keeping_rounding(partial: Structure, whole: Structure) -> Structure:
    """The structure of a part of a sum with the rounding at the beginning of the whole's chain.

    Its operands follow those of the part.

    Args:
        partial: without a chain, or with the addition of an earlier step's result alone.
    """
    stage, own = whole.body.then[0], whole.own_places
    first = partial.own_places + extras_of(partial.body.then)
    positions = tuple(
        replace(each, operand=each.operand - own + first)
        for each in whole.chain_coordinates()
        if each.operand < own + stage.extras
    )
    maps = tuple(whole.space.operands[i] for i in rounding_operands(whole))
    space = replace(
        partial.space,
        operands=(*partial.space.operands, *maps),
        positions=(*partial.space.positions, *positions),
    )
    return Structure(space, replace(partial.body, then=(*partial.body.then, stage)))


def at_place(structure: Structure, whole: Structure, step: int) -> Structure:
    """A structure whose first rounding knows the place of each part in the sum.

    Args:
        structure: of a step, with a parallel dimension for each reduction that the plan cuts, after
            those of the whole.
        whole: the step's structure before its reductions are cut.
        step: the number of the step among those that add up to the same result.
    """
    body, dims = structure.body, structure.space.dims
    at = body.rounding_of_sums
    assert at is not None
    row = structure.own_places + extras_of(body.then[:at]) + ROW
    parts, places = 1, list[tuple[int, int]]()
    for d in range(len(whole.space.dims), len(dims)):
        places.append((d, parts))
        parts *= dims[d].size

    def moved(position: Position) -> Position:
        if position.operand != row:
            return position
        (axis,) = position.access.axes
        rows = position.first + axis.size
        terms = (*axis.terms, *((d, rows * count) for d, count in places))
        last = rows * (parts - 1 + step * parts)
        made = AxisMap(axis.size + last, terms, axis.offset + rows * parts * step)
        return replace(position, access=AccessMap((made,)))

    positions = tuple(map(moved, structure.space.positions))
    return replace(structure, space=replace(structure.space, positions=positions))
