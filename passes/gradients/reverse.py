"""The walk from a loss back to what it depends on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.structured import Composite
from .emit import Emitter
from .errors import NoGradient, no_gradient
from .rules import has_rule, passed_back


def is_float(value: SSAValue) -> bool:
    """Whether a value is a tensor of floats; gradients flow through no others."""
    type_ = value.type
    return isinstance(getattr(type_, "element_type", None), AnyFloat)


def on_the_way(
    block: Block, start: Collection[SSAValue], end: Collection[SSAValue]
) -> list[Operation]:
    """The operations of a block through which values of `end` depend on some of `start`.

    Only dependence through floats counts: an integer has no gradient, and passes none on.
    """
    reached, readers = set(start), list[Operation]()
    for op in block.ops:
        if any(v in reached for v in _reads(op)):
            readers.append(op)
            reached.update(v for v in op.results if is_float(v))
    needed, found = set(end), list[Operation]()
    for op in reversed(readers):
        if any(v in needed for v in op.results if is_float(v)):
            found.append(op)
            needed.update(_reads(op))
    return found[::-1]


def _reads(op: Operation) -> list[SSAValue]:
    """The floats that an operation reads, those of its regions included."""
    inner = op.walk() if op.regions else (op,)
    return [v for each in inner for v in each.operands if is_float(v)]


def first_composites(
    block: Block, start: Collection[SSAValue], end: Collection[SSAValue]
) -> list[Operation]:
    """The composites on the way that have no rule of their own: they must be decomposed first."""
    way = on_the_way(block, start, end)
    return [op for op in way if isinstance(op, Composite) and not has_rule(op)]


@dataclass
class Backward:
    """The gradients of values of a block, as they are found.

    waiting: for each value, what its readers have passed back so far.
    """

    emit: Emitter
    waiting: dict[SSAValue, list[SSAValue]] = field(
        default_factory=dict[SSAValue, "list[SSAValue]"]
    )

    def run(
        self, block: Block, wanted: Sequence[SSAValue], given: Mapping[SSAValue, SSAValue]
    ) -> dict[SSAValue, SSAValue]:
        """The gradients of wanted values. A value that the given ones do not depend on has none.

        given: the gradients of some values. Raises InputError for an operation on the way that has
        no gradient.
        """
        way = on_the_way(block, wanted, given.keys())
        reached = {*wanted, *(v for op in way for v in op.results)}
        for value, gradient in given.items():
            self.waiting.setdefault(value, []).append(gradient)
        for op in reversed(way):
            self._differentiate(op, reached)
        found: dict[SSAValue, SSAValue] = {}
        for value in wanted:
            total = self._total(value)
            if total is not None:
                found[value] = total
        return found

    def _differentiate(self, op: Operation, reached: Collection[SSAValue]) -> None:
        self.emit.source = op
        gradients = [self._total(v) for v in op.results]
        if all(each is None for each in gradients):
            return
        wanted = [i for i, v in enumerate(op.operands) if v in reached and is_float(v)]
        try:
            if op.regions:
                raise NoGradient("has no gradient yet")
            found = passed_back(self.emit, op, gradients, wanted)
        except NoGradient as error:
            raise no_gradient(op, str(error)) from None
        for i, gradient in found.items():
            self.waiting.setdefault(op.operands[i], []).append(gradient)

    def _total(self, value: SSAValue) -> SSAValue | None:
        """The sum of what the readers of a value have passed back; None if they passed nothing."""
        parts = self.waiting.get(value)
        if not parts:
            return None
        if len(parts) > 1:
            self.waiting[value] = parts = [self.emit.add(parts)]
        return parts[0]
