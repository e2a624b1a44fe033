"""Find nodes whose values wait where a tile is fullest and could be computed again instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...backends.memory import MemoryReport
from ...backends.reference import tensor_kind
from ...dialects import nn
from ...dialects.structured import Reinterpretation
from ...ir.node_names import node_names, operations_named
from ...ir.provenance import origin
from ...ir.upstream import ModuleOp
from ...ir.xdsl.walk import operations
from ...passes.analysis.waiting import Moments, moments
from ...passes.plans.fused import FusedGroups
from ...passes.recompute import is_repeatable

SMALL = 8
"""A value can be computed again from values that are smaller by this factor; those then live on."""

STORED = (nn.LoadOp, nn.ConstantOp)
"""Operations whose results always live."""

_OPERAND = re.compile(r"(.+)/in(\d+)")
"""The origin of a value laid out for an operation: that operation's origin and operand number."""


def recomputable(report: MemoryReport, module: ModuleOp) -> tuple[str, ...]:
    """Names of nodes whose values wait in the fullest tile's worst superstep but need not.

    The largest values come first. What a named node reads lives anyway when the node is computed
    again, or is far smaller, or can itself be computed again; then its node is named, too. A node
    that another one relies on is not named.

    Args:
        module: the program at nn.
    """
    FusedGroups(module).fuse()
    ops = [op for op in operations(module) if is_repeatable(op)]
    choice = _Choice()
    for ways in _waiting(report, ops):
        any(choice.takes(way) for way in ways)
    return tuple(dict.fromkeys(_spelled(op, ops) for op in choice.taken))


@dataclass(frozen=True)
class _Way:
    """Operations that could be named so that a value does not wait.

    Attributes:
        anew: naming them lays out again what they read; otherwise it computes them again.
    """

    ops: tuple[Operation, ...]
    anew: bool


def _waiting(report: MemoryReport, ops: Iterable[Operation]) -> list[list[_Way]]:
    """For each variable that waits, largest first, the ways to avoid that, best first.

    A value that was laid out for an operation is either computed again or laid out again.
    """
    by_origin: dict[str, list[Operation]] = {}
    for op in ops:
        if (name := origin(op)) is not None:
            by_origin.setdefault(name, []).append(op)
    waiting: dict[tuple[str | None, ...], int] = {}
    for v in report.variables:
        if v.waits and v.origin is not None:
            names = _laid_out_for(v.origin, by_origin) or (v.origin,)
            waiting[names] = waiting.get(names, 0) + v.bytes
    return [
        [_Way(tuple(by_origin[n]), i > 0) for i, n in enumerate(names) if n in by_origin]
        for names in sorted(waiting, key=lambda names: -waiting[names])
    ]


def _laid_out_for(
    path: str, by_origin: Mapping[str, Sequence[Operation]]
) -> tuple[()] | tuple[str | None, str]:
    """The origins of the operation that made a value and of the one it was laid out for.

    Returns () for a value that was not laid out for an operation.

    Args:
        path: the value's own origin.
    """
    found = _OPERAND.fullmatch(path)
    if found is None:
        return ()
    reader, index = found[1], int(found[2])
    for op in by_origin.get(reader, ()):
        if index < len(op.operands):
            owner = _unshaped(op.operands[index]).owner
            return origin(owner) if isinstance(owner, Operation) else None, reader
    return ()


@dataclass
class _Choice:
    """What is computed again, and what must live on for that.

    Attributes:
        taken: in order.
    """

    taken: dict[Operation, None] = field(default_factory=dict[Operation, None])
    relied: set[Operation] = field(default_factory=set[Operation])
    blocks: dict[Block, Moments] = field(default_factory=dict[Block, Moments])

    def takes(self, way: _Way) -> bool:
        """Take a way, unless it has no effect or needs values that others changed."""
        need = _Need(self)
        possible = all([need.computing(op) for op in way.ops])
        useful = need.anew if way.anew else need.late
        clash = need.computed.keys() & self.relied or need.relied & self.taken.keys()
        if not possible or not useful or clash:
            return False
        self.taken |= need.computed
        self.relied |= need.relied
        return True

    def moments(self, block: Block) -> Moments:
        """The moments of a block, computed once."""
        if block not in self.blocks:
            self.blocks[block] = moments(block)
        return self.blocks[block]


@dataclass
class _Need:
    """What computing some operations again would need, and its effect.

    Attributes:
        computed: everything that is computed again.
        relied: what must live on and does so anyway.
        late: whether any operation is computed again.
        anew: whether any of their operands is laid out again.
        known: whether the operands of an operation exist at an index.
    """

    choice: _Choice
    computed: dict[Operation, None] = field(default_factory=dict[Operation, None])
    relied: set[Operation] = field(default_factory=set[Operation])
    late: bool = False
    anew: bool = False
    known: dict[tuple[Operation, int], bool] = field(
        default_factory=dict[tuple[Operation, int], bool]
    )

    def computing(self, op: Operation) -> bool:
        """Whether an operation can be computed again wherever it is read after a long wait."""
        assert op.parent is not None
        when = self.choice.moments(op.parent)
        late = when.stays(r for v in op.results for r in when.readers_in_any_shape(v))[1:]
        self.late |= bool(late)
        self.anew |= any(len(when.stays(when.readers(value))) > 1 for value in op.operands)
        self.computed[op] = None
        return all(self._there(op, when, stay[0].at) for stay in late)

    def _there(self, op: Operation, when: Moments, at: int) -> bool:
        """Whether all operands of an operation exist at an index of its block."""
        made = sum(map(_bytes, op.results))
        return all([self._lives(_unshaped(value), when, at, made) for value in op.operands])

    def _lives(self, source: SSAValue, when: Moments, at: int, made: int) -> bool:
        """Whether a value lives at an index, may live on until then, or can be computed there.

        Args:
            made: the bytes of what is computed from it.
        """
        owner = source.owner
        here = owner if isinstance(owner, Block) else owner.parent
        # A value from outside of a region lives as long as the operation with the region runs.
        if isinstance(owner, STORED) or here is not when.block:
            return True
        reads = any(each.at >= at for each in when.readers_in_any_shape(source))
        if reads or SMALL * _bytes(source) <= made:
            if isinstance(owner, Operation):
                self.relied.add(owner)
            return True
        if isinstance(owner, Block) or not is_repeatable(owner) or not node_names(owner):
            return False
        self.computed[owner] = None
        if (owner, at) not in self.known:
            self.known[owner, at] = self._there(owner, when, at)
        return self.known[owner, at]


def _unshaped(value: SSAValue) -> SSAValue:
    """The operand of a reshape, through all reshapes."""
    while isinstance(value, OpResult) and isinstance(value.op, Reinterpretation):
        (value,) = value.op.operands
    return value


def _bytes(value: SSAValue) -> int:
    shape, dtype = tensor_kind(value.type)
    return prod(shape) * dtype.itemsize


def _spelled(op: Operation, ops: Sequence[Operation]) -> str:
    """The shortest name of an operation that is unique, or the names of all its nodes."""
    own = [each for each in ops if origin(each) == origin(op)]
    names = sorted(node_names(op), key=len)
    return next((name for name in names if operations_named(name, ops) == own), names[-1])
