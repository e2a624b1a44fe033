"""Groups: operations of nn that one codelet computes, which is a decision and changes no meaning.

    %1 = nn.conv %x, %w stride [1] ... {group = 0, plan = #abele.plan<split [1, 1, 4, 1, 1]>} : ...
    %2 = nn.add %1, %b {group = 0} : ...
    %3 = nn.relu %2 {group = 0} : ...

The members of a group are operations of one block that have the same number and read each other.
The first one, the root, gives the group its space and carries its plan. The others are functions of
elements; each reads the one before it, whose result nothing else reads. So only the result of the
last one exists after conversion to partition.

Numbers that describe no such group, because a rewrite has replaced a member or put an operation in
between, have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Commutative

from ..scalar_functions import chain_operands
from ..structured import Stage, Structure, Structured
from .base import shape_of
from .chain import can_chain, extra_map
from .elementwise import ElementwiseOp

GROUP = "group"
"""The attribute of a group's members. Its value tells the groups of a block apart."""

MOST_MEMBERS = 17
"""The most operations of a group, because a codelet holds all their operands at once. In the nine
light networks it is 5."""


@dataclass(frozen=True, eq=False)
class Group:
    """Operations that are computed as one. members: in program order, two or more."""

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
        found: list[Stage] = []
        for before, op in pairwise(self.members):
            stage = stage_of(op, list(op.operands).index(before.results[0]))
            assert stage is not None
            found.append(stage)
        return tuple(found)

    @cached_property
    def operands(self) -> tuple[SSAValue, ...]:
        """What the group reads: the root's operands, then those of the functions, in order."""
        inner = {op.results[0] for op in self.members}
        rest = (v for op in self.members[1:] for v in op.operands if v not in inner)
        return (*self.root.operands, *rest)

    @cached_property
    def structure(self) -> Structure:
        """The space of the root, with the functions after its body."""
        assert isinstance(self.root, Structured)
        core = self.root.structure()
        (access,) = core.space.results
        shape = shape_of(self.result)
        extras = self.operands[len(self.root.operands) :]
        maps = (extra_map(shape_of(value), shape, access) for value in extras)
        space = replace(core.space, operands=(*core.space.operands, *maps))
        return Structure(space, replace(core.body, then=self.stages))


def number_of_group(op: Operation) -> int | None:
    """The number of the group that an operation says to belong to; None if it says nothing."""
    number = op.attributes.get(GROUP)
    return number.value.data if isinstance(number, IntegerAttr) else None


def groups_of(block: Block) -> tuple[Group, ...]:
    """The groups of a block, in the order of their last members. Incomplete ones are left out."""
    lists: dict[Operation, list[Operation]] = {}
    for op in block.ops:
        number = number_of_group(op)
        if number is None:
            continue
        read = [
            lists[v.owner]
            for v in op.operands
            if isinstance(v.owner, Operation)
            and v.owner in lists
            and number_of_group(v.owner) == number
        ]
        members = [op] if not read else read[0]
        for other in read[1:]:
            if other is not members:
                members += other
                lists.update((each, members) for each in other)
        if read:
            members.append(op)
        lists[op] = members
    found = {id(members): Group(tuple(members)) for members in lists.values() if _is_group(members)}
    return tuple(found.values())


def _is_group(members: Sequence[Operation]) -> bool:
    follow = (can_follow(a, b) for a, b in pairwise(members))
    return 2 <= len(members) <= MOST_MEMBERS and all(follow)


def can_follow(before: Operation, op: Operation) -> bool:
    """Whether an operation can be the member of a group that comes right after another one."""
    places = [i for i, v in enumerate(op.operands) if v.owner is before]
    return (
        len(places) == 1
        and can_chain(before)
        and before.parent is op.parent
        and before.results[0].has_one_use()
        and stage_of(op, places[0]) is not None
    )


def stage_of(op: Operation, at: int) -> Stage | None:
    """The function that follows if an operation is computed together with its operand number at.

    The stage's extras are the other operands, in order. None if it cannot follow: its function may
    not, or it has other element types, enlarges the value, or reads it twice.
    """
    if not isinstance(op, ElementwiseOp) or not can_chain(op):
        return None
    value = op.operands[at]
    if value.type != op.result.type or list(op.operands).count(value) > 1:
        return None
    allowed = chain_operands(op.function)
    # Swapping the operands of a commutative function changes no bit.
    place = 0 if op.has_trait(Commutative) and 0 in allowed else at
    if place not in allowed:
        return None
    return Stage(op.function, op.parameters, place)


def join(number: int, members: Iterable[Operation]) -> None:
    """Write a group's number on operations. Plans go, because they were made for each alone."""
    attribute = IntegerAttr(number, i64)
    for op in members:
        op.attributes[GROUP] = attribute
        op.attributes.pop("plan", None)


def free_number(ops: Iterable[Operation]) -> int:
    """The smallest number of a group that is larger than those of all operations."""
    return 1 + max((n for op in ops if (n := number_of_group(op)) is not None), default=-1)
