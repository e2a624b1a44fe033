"""Optimisers: the new value of a weight, from its old one and its gradient, as operations of nn.

Each is a few elementwise operations. The values that it keeps between steps are states, which are
updated in place. In the formulas, w is the weight, g its gradient, lr the learning rate, t the
number of the step counted from 1, v and m the kept values, wd the weight decay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

import numpy as np
from xdsl.ir import SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.errors import InputError
from .emit import Emitter


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The parameters of all optimisers. Each optimiser reads some of them.

    Attributes:
        momentum: of sgd, rmsprop and lars, the share of the last update that is kept.
        dampening: 1 minus the share of a gradient that enters the momentum.
        nesterov: steps look ahead along the momentum.
        rate_in_momentum: the momentum keeps steps, each with the learning rate of its time, instead
            of gradients.
        weight_decay: how much of a weight is added to its gradient, or by adamw and lamb to its
            step.
        beta1: of adam and its relatives, how much of the mean of gradients is kept.
        beta2: the same for the mean of their squares.
        alpha: the same for rmsprop and adadelta.
        epsilon: keeps divisors away from 0.
        centered: rmsprop divides by the deviation from the mean.
        epsilon_inside: the root of rmsprop includes epsilon.
        trust: of lars, the factor of the ratio of the norms.
    """

    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    rate_in_momentum: bool = False
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    alpha: float = 0.99
    epsilon: float = 1e-8
    centered: bool = False
    epsilon_inside: bool = False
    trust: float = 0.001


@dataclass
class Update:
    """The update of one weight.

    Attributes:
        weight, gradient: the values.
        name: of the weight's state.
        rate: the learning rate, a number or a value without axes.
        whole: a function that returns 1 - beta^t at step t for a number beta, as a value without
            axes.
        new_states: the name and first value of each state that is added.
        stores: the value of each state after the step.
    """

    emit: Emitter
    weight: SSAValue
    gradient: SSAValue
    name: str
    rate: float | SSAValue
    whole: Callable[[float], SSAValue]
    numbers: Numbers
    new_states: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    stores: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def kept(self, what: str) -> SSAValue:
        """The current value of a kept state of the weight's shape, which begins as zeros."""
        name = f"{self.name}.{what}"
        dtype = numpy_dtype(nn.element_of(self.weight))
        self.new_states[name] = np.zeros(nn.shape_of(self.weight), dtype)
        made = nn.LoadOp(name, nn.tensor_of(self.weight))
        self.emit.insert(made)
        return made.result

    def keep(self, what: str, value: SSAValue) -> SSAValue:
        """Set the value of a kept state for the next step."""
        self.stores[f"{self.name}.{what}"] = value
        return value

    # Arithmetic

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The sum a + b."""
        return self.emit(nn.AddOp(a, b))

    def times(self, a: SSAValue, factor: float) -> SSAValue:
        """The product a * factor."""
        return a if factor == 1.0 else self.emit(nn.ScaleOp(a, factor))

    def mixed(self, old: SSAValue, part: float, new: SSAValue, other: float) -> SSAValue:
        """The sum part * old + other * new."""
        return self.add(self.times(old, part), self.times(new, other))

    def mean(self, old: SSAValue, part: float, new: SSAValue) -> SSAValue:
        """The sum part * old + (1 - part) * new, as one chain of functions that follows the new
        value.
        """
        return self.add(self.times(self.emit(nn.SubOp(new, old)), 1.0 - part), old)

    def square(self, a: SSAValue) -> SSAValue:
        """The product a * a."""
        return self.emit(nn.SquareOp(a))

    def root(self, a: SSAValue) -> SSAValue:
        """The square root of a."""
        return self.emit(nn.SqrtOp(a))

    def shifted(self, a: SSAValue, amount: float) -> SSAValue:
        """The sum a + amount."""
        return a if amount == 0.0 else self.emit(nn.ShiftOp(a, amount))

    def over(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The quotient a / b."""
        return self.emit(nn.DivOp(a, b))

    def norm(self, a: SSAValue) -> SSAValue:
        """The square root of the sum of squares of all elements, in f32 for narrower types."""
        return self.root(squares(self.emit, a))

    def decayed(self) -> SSAValue:
        """The sum g + wd * w."""
        decay = self.numbers.weight_decay
        return self.add(self.gradient, self.times(self.weight, decay)) if decay else self.gradient

    def rated(self, direction: SSAValue) -> SSAValue:
        """The product lr * direction."""
        if isinstance(self.rate, float | int):
            return self.times(direction, self.rate)
        return self.emit(nn.MulOp(direction, self.rate))

    def stepped(self, direction: SSAValue) -> SSAValue:
        """The new weight w - lr * direction."""
        return self.emit(nn.SubOp(self.weight, self.rated(direction)))

    def unbiased(self, value: SSAValue, beta: float) -> SSAValue:
        """The quotient value / (1 - beta^t), which corrects for the zeros that a state begins
        with."""
        whole, element = self.whole(beta), nn.element_of(self.weight)
        if nn.element_of(whole) != element:
            whole = self.emit(nn.CastOp(whole, element))
        return self.over(value, whole)


def squares(emit: Emitter, value: SSAValue) -> SSAValue:
    """The sum of the squares of all elements, in f32 for narrower types."""
    element = nn.wide_element(nn.element_of(value))
    if element != nn.element_of(value):
        value = emit(nn.CastOp(value, element))
    return emit(nn.ReduceOp(emit(nn.SquareOp(value)), "sum", range(len(nn.shape_of(value)))))


def _sgd(u: Update) -> SSAValue:
    """V = momentum * v + (1 - dampening) * g; w -= lr * v, or lr * (g + momentum * v).

    With the rate in the momentum, V = momentum * v + (1 - dampening) * lr * g; w -= v, or
    lr * g + momentum * v.
    """
    gradient, numbers = u.decayed(), u.numbers
    if not numbers.momentum:
        return u.stepped(gradient)
    if numbers.rate_in_momentum:
        gradient = u.rated(gradient)
    velocity = u.mixed(u.kept("momentum"), numbers.momentum, gradient, 1.0 - numbers.dampening)
    u.keep("momentum", velocity)
    if numbers.rate_in_momentum:
        ahead = u.add(gradient, u.times(velocity, numbers.momentum))
        return u.emit(nn.SubOp(u.weight, ahead if numbers.nesterov else velocity))
    if numbers.nesterov:
        return u.stepped(u.add(gradient, u.times(velocity, numbers.momentum)))
    return u.stepped(velocity)


def _moments(u: Update, gradient: SSAValue) -> SSAValue:
    """The quotient m / (sqrt(v) + epsilon), of unbiased running means of g and of g * g."""
    numbers = u.numbers
    mean = u.mean(u.kept("mean"), numbers.beta1, gradient)
    square = u.mean(u.kept("square"), numbers.beta2, u.square(gradient))
    u.keep("mean", mean)
    u.keep("square", square)
    # In this order, the operations form one chain of functions.
    root = u.root(u.unbiased(square, numbers.beta2))
    return u.unbiased(u.over(mean, u.shifted(root, numbers.epsilon)), numbers.beta1)


def _adam(u: Update) -> SSAValue:
    """Source: Kingma and Ba, 2014; weight decay is part of the gradient."""
    return u.stepped(_moments(u, u.decayed()))


def _decoupled(u: Update) -> SSAValue:
    direction, decay = _moments(u, u.gradient), u.numbers.weight_decay
    return u.add(direction, u.times(u.weight, decay)) if decay else direction


def _adamw(u: Update) -> SSAValue:
    """Source: Loshchilov and Hutter, 2017; weight decay is part of the step."""
    return u.stepped(_decoupled(u))


def _adamax(u: Update) -> SSAValue:
    """V = max(beta2 * v, |g|); w -= lr * m / (v + epsilon). Source: Kingma and Ba, section 7.1."""
    numbers, gradient = u.numbers, u.decayed()
    mean = u.mean(u.kept("mean"), numbers.beta1, gradient)
    old = u.times(u.kept("largest"), numbers.beta2)
    largest = u.emit(nn.MaxOp(old, u.emit(nn.AbsOp(gradient))))
    u.keep("mean", mean)
    u.keep("largest", largest)
    divisor = u.shifted(largest, numbers.epsilon)
    return u.stepped(u.unbiased(u.over(mean, divisor), numbers.beta1))


def _ratio(u: Update, above: SSAValue, below: SSAValue) -> SSAValue:
    """The quotient above / below; 1 where either is 0."""
    one = u.emit.constant(1.0, above)
    zero = u.emit.constant(0.0, above)
    positive = u.emit(nn.GreaterOp(u.emit(nn.MulOp(above, below)), zero))
    return u.emit(nn.SelectOp(positive, u.over(above, below), one))


def _as_weight(u: Update, value: SSAValue) -> SSAValue:
    element = nn.element_of(u.weight)
    return value if nn.element_of(value) == element else u.emit(nn.CastOp(value, element))


def _lamb(u: Update) -> SSAValue:
    """Adamw's direction x, scaled to |w| / |x|. Source: You and others, 2019."""
    direction = _decoupled(u)
    ratio = _as_weight(u, _ratio(u, u.norm(u.weight), u.norm(direction)))
    return u.stepped(u.emit(nn.MulOp(direction, ratio)))


def _rmsprop(u: Update) -> SSAValue:
    """V = alpha * v + (1 - alpha) * g * g; w -= lr * g / (sqrt(v) + epsilon)."""
    numbers, gradient = u.numbers, u.decayed()
    square = u.mean(u.kept("square"), numbers.alpha, u.square(gradient))
    u.keep("square", square)
    if numbers.centered:
        mean = u.mean(u.kept("mean"), numbers.alpha, gradient)
        u.keep("mean", mean)
        square = u.emit(nn.SubOp(square, u.square(mean)))
        # Rounding may make a variance negative.
        square = u.emit(nn.ReluOp(square))
    if numbers.epsilon_inside:
        divisor = u.root(u.shifted(square, numbers.epsilon))
    else:
        divisor = u.shifted(u.root(square), numbers.epsilon)
    direction = u.over(gradient, divisor)
    if not numbers.momentum:
        return u.stepped(direction)
    velocity = u.mixed(u.kept("momentum"), numbers.momentum, direction, 1.0)
    return u.stepped(u.keep("momentum", velocity))


def _adagrad(u: Update) -> SSAValue:
    """V += g * g; w -= lr * g / (sqrt(v) + epsilon)."""
    gradient = u.decayed()
    square = u.keep("square", u.add(u.kept("square"), u.square(gradient)))
    return u.stepped(u.over(gradient, u.shifted(u.root(square), u.numbers.epsilon)))


def _adadelta(u: Update) -> SSAValue:
    """V = alpha * v + (1 - alpha) * g * g; d = g * sqrt(m + epsilon) / sqrt(v + epsilon).

    Then w -= lr * d, and m = alpha * m + (1 - alpha) * d * d. Source: Zeiler, ADADELTA, 2012.
    """
    numbers, gradient = u.numbers, u.decayed()
    square = u.keep("square", u.mean(u.kept("square"), numbers.alpha, u.square(gradient)))
    steps = u.kept("steps")
    above, below = (u.root(u.shifted(each, numbers.epsilon)) for each in (steps, square))
    direction = u.emit(nn.MulOp(gradient, u.over(above, below)))
    u.keep("steps", u.mean(steps, numbers.alpha, u.square(direction)))
    return u.stepped(direction)


def _lars(u: Update) -> SSAValue:
    """As sgd, with each weight's step scaled to trust * |w| / |g + wd * w|.

    Source: You and others, Large Batch Training of Convolutional Networks, 2017.
    """
    gradient, numbers = u.decayed(), u.numbers
    ratio = u.times(_ratio(u, u.norm(u.weight), u.norm(gradient)), numbers.trust)
    scaled = u.emit(nn.MulOp(gradient, _as_weight(u, ratio)))
    if not numbers.momentum:
        return u.stepped(scaled)
    velocity = u.mixed(u.kept("momentum"), numbers.momentum, scaled, 1.0)
    return u.stepped(u.keep("momentum", velocity))


@dataclass(frozen=True)
class Optimizer:
    """An optimiser.

    Attributes:
        build: makes the new value of a weight.
        reads: the numbers that it takes.
    """

    build: Callable[[Update], SSAValue]
    reads: tuple[str, ...]


_ADAM = ("beta1", "beta2", "epsilon", "weight_decay")

OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": Optimizer(
        _sgd, ("momentum", "dampening", "nesterov", "rate_in_momentum", "weight_decay")
    ),
    "adam": Optimizer(_adam, _ADAM),
    "adamw": Optimizer(_adamw, _ADAM),
    "adamax": Optimizer(_adamax, _ADAM),
    "lamb": Optimizer(_lamb, _ADAM),
    "rmsprop": Optimizer(
        _rmsprop,
        ("alpha", "epsilon", "centered", "epsilon_inside", "momentum", "weight_decay"),
    ),
    "adagrad": Optimizer(_adagrad, ("epsilon", "weight_decay")),
    "adadelta": Optimizer(_adadelta, ("alpha", "epsilon", "weight_decay")),
    "lars": Optimizer(_lars, ("momentum", "trust", "weight_decay")),
}
"""Optimisers by name."""


def check_numbers(name: str, numbers: Numbers) -> None:
    """Raise InputError for a number that an optimiser does not read, or cannot take."""
    reads = OPTIMIZERS[name].reads
    for each in fields(Numbers):
        value = getattr(numbers, each.name)
        if value != each.default and each.name not in reads:
            raise InputError(f"optimizer {name} has no {each.name}; it takes {', '.join(reads)}")
    for each in ("momentum", "beta1", "beta2", "alpha"):
        value = getattr(numbers, each)
        if not 0.0 <= value < 1.0:
            raise InputError(f"{each} {value:g}; need 0 or more, and less than 1")
    for each in ("weight_decay", "epsilon"):
        if not getattr(numbers, each) >= 0.0:
            raise InputError(f"{each} {getattr(numbers, each):g}; need 0 or more")
    if numbers.nesterov and not numbers.momentum:
        raise InputError("nesterov without a momentum; need momentum above 0")


def clip_factor(emit: Emitter, gradients: list[SSAValue], most: float) -> SSAValue:
    """The factor that scales all gradients so that their common norm is at most `most`."""
    norm = emit(nn.SqrtOp(emit.add([squares(emit, each) for each in gradients])))
    limit = emit.constant(most, norm)
    return emit(nn.DivOp(limit, emit(nn.MaxOp(norm, limit))))
