"""The walk back from a loss to the values that it depends on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import f32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import nn
from ...dialects.dtypes import STORED
from ...dialects.structured import Composite
from ...ir.upstream import ModuleOp
from .compute_steps import has_steps
from .control_flow import Flow, Passed, Through, function_of
from .emit import Emitter
from .errors import NoGradient, no_gradient
from .iteration_rows import narrowed
from .rules import Gradients, has_rule, passed_back
from .unit_scaling import UnitScaling
from .way import is_float, on_the_way


def first_composites(
    block: Block, start: Collection[SSAValue], end: Collection[SSAValue]
) -> list[Operation]:
    """The operations between `start` and `end` that must be decomposed, because only their parts
    have rules.

    They are composites without a rule of their own, and operations of several steps, also those in
    regions and in called functions.
    """
    found: dict[Operation, None] = {}
    module = module_of(block)
    called: set[FuncOp] = set()
    for op in on_the_way(block, start, end):
        found.update(dict.fromkeys(_composites_in(module, op, called)))
    return list(found)


def module_of(block: Block) -> ModuleOp:
    """The program that a block is in."""
    found = block.parent_op()
    while found is not None and not isinstance(found, ModuleOp):
        found = found.parent_op()
    assert found is not None
    return found


def _composites_in(module: ModuleOp, op: Operation, called: set[FuncOp]) -> Iterator[Operation]:
    for each in op.walk():
        if has_steps(each) or (isinstance(each, Composite) and not has_rule(each)):
            yield each
        function = function_of(module, each) if isinstance(each, CallOp) else None
        if function is not None and function not in called:
            called.add(function)
            yield from _composites_in(module, function, called)


@dataclass
class Backward:
    """The gradients of a block's values, found by walking back from its end.

    Attributes:
        flow: the state that gradients through loops, branches and calls share.
        scaling: the power of two of each gradient, if gradients have some; that of a given gradient
            is known. In a loop, a branch or a function, no gradient gets another one.
        waiting: for each value, the gradients that its readers have passed back so far.
    """

    emit: Emitter
    flow: Flow
    scaling: UnitScaling | None = None
    waiting: dict[SSAValue, list[SSAValue]] = field(
        default_factory=dict[SSAValue, "list[SSAValue]"]
    )

    def run(
        self, block: Block, wanted: Sequence[SSAValue], given: Passed
    ) -> dict[SSAValue, SSAValue]:
        """The gradients of wanted values; a value on which no given gradient's value depends has
        none.

        Raises InputError for an operation without a gradient between the two.

        Args:
            given: (value, gradient) pairs to begin with.
        """
        way = on_the_way(block, wanted, [value for value, _ in given])
        reached = {*wanted, *(v for op in way for v in op.results)}
        for value, gradient in given:
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
        gradients: Gradients = [self._total(v) for v in op.results]
        if all(each is None for each in gradients):
            return
        if self.scaling is not None:
            gradients = self.scaling.aligned_results(self.emit, gradients)
        kept = next((v for v in op.results if is_float(v) and nn.element_of(v) in STORED), None)
        if kept is not None and not isinstance(op, nn.CastOp):
            raise no_gradient(
                op,
                f"has a result of elements {nn.element_of(kept)}, which are only stored",
            )
        operands = list(op.operands)
        wanted = [i for i, v in enumerate(operands) if v in reached and is_float(v)]
        try:
            if op.regions or isinstance(op, CallOp):
                passed = Through(self.flow, self._walk, self.emit, op, gradients, reached).passed()
                if self.scaling is not None:
                    self.scaling.keep([gradient for _, gradient in passed], gradients)
            else:
                found = passed_back(self.emit, op, gradients, wanted)
                if self.scaling is not None:
                    found = self.scaling.passed(self.emit, op, gradients, found)
                passed = [(operands[i], gradient) for i, gradient in found.items()]
        except NoGradient as error:
            raise no_gradient(op, str(error)) from None
        for value, gradient in passed:
            self.waiting.setdefault(value, []).append(gradient)

    def _walk(
        self, emit: Emitter, block: Block, wanted: Sequence[SSAValue], given: Passed
    ) -> dict[SSAValue, SSAValue]:
        """Walk back through a nested block, or the body of a function."""
        return Backward(emit, self.flow).run(block, wanted, given)

    def _total(self, value: SSAValue) -> SSAValue | None:
        """The sum of the gradients that the readers of a value have passed back; None without
        any."""
        parts = self.waiting.get(value)
        if not parts:
            return None
        if len(parts) > 1:
            if self.scaling is not None:
                parts = self.scaling.aligned(self.emit, parts)
            # Elements of stored-only types cannot be added.
            wide = parts
            if nn.element_of(value) in STORED:
                wide = [self.emit(nn.CastOp(each, f32)) for each in parts]
            total = narrowed(self.emit, self.emit.add(wide), value)
            if self.scaling is not None:
                self.scaling.add(total, parts)
            self.waiting[value] = parts = [total]
        return parts[0]
