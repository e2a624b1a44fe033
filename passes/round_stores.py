"""The pass that says how results of 16 bits are rounded, and what replaces too large ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from zlib import crc32

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IntegerAttr,
    StringAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects import nn
from ..dialects.dtypes import QUARTERS
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..dialects.scalar_functions import FUNCTIONS
from ..dialects.structured import Structured
from ..ir.edit import Edit, source_at
from ..ir.provenance import at, origin
from ..ir.rewriting import may_rewrite
from ..ir.support.number_formats import Overflow
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from ..ir.xdsl.walk import operations
from .plans.planned import asked_target
from .rounding.places import Places
from .rounding.words import Words

KEEPING = frozenset((None, "max", "min", "pick", "last"))
"""The combiners whose results are values that they merge."""

RULES = {each.name.lower(): each for each in Overflow}

ADDED = 4
"""The most operations that a group gets: a rounding and a cast of its sum, and of its result."""

WITHOUT_WORDS: Mapping[str, type[nn.ToNearestOp | nn.DrawnOp]] = {
    "nearest": nn.ToNearestOp,
    "hardware": nn.DrawnOp,
}
"""The operation of each rounding that reads no words."""


OVERFLOW = "abele.overflow"
"""The module attribute that names the rule by which its stores overflow; infinity without it."""


def overflowing_as(module: ModuleOp, other: ModuleOp) -> ModuleOp:
    """A module of nn whose stores overflow as those of another one do, and round to nearest.

    The other one is made from it by a pipeline. Returns the module itself where stores overflow to
    infinity.
    """
    rule = rule_of(other)
    if rule is Overflow.INFINITY:
        return module
    found = module.clone()
    RoundStores("nearest", cast("Any", rule.name.lower())).apply(Context(), found)
    return found


def rule_of(module: ModuleOp) -> Overflow:
    """The rule by which the stores of a module overflow, at any level."""
    rule = module.attributes.get(OVERFLOW)
    named = rule.data if isinstance(rule, StringAttr) else ""
    return RULES.get(named, Overflow.INFINITY)


@dataclass(frozen=True)
class RoundStores(ModulePass):
    """Round each result of 16 bits as said, where it is stored. nn -> nn, each rounding once more.

    It belongs behind the decisions about groups: a group keeps its values in float32, so only its
    result is rounded. The result becomes float32, and a rounding and a cast follow it, in the same
    group. Results that need no rounding are left, such as those of a maximum or a move. So are
    results of operations that nothing can follow in a group: they are rounded to nearest. A cast
    to an 8-bit float is rounded stochastically too, and so are the elements of a table that indices
    update.

    The words that round stochastically depend on the seed, the number of the run, a key of the
    operation and the place of the element: on nothing that a plan, a group or a copy of the
    operation could change. Iterations of a loop and calls of a function have different words.

    A sum that is kept in 16 bits (narrow_partials) is rounded by words too, each time that it is
    rounded: after a pass of the units, and where a part of it is stored. They depend also on the
    place of the rounding in the sum, and so on the plan.

        %0 = nn.add %x, %y               %0 = nn.add %x, %y {group = 0} : ... -> tensor<4xf32>
            : ... -> tensor<4xf16>       %1 = nn.stochastic %0, %column, %row, %low, %high
                                             key 0.0 digits 11.0 ... {group = 0}
                                         %2 = nn.cast %1 {group = 0} : ... -> tensor<4xf16>

    Attributes:
        rounding: to nearest, or to one of both neighbours, so that the mean is the value;
            hardware for the latter by the generators of the workers, whose words depend on the
            plan, and on all that was rounded before.
        overflow: what a number beyond the range becomes: infinity, clip for the largest number,
            nan; or what the target does.
        target: as for plan-splits.
    """

    name = "round-stores"
    takes = NN
    rounds = True
    skips_other_levels = True

    rounding: Literal["stochastic", "nearest", "hardware"] = "stochastic"
    overflow: Literal["target", "infinity", "clip", "nan"] = "target"
    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        rule = self._rule(op)
        if self.rounding == "nearest" and rule is Overflow.INFINITY:
            return
        rewriting = _Rewriting(op, self.rounding, rule)
        if self.rounding == "stochastic":
            for each in _narrow_sums(op):
                if may_rewrite():
                    first = each.members[0]
                    with Edit(source_at("round the sum", RoundStores.apply), first) as edit:
                        rewriting.round_sum(each, edit)
        for each in _stores(op, self.rounding):
            # A cast to 8 bits rounds to nearest, and gives NaN beyond the range, under every rule.
            is_quarter = nn.element_of(each.last.results[0]) in QUARTERS
            if not (is_quarter and self.rounding == "nearest") and may_rewrite():
                with Edit(source_at("round the result", RoundStores.apply), each.last) as edit:
                    rewriting.round(each, edit)
                if rule is not Overflow.INFINITY:
                    op.attributes[OVERFLOW] = StringAttr(rule.name.lower())
        rewriting.words.count()

    def _rule(self, module: ModuleOp) -> Overflow:
        if self.overflow != "target":
            return RULES[self.overflow]
        return Overflow(asked_target(module, self.target).rounding.overflow)


@dataclass(frozen=True)
class _Store:
    """A result of 16 bits that is stored.

    Attributes:
        members: of the group that computes it; one operation if it has no group.
    """

    members: tuple[Operation, ...]

    @property
    def last(self) -> Operation:
        return self.members[-1]


def _stores(module: ModuleOp, rounding: str) -> list[_Store]:
    """The results of 16 and of 8 bits that a rounding may change, in program order."""
    every, groups = operations(module), _groups(module)
    inner = {op for group in groups for op in group.members[:-1]}
    of_last = {group.members[-1]: group.members for group in groups}
    found = [_Store(of_last.get(op, (op,))) for op in every if op not in inner]
    return [each for each in found if _needs_rounding(each, rounding)]


def _groups(module: ModuleOp) -> list[nn.Group]:
    blocks = dict.fromkeys(op.parent for op in operations(module))
    return [g for block in blocks if block is not None for g in nn.groups_of(block)]


def _narrow_sums(module: ModuleOp) -> list[_Store]:
    """The groups that begin with a sum in 16 bits and go on with it before it is rounded."""
    return [
        _Store(g.members)
        for g in _groups(module)
        if _is_narrow_sum(g.root) and len(g.members) + ADDED <= nn.MOST_MEMBERS
    ]


def _is_narrow_sum(op: Operation) -> bool:
    if not isinstance(op, Structured) or len(op.results) != 1 or not _is_narrow(op.results[0]):
        return False
    body = op.structure().body
    return (body.narrow is not None or body.is_scaled_product) and not body.then


def _needs_rounding(store: _Store, rounding: str) -> bool:
    last = store.last
    if len(last.results) != 1 or not isinstance(last, Structured):
        return False
    if not isinstance(last, nn.CastOp) and not nn.can_chain(last):
        return False
    if not _is_narrow(last.results[0]):
        return False
    if last.structure().body.updates and rounding != "stochastic":
        # A rounding would visit all elements of the table, and draw words for them.
        return False
    element = nn.element_of(last.results[0])
    inner = {op.results[0] for op in store.members}
    read = [v for op in store.members for v in op.operands if v not in inner]
    kept = all(nn.element_of(v) == element or not _is_float(v) for v in read)
    return not (kept and all(_is_exact(op) for op in store.members))


def _is_narrow(value: SSAValue) -> bool:
    element = nn.element_of(value)
    return isinstance(element, Float16Type | BFloat16Type) or element in QUARTERS


def _is_float(value: SSAValue) -> bool:
    return isinstance(nn.element_of(value), type(f32) | Float16Type | BFloat16Type)


def _is_exact(op: Operation) -> bool:
    if not isinstance(op, Structured):
        return False
    body = op.structure().body
    scans = body.along is not None and not body.along.sorts
    functions = (body.function, *(stage.function for stage in body.then))
    known = [FUNCTIONS[each] for each in functions if each in FUNCTIONS]
    keeps = len(known) == len(functions) and all(each.keeps for each in known)
    return body.combiner in KEEPING and not scans and keeps


@dataclass
class _Rewriting:
    """The roundings made so far in a module.

    Attributes:
        seen: how many operations of each origin round stochastically.
    """

    module: ModuleOp
    rounding: str
    rule: Overflow
    seen: Counter[str] = field(default_factory=Counter[str])
    words: Words = field(init=False)
    places: Places = field(default_factory=Places)

    def __post_init__(self) -> None:
        self.words = Words(self.module)

    def round(self, store: _Store, edit: Edit) -> None:
        """Add a rounding to the group of a result, or a group to a result without one."""
        *before, last = store.members
        narrow = nn.element_of(last.results[0])
        # A function gets its numbers, and so a new type, while its results still have theirs.
        self._draw(last, edit)
        if isinstance(last, nn.CastOp):
            made: list[Operation] = []
            if nn.element_of(last.operand) != f32:
                made.append(nn.CastOp(last.operand, f32))
                made[0].location = at(last, "widen")
            value = made[0].results[0] if made else last.operand
            made.append(self._rounding(value, narrow, last, edit))
            for op in made:
                edit.insert(op, InsertPoint.before(last))
            edit.set_operand(last, 0, made[-1].results[0])
            self._join(before, [*made, last], edit)
            return
        result = last.results[0]
        after = last.next_op
        assert after is not None
        wide = nn.tensor(nn.shape_of(result), f32)
        readers = list(result.uses)
        result._type = wide  # pyright: ignore[reportPrivateUsage]
        edit.modified(last)
        self._widen_chain(last, edit)
        rounding = self._rounding(result, narrow, last, edit)
        cast = nn.CastOp(rounding.results[0], narrow)
        cast.location = last.location
        for op in (rounding, cast):
            edit.insert(op, InsertPoint.before(after))
        for use in readers:
            edit.set_operand(use.operation, use.index, cast.results[0])
        cast.results[0].name_hint, result.name_hint = result.name_hint, None
        self._join(store.members, [rounding, cast], edit)

    def round_sum(self, store: _Store, edit: Edit) -> None:
        """Round the sum that a group begins with, where more is done with it before it is stored.

        The words of this rounding also round what the sum is made of: its partial sums.
        """
        root = store.members[0]
        result, narrow = root.results[0], nn.element_of(root.results[0])
        after = root.next_op
        assert after is not None
        readers = list(result.uses)
        self._draw(root, edit)
        result._type = nn.tensor(nn.shape_of(result), f32)  # pyright: ignore[reportPrivateUsage]
        edit.modified(root)
        rounding = self._rounding(result, narrow, root, edit)
        cast = nn.CastOp(rounding.results[0], narrow)
        cast.location = root.location
        number = root.attributes[GROUP]
        for op in (rounding, cast):
            op.attributes[GROUP] = number
            edit.insert(op, InsertPoint.before(after))
        for use in readers:
            edit.set_operand(use.operation, use.index, cast.results[0])

    def _widen_chain(self, last: Operation, edit: Edit) -> None:
        """Widen what the own chain of an operation reads, which has the type of its result."""
        if not isinstance(last, nn.ComputeOp):
            return
        own = last.structure().own_operands
        for i, value in enumerate(last.inputs[own:], own):
            if nn.element_of(value) != f32:
                cast = nn.CastOp(value, f32)
                cast.location = at(last, "widen")
                edit.insert(cast, InsertPoint.before(last))
                edit.set_operand(last, i, cast.results[0])

    def _draw(self, source: Operation, edit: Edit) -> None:
        """Make what a rounding of an operation's result reads."""
        if self.rounding == "stochastic":
            block = source.parent
            assert block is not None
            self.places.of(block, nn.shape_of(source.results[0]), edit)
            self.words.of(block, edit)

    def _rounding(
        self, value: SSAValue, narrow: Attribute, source: Operation, edit: Edit
    ) -> Operation:
        rule = Overflow.NAN if narrow in QUARTERS else self.rule
        if self.rounding in WITHOUT_WORDS:
            made: Operation = WITHOUT_WORDS[self.rounding](value, narrow, rule)
        else:
            block = source.parent
            assert block is not None
            places = self.places.of(block, nn.shape_of(value), edit)
            words = self.words.of(block, edit)
            made = nn.StochasticOp(value, places, words, self._key(source), narrow, rule)
        made.location = at(source, "round")
        return made

    def _key(self, source: Operation) -> float:
        """A key for an operation.

        It follows from where the operation comes from, so that it is the same in a program of one
        step and in one of several.
        """
        name = origin(source) or ""
        key = crc32(f"{name} {self.seen[name]}".encode())
        self.seen[name] += 1
        return float(key)

    def _join(self, members: Sequence[Operation], new: Sequence[Operation], edit: Edit) -> None:
        """Make operations a group with the new ones; the new ones alone if that is too many."""
        number = nn.number_of_group(members[0]) if members else None
        if number is None or not nn.is_group((*members, *new)):
            number = nn.free_number(operations(self.module))
        joined = (*members, *new) if nn.is_group((*members, *new)) else new
        for op in joined:
            op.attributes[GROUP] = IntegerAttr(number, i64)
            edit.modified(op)
