"""Groups: operations of nn that one codelet computes, which is a decision and changes no meaning.

    %1 = nn.conv %x, %w stride [1] ... {group = 0, plan = #abele.plan<split [1, 1, 4, 1, 1]>} : ...
    %2 = nn.add %1, %b {group = 0} : ...
    %3 = nn.relu %2 {group = 0} : ...

The members of a group are operations of one block that have the same number and read each other.
The first one, the root, gives the group its space and carries its plan. The others are functions of
elements, each of one or more members before it. Only the result of the last one is read by others,
so only that exists after conversion to partition.

Numbers that describe no such group, because a rewrite has replaced a member or put an operation in
between, have no effect.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import ml_dtypes
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue

from ...ir.geometry.space import AccessMap, Position
from ...ir.support.number_kinds import is_whole, whole_limits
from ..dtypes import numpy_dtype
from ..scalar_functions import FUNCTIONS, chain_operands
from ..structured import CASTS, FURTHER, HELD, LAST, Stage, Structure, Structured, extras_of
from .base import element_of, shape_of
from .chain import can_chain, composed
from .elementwise import CastOp, ElementwiseOp
from .generic import ComputeOp

GROUP = "group"
"""The attribute of a group's members. Its value tells the groups of a block apart."""

MOST_MEMBERS = 17
"""The most operations of a group, because a codelet holds all their operands at once. In the nine
light networks it is 5."""


@dataclass(frozen=True, eq=False)
class Group:
    """Operations that are computed as one.

    Attributes:
        members: in program order, two or more.
    """

    members: tuple[Operation, ...]

    @property
    def root(self) -> Operation:
        """The member whose space the group has, and which carries the plan."""
        return self.members[0]

    @property
    def result(self) -> SSAValue:
        """The only value of the group that others read."""
        return self.members[-1].results[0]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The functions of the members after the root."""
        places: dict[SSAValue, int] = {op.results[0]: i for i, op in enumerate(self.members)}
        stages = [_stage(op, places, i) for i, op in enumerate(self.members) if i]
        assert all(stages)
        return tuple(stage for stage in stages if stage is not None)

    @cached_property
    def operands(self) -> tuple[SSAValue, ...]:
        """What the group reads: the root's operands, then those of the functions, in order."""
        inner = {op.results[0] for op in self.members}
        rest = (v for op in self.members[1:] for v in op.operands if v not in inner)
        return (*self.root.operands, *rest)

    @cached_property
    def structure(self) -> Structure:
        """The structure of the group: the root's space, and the other members as stages after its
        body.
        """
        assert isinstance(self.root, Structured)
        core = self.root.structure()
        (access,) = core.space.results
        shape = shape_of(self.result)
        inner = {op.results[0] for op in self.members}
        maps: list[AccessMap] = []
        numbers: list[Position] = []
        place = core.own_places + extras_of(core.body.then)
        for op in self.members[1:]:
            own = _structure(op)
            target, coordinates = own.space.results[0], own.space.coordinates
            values = own.with_coordinates([*op.operands], [None] * len(coordinates))
            reads = own.with_coordinates(own.space.operands, [each.access for each in coordinates])
            taken = iter(coordinates)
            for value, read in zip(values, reads, strict=True):
                if value in inner:
                    continue
                found = composed(read, target, shape, access)
                if value is None:
                    numbers.append(replace(next(taken), access=found, operand=place))
                else:
                    maps.append(found)
                place += 1
        space = replace(
            core.space,
            operands=(*core.space.operands, *maps),
            positions=(*core.space.positions, *numbers),
        )
        first = len(core.body.then)
        stages = (*core.body.then, *(stage.after(first) for stage in self.stages))
        return Structure(space, replace(core.body, then=stages))


def _structure(op: Operation) -> Structure:
    assert isinstance(op, Structured)
    return op.structure()


def number_of_group(op: Operation) -> int | None:
    """The group number in an operation's attribute; None if it has none."""
    number = op.attributes.get(GROUP)
    return number.value.data if isinstance(number, IntegerAttr) else None


def groups_of(block: Block) -> tuple[Group, ...]:
    """The groups of a block, in the order of their last members. Incomplete ones are left out."""
    lists: dict[Operation, list[Operation]] = {}
    for op in block.ops:
        number = number_of_group(op)
        if number is None:
            continue
        owners = (value.owner for value in op.operands)
        read = [
            lists[owner]
            for owner in owners
            if isinstance(owner, Operation) and owner in lists and number_of_group(owner) == number
        ]
        members = read[0] if read else []
        for other in read[1:]:
            if other is not members:
                members += other
                lists.update((each, members) for each in other)
        members.append(op)
        lists[op] = members
    # Each list appears once per member.
    found = {id(members): members for members in lists.values()}
    return tuple(Group(tuple(members)) for members in found.values() if is_group(members))


def is_group(members: Sequence[Operation]) -> bool:
    """Whether operations, in program order, can be the members of a group."""
    root, *rest = members
    if not rest or len(members) > MOST_MEMBERS or not can_begin(root):
        return False
    block = root.parent
    places: dict[SSAValue, int] = {root.results[0]: 0}
    shape = shape_of(root.results[0])
    for i, op in enumerate(rest, 1):
        if op.parent is not block or [shape_of(r) for r in op.results] != [shape]:
            return False
        if _stage(op, places, i) is None or _decides_by_range(op, places):
            return False
        places[op.results[0]] = i
    if not _fits_one_register(members):
        return False
    inside = set(members)
    return all(use.operation in inside for op in members[:-1] for use in op.results[0].uses)


def can_begin(root: Operation) -> bool:
    """Whether functions may follow an operation: its result is floats, or it is elementwise
    itself."""
    if can_chain(root):
        return True
    if isinstance(root, CastOp):
        # A narrower result would be rounded, but the group would keep the unrounded value.
        return isinstance(element_of(root.results[0]), Float32Type | Float64Type)
    return isinstance(root, ElementwiseOp) and FUNCTIONS[_structure(root).body.function].boolean


def _fits_one_register(members: Sequence[Operation]) -> bool:
    """Whether one type holds every value that the stages of a group read or compute.

    The group computes in float64 if all floats are float64, else in float32.
    """
    last = members[-1]
    inner = {op.results[0] for op in members}
    values = {v for op in members[1:] for v in op.operands if v not in inner}
    types = {element_of(v) for v in (*values, *inner)}
    if len(types) == 1 and can_chain(last):
        return True
    if any(_structure(op).space.coordinates for op in members):
        # Coordinates are read as numbers of the result's type.
        return False
    root = [element_of(v) for v in members[0].operands]
    doubles = [t for t in (*types, *root) if isinstance(t, Float64Type)]
    narrower = [t for t in (*types, *root) if isinstance(t, AnyFloat) and t not in doubles]
    if doubles and narrower:
        return False
    made = element_of(last.results[0])
    if str(made) in LAST and isinstance(last, CastOp):
        types = {element_of(v) for v in (*values, *(inner - {last.results[0]}))}
    return all(str(each) in HELD or each in doubles for each in types)


def _decides_by_range(op: Operation, values: Container[SSAValue]) -> bool:
    """Whether an operation turns a value of a group that exceeds its type's range into a wrong
    result.

    A group keeps a narrow float in float32, which holds larger numbers: a value that is infinite as
    float16 stays finite, until a cast rounds it. A comparison of such a value may give another
    truth value, and a cast to an integer type with larger numbers another integer.

    Args:
        values: the values of the group.
    """
    made = element_of(op.results[0])
    if isinstance(made, AnyFloat):
        return False
    for value in op.operands:
        narrow = element_of(value)
        kept = value in values and not isinstance(value.owner, CastOp)
        if kept and isinstance(narrow, Float16Type | BFloat16Type):
            dtype = numpy_dtype(made)
            largest = float(cast(Any, ml_dtypes.finfo(numpy_dtype(narrow))).max)
            if not is_whole(dtype) or whole_limits(dtype).max > largest:
                return True
    return False


def is_pointwise(op: Operation) -> bool:
    """Whether an operation is an elementwise function that may follow another operation.

    Each element of its result must be computed from one element of each operand. Numbers must be
    floats, except in a cast, a comparison or a selection.
    """
    if isinstance(op, CastOp):
        return True
    if isinstance(op, ElementwiseOp):
        function = FUNCTIONS[_structure(op).body.function]
        return can_chain(op) or function.boolean or function.selects
    if not isinstance(op, ComputeOp) or not can_chain(op):
        return False
    space, body = op.space.data, op.body.data
    is_alone = body.combiner is None and body.along is None and not body.then
    return is_alone and not space.of_kind("whole")


def can_follow(before: Operation, op: Operation) -> bool:
    """Whether two operations can be a group."""
    return is_group((before, op))


def _stage(op: Operation, places: Mapping[SSAValue, int], i: int) -> Stage | None:
    """A member of a group as a stage; None if its function cannot be a stage.

    Args:
        places: the number of the value of each earlier member, by result.
        i: the member's own number.
    """
    if not is_pointwise(op):
        return None
    structure = _structure(op)
    space, body = structure.space, structure.body
    if any(
        access != space.results[0]
        for value, access in zip(op.operands, space.operands, strict=True)
        if value in places
    ):
        return None
    of_operands = [places.get(value, FURTHER) for value in op.operands]
    reads = tuple(structure.with_coordinates(of_operands, [FURTHER] * len(space.coordinates)))
    inner = [at for at, k in enumerate(reads) if k != FURTHER]
    allowed = chain_operands(body.function)
    # Swapping the operands of a commutative function changes no bit.
    swaps = FUNCTIONS[body.function].commutative and 0 in allowed
    if not inner or not (swaps or set(inner) <= set(allowed)):
        return None
    element = str(element_of(op.results[0])) if isinstance(op, CastOp) else ""
    if element not in ("", *CASTS):
        return None
    if len(inner) == 1 and reads[inner[0]] == i - 1:
        at = 0 if swaps else inner[0]
        return Stage(body.function, body.parameters, at, (), element)
    return Stage(body.function, body.parameters, 0, reads, element)


def stage_of(op: Operation, at: int) -> Stage | None:
    """The stage that computes an operation together with the producer of its operand number `at`.

    The other operands, in order, are the stage's further operands. None if the function cannot be a
    stage, the element types differ, or the operation broadcasts the value.
    """
    if op.operands[at].type != op.results[0].type:
        return None
    return _stage(op, {op.operands[at]: 0}, 1)


def join(number: int, members: Iterable[Operation]) -> None:
    """Write a group's number on operations, and remove their plans, which were made for each
    operation alone.
    """
    attribute = IntegerAttr(number, i64)
    for op in members:
        op.attributes[GROUP] = attribute
        op.attributes.pop("plan", None)


def free_number(ops: Iterable[Operation]) -> int:
    """The smallest group number above those of all given operations."""
    return 1 + max((n for op in ops if (n := number_of_group(op)) is not None), default=-1)
