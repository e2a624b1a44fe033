"""Unit scaling: each gradient is computed times a power of two of its own.

The powers of two follow from shapes alone. They are chosen so that gradients have a size of about 1
if each layer keeps the size of its values, as at the beginning of training. Size means the root of
the mean square. Source: Blake et al. 2023, "Unit scaling". They scale weights and activations as
well, and so train another network; here only gradients are scaled, and each update divides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, log2, prod, sqrt

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import nn
from ...dialects.dtypes import STORED
from ...dialects.structured import Reinterpretation
from .emit import Emitter
from .loss_scale import LIMITS
from .rules import Gradients
from .way import read_by

MOST = 60
"""The largest exponent of a power of two, so that float32 holds it, and the ratio of any two."""


@dataclass(frozen=True)
class Carried:
    """What is known of a value that stands for a gradient.

    Attributes:
        exponent: the value is the gradient times 2^exponent, exactly.
        size: the logarithm of the value's expected size, to base 2.
    """

    exponent: int
    size: float

    def times(self, exponent: int) -> Carried:
        """What is known of 2^exponent times the value."""
        return Carried(self.exponent + exponent, self.size + exponent)


@dataclass
class UnitScaling:
    """The powers of two of the gradients of a program.

    Attributes:
        block: the block whose values have these gradients.
        known: what is known of each gradient.
    """

    block: Block
    known: dict[SSAValue, Carried] = field(default_factory=dict[SSAValue, Carried])

    def __post_init__(self) -> None:
        self.samples = _of_samples(self.block)

    def begin(self, emit: Emitter, loss: SSAValue, exponent: int) -> SSAValue:
        """The gradient of a loss, which is 1, times 2^exponent. Its size counts as 1."""
        made = emit.constant(2.0**exponent, loss, nn.shape_of(loss))
        self.known[made] = Carried(exponent, 0.0)
        return made

    def exponent(self, gradient: SSAValue) -> int:
        """The exponent of the power of two that a gradient has as a factor."""
        return self.known[gradient].exponent

    def aligned(self, emit: Emitter, gradients: Sequence[SSAValue]) -> list[SSAValue]:
        """Gradients with one exponent: the least, which is that of the largest gradient."""
        least = min(map(self.exponent, gradients))
        return [
            self._scaled(emit, each, power, self.known[each]) if power else each
            for each in gradients
            for power in (least - self.exponent(each),)
        ]

    def aligned_results(self, emit: Emitter, gradients: Gradients) -> Gradients:
        """The gradients of an operation's results, of which one at least is not None, aligned."""
        found = iter(self.aligned(emit, [each for each in gradients if each is not None]))
        return [None if each is None else next(found) for each in gradients]

    def add(self, total: SSAValue, parts: Sequence[SSAValue]) -> None:
        """Record that a value is the sum of gradients with one exponent."""
        found = [self.known[each] for each in parts]
        size = log2(sum(4.0**each.size for each in found)) / 2
        self.known[total] = Carried(found[0].exponent, size)

    def keep(self, made: Iterable[SSAValue], gradients: Gradients) -> None:
        """Record that gradients have the factor of others with one exponent, and their size."""
        for value in made:
            self.known.setdefault(value, self._of(gradients))

    def passed(
        self, emit: Emitter, op: Operation, gradients: Gradients, found: Mapping[int, SSAValue]
    ) -> dict[int, SSAValue]:
        """The gradients of an operation's operands, scaled to a size of about 1.

        Args:
            gradients: of the operation's results, with one exponent.
            found: the gradients of operands that were computed from these.
        """
        made, before = dict[int, SSAValue](), self._of(gradients)
        for i, value in found.items():
            # A gradient that is passed on as it is keeps what is known of it.
            is_new = value not in self.known
            if is_new:
                self.known[value] = Carried(before.exponent, before.size + self._growth(op, i))
            power = self._power(self.known[value])
            if not power or nn.element_of(value) in STORED:
                made[i] = value
                continue
            own = value.owner
            if isinstance(own, nn.ScaleOp) and is_new and value.first_use is None:
                # One factor, so that no number between two of them is too small for float16.
                (factor,) = own.parameters
                made[i] = self._scaled(emit, own.operand, power, self.known[value], factor)
                emit.edit.erase(own)
            else:
                made[i] = self._scaled(emit, value, power, self.known[value])
        return made

    def _growth(self, op: Operation, operand: int) -> float:
        """By how much the size of a gradient grows on its way from an operation's result to an
        operand, as a logarithm to base 2, as far as that is known.
        """
        rule = next((GROWTH[kind] for kind in GROWTH if isinstance(op, kind)), None)
        return 0.0 if rule is None else rule(op, operand, self.samples)

    def _power(self, known: Carried) -> int:
        """The exponent that makes the size of a value about 1, as far as MOST allows."""
        return min(max(-round(known.size), -MOST - known.exponent), MOST - known.exponent)

    def _of(self, gradients: Gradients) -> Carried:
        return next(self.known[each] for each in gradients if each is not None)

    def _scaled(
        self, emit: Emitter, value: SSAValue, exponent: int, known: Carried, factor: float = 1.0
    ) -> SSAValue:
        """A value times 2^exponent and another factor.

        Args:
            known: what is known of the value times the other factor.
        """
        made = emit(nn.ScaleOp(value, factor * 2.0**exponent))
        self.known[made] = known.times(exponent)
        return made


def first_exponent(classes: int, positions: int) -> int:
    """The exponent of the gradient of a loss, such that its gradient of the output has size 1.

    Of the loss of a label, the size of that gradient is sqrt(classes - 1) / classes, where all
    classes have the same probability. The exponent is at most that of the largest power of two of
    float16.

    Args:
        classes: 1 for a loss without labels.
        positions: the number by which the step divides the loss, if it does not follow from shapes;
            else 1.
    """
    size = sqrt(classes - 1) / classes if classes > 1 else 1.0
    return min(round(log2(max(positions, 1) / size)), int(log2(LIMITS[1])))


def _of_samples(block: Block) -> set[SSAValue]:
    """The values of a block that depend on its arguments. All others are weights and constants."""
    known = set[SSAValue](block.args)
    for op in block.ops:
        if any(value in known for value in read_by(op)):
            known.update(op.results)
    return known


def _of_scale(op: Operation, operand: int, samples: Collection[SSAValue]) -> float:
    assert isinstance(op, nn.ScaleOp)
    (factor,) = op.parameters
    return log2(abs(factor)) if factor and isfinite(factor) else 0.0


def _of_product(op: Operation, operand: int, samples: Collection[SSAValue]) -> float:
    """The growth by a sum of products: the root of their number, times the size of the other
    operand.

    The other operand has size 1, unless it is a weight: then the product keeps the size of what is
    multiplied by it. The results of a softmax are smaller.
    """
    assert isinstance(op, nn.ContractionOp)
    products = max(prod(op.structure().space.sizes), 1)
    terms = products / _count(op.operands[operand])
    others = [each for i, each in enumerate(op.operands) if i != operand]
    if not any(each in samples for each in others):
        terms /= products / _count(op.results[0])
    return log2(terms) / 2 + sum(map(_size, others))


def _size(value: SSAValue) -> float:
    """The expected size of a value of the forward phase, as a logarithm to base 2."""
    op = value.owner
    while isinstance(op, Reinterpretation | nn.TransposeOp | nn.CastOp):
        assert isinstance(op, Operation)
        op = op.operands[0].owner
    return -log2(_chosen_from(op)) if isinstance(op, nn.SoftmaxOp) else 0.0


def _of_copies(op: Operation, operand: int, samples: Collection[SSAValue]) -> float:
    """The growth by a sum over the copies of each element of an operand."""
    return log2(_count(op.results[0]) / _count(op.operands[operand])) / 2


def _of_softmax(op: Operation, operand: int, samples: Collection[SSAValue]) -> float:
    """The growth by a softmax of n numbers, whose results are about 1/n."""
    assert isinstance(op, nn.SoftmaxOp)
    return -log2(_chosen_from(op))


def _chosen_from(op: nn.SoftmaxOp) -> int:
    """The number of elements of which a softmax makes a distribution; at least 1."""
    return max(nn.shape_of(op.results[0])[op.along], 1)


def _of_summary(op: Operation, operand: int, samples: Collection[SSAValue]) -> float:
    """The growth by moments of n elements, each of which adds 1/n of itself, or by the choice of
    one of them.
    """
    assert isinstance(op, nn.SummarizeOp)
    merged = log2(_count(op.operands[operand]) / _count(op.results[0]))
    return -merged if op.combiner.data == "moments" else -merged / 2


GROWTH: Mapping[type[Operation], Callable[[Operation, int, Collection[SSAValue]], float]] = {
    nn.ScaleOp: _of_scale,
    nn.ContractionOp: _of_product,
    nn.ElementwiseOp: _of_copies,
    nn.ExpandOp: _of_copies,
    nn.SoftmaxOp: _of_softmax,
    nn.SummarizeOp: _of_summary,
}
"""The growth of gradients on their way back through an operation; the first class that fits
decides. It is 0 for all others."""


def _count(value: SSAValue) -> int:
    """The number of elements of a value; 1 if it has none."""
    return max(prod(nn.shape_of(value)), 1)
