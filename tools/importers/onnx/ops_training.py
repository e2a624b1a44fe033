"""ONNX operators of the domain ai.onnx.preview.training: one step of an optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ....dialects import nn
from .node import Importer, Node, Results

UpdateRule = Callable[[Node, Sequence[SSAValue]], tuple[SSAValue, ...]]
"""One step for one weight: its new value and new states, from the old ones and the gradient."""


def _optimiser(states: int, step: UpdateRule) -> Importer:
    """An importer for any number of weights.

    Args:
        states: the number of states of each weight.
    """

    def importer(node: Node) -> Results:
        groups = states + 2
        count, odd = divmod(node.operand_count - 2, groups)
        if count < 1 or odd:
            raise node.bad(
                f"{node.operand_count} operands; need a rate, a count, and {groups} per weight"
            )
        made: list[tuple[SSAValue, ...]] = []
        for i in range(count):
            made.append(step(node, [node[2 + i + k * count] for k in range(groups)]))
        return [each[k] for k in range(states + 1) for each in made]

    return importer


def _scaled(node: Node, value: SSAValue, factor: float) -> SSAValue:
    return node.add(nn.ScaleOp(value, factor))


def _sum(node: Node, a: SSAValue, b: SSAValue) -> SSAValue:
    return node.add(nn.AddOp(a, b))


def _regularised(node: Node, weight: SSAValue, gradient: SSAValue) -> SSAValue:
    """The gradient plus the gradient of a penalty on large weights."""
    factor = node.number("norm_coefficient", 0.0)
    return _sum(node, _scaled(node, weight, factor), gradient) if factor else gradient


def _like(node: Node, index: int, value: SSAValue) -> SSAValue:
    """An operand of one number, without axes and in the element type of a value."""
    return node.reshape(node.cast(node[index], nn.element_of(value)), ())


def _moved(node: Node, weight: SSAValue, rate: SSAValue, step: SSAValue) -> SSAValue:
    return node.add(nn.SubOp(weight, node.add(nn.MulOp(rate, step))))


def _is_first(node: Node) -> SSAValue:
    """Whether the count of earlier steps is 0."""
    count = node.reshape(node[1], ())
    return node.add(nn.LessEqualOp(count, node.constant(0, count)))


def _momentum(node: Node, operands: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
    weight, gradient, velocity = operands
    alpha, beta = node.number("alpha"), node.number("beta")
    gradient = _regularised(node, weight, gradient)
    chosen = nn.SelectOp(_is_first(node), node.constant(1, weight), node.constant(beta, weight))
    new = node.add(nn.MulOp(node.add(chosen), gradient))
    velocity = _sum(node, _scaled(node, velocity, alpha), new)
    mode = node.text("mode")
    if mode not in ("standard", "nesterov"):
        raise node.bad(f"mode {mode!r}; need standard or nesterov")
    step = velocity
    if mode == "nesterov":
        step = _sum(node, gradient, _scaled(node, velocity, alpha))
    return _moved(node, weight, _like(node, 0, weight), step), velocity


def _adagrad(node: Node, operands: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
    weight, gradient, squares = operands
    decay = _scaled(node, _like(node, 1, weight), node.number("decay_factor", 0.0))
    rate = node.add(nn.DivOp(_like(node, 0, weight), node.add(nn.ShiftOp(decay, 1.0))))
    gradient = _regularised(node, weight, gradient)
    squares = _sum(node, squares, node.add(nn.SquareOp(gradient)))
    root = node.add(nn.ShiftOp(node.add(nn.SqrtOp(squares)), node.number("epsilon", 1e-6)))
    return _moved(node, weight, rate, node.add(nn.DivOp(gradient, root))), squares


def _adam(node: Node, operands: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
    weight, gradient, velocity, squares = operands
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    gradient = _regularised(node, weight, gradient)
    velocity = _sum(node, _scaled(node, velocity, alpha), _scaled(node, gradient, 1.0 - alpha))
    square = _scaled(node, node.add(nn.SquareOp(gradient)), 1.0 - beta)
    squares = _sum(node, _scaled(node, squares, beta), square)
    root = node.add(nn.ShiftOp(node.add(nn.SqrtOp(squares)), node.number("epsilon", 1e-6)))
    rate = _adam_rate(node, weight, alpha, beta)
    moved = _moved(node, weight, rate, node.add(nn.DivOp(velocity, root)))
    return _scaled_after(node, moved), velocity, squares


def _adam_rate(node: Node, weight: SSAValue, alpha: float, beta: float) -> SSAValue:
    """The rate, corrected for averages that began at 0, unless this is the first step."""
    rate, count = _like(node, 0, weight), _like(node, 1, weight)

    def missing(factor: float) -> SSAValue:
        power = node.add(nn.PowOp(node.constant(factor, weight), count))
        return node.add(nn.ShiftOp(_scaled(node, power, -1.0), 1.0))

    corrected = node.add(nn.MulOp(rate, node.add(nn.SqrtOp(missing(beta)))))
    corrected = node.add(nn.DivOp(corrected, missing(alpha)))
    return node.add(nn.SelectOp(_is_first(node), rate, corrected))


def _scaled_after(node: Node, weight: SSAValue) -> SSAValue:
    factor = node.number("norm_coefficient_post", 0.0)
    return _scaled(node, weight, 1.0 - factor) if factor else weight


TRAINING: dict[str, Importer] = {
    "Momentum": _optimiser(1, _momentum),
    "Adagrad": _optimiser(1, _adagrad),
    "Adam": _optimiser(2, _adam),
}
"""The importers of the domain ai.onnx.preview.training."""
