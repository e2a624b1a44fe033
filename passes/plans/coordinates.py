"""Operations that read an nn.iota as a coordinate, instead of as a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.coordinates import verify_coordinate_dtypes
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Structure, Structured
from ...ir.geometry.space import AccessMap, Position, Space, coordinate
from ...ir.upstream import VerifyException


@dataclass(frozen=True)
class Read:
    """A structure whose nn.iota operands have become coordinates.

    Attributes:
        structure, operands: the new structure, and the operands of its space.
        absorbed: the indices of the old operands that are coordinates now.
    """

    structure: Structure
    operands: tuple[SSAValue, ...]
    absorbed: frozenset[int] = frozenset()


def can_read(op: Operation) -> bool:
    """Whether an operation may read coordinates: it is elementwise and has one result."""
    return isinstance(op, Structured) and len(op.results) == 1


def iota_of(value: SSAValue) -> nn.IotaOp | None:
    """The nn.iota that defines a value, or None."""
    return value.owner if isinstance(value.owner, nn.IotaOp) else None


def reading(
    structure: Structure,
    operands: Sequence[SSAValue],
    result: SSAValue,
    find: Callable[[SSAValue], nn.IotaOp | None] = iota_of,
) -> Read:
    """The structure and its operands, with operands that an nn.iota defines turned into
    coordinates.

    An operand stays a tensor if the body cannot read a coordinate in its place, if its map is more
    than an affine expression, or if the type in which numbers are read cannot hold them.

    Args:
        result: the result of the structure.
        find: returns the nn.iota that a value equals, or None.
    """
    given = tuple(operands)
    iotas = {i: iota for i, value in enumerate(given) if (iota := find(value)) is not None}
    if not iotas:
        return Read(structure, given)
    space, body, own = structure.space, structure.body, structure.own_places
    is_function = body.combiner is None and body.along is None and body.function != "bitcast"
    first = FUNCTIONS[body.function].values if is_function else own
    places = structure.with_coordinates(range(len(given)), [-1] * len(space.coordinates))
    numbers: dict[int, Position] = {}
    for i, iota in iotas.items():
        place = places.index(i)
        found = None if place < first else _coordinate(iota, space, space.operands[i], place)
        if found is not None:
            numbers[i] = found
    kept = [i for i in range(len(given)) if i not in numbers]
    values = tuple(given[i] for i in kept)
    maps = tuple(space.operands[i] for i in kept)
    made = replace(
        structure,
        space=replace(space, operands=maps, positions=(*space.positions, *numbers.values())),
    )
    elements = [nn.element_of(value) for value in (*values, result)]
    try:
        verify_coordinate_dtypes(made, elements)
    except VerifyException:
        return Read(structure, given)
    return Read(made, values, frozenset(numbers))


def _coordinate(iota: nn.IotaOp, space: Space, access: AccessMap, operand: int) -> Position | None:
    """The coordinate that equals an nn.iota read through a map; None if it is no affine
    expression."""
    if access.shape != nn.shape_of(iota.result):
        return None
    start, total = iota.start.value.data, dict[int, int]()
    for axis, step in zip(access.axes, nn.values_of(iota.steps), strict=True):
        if axis.divisor != 1 or axis.outside != "none":
            return None
        start += step * axis.offset
        for d, coefficient in axis.terms:
            total[d] = total.get(d, 0) + step * coefficient
    return coordinate(operand, tuple(total.items()), start, space.sizes)
