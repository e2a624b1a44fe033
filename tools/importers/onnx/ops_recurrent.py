"""ONNX operators that carry a state along a sequence: LSTM, GRU and RNN.

The product of all inputs and their weights is computed once, before the loop. An iteration of the
loop reads its row of that product by its number, adds the product of the state and its weights, and
writes its result to its row of Y. Both directions of a layer run in the same iterations: the
backward one reads a sequence that is reversed before the loop, and its results are reversed after
it.

Axes of values inside: directions D, gates G, steps T, batch B, and units H of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from ..loops import Rows, collecting_loop
from .node import Importer, Node, Results
from .reversal import reversed_in_time

DIRECTIONS: dict[str, tuple[bool, ...]] = {
    "forward": (False,),
    "reverse": (True,),
    "bidirectional": (False, True),
}
"""The directions of a layer: for each, whether it reads its sequence backwards."""


Constants = tuple[float, ...]
"""The constants of an activation that it has: alpha before beta."""


@dataclass(frozen=True)
class Function:
    """An activation function.

    Attributes:
        make: builds it on a value.
        defaults: of its constants.
    """

    make: Callable[[Node, SSAValue, Constants], SSAValue]
    defaults: Constants = ()


def _unary(make: Callable[[SSAValue], nn.PureTensorOp]) -> Function:
    return Function(lambda node, x, _: node.add(make(x)))


def _affine(node: Node, x: SSAValue, constants: Constants) -> SSAValue:
    alpha, beta = constants
    return node.add(nn.ShiftOp(node.add(nn.ScaleOp(x, alpha)), beta))


def _leaky_relu(node: Node, x: SSAValue, constants: Constants) -> SSAValue:
    return node.add(nn.LeakyReluOp(x, constants[0]))


def _scaled_tanh(node: Node, x: SSAValue, constants: Constants) -> SSAValue:
    alpha, beta = constants
    return node.add(nn.ScaleOp(node.add(nn.TanhOp(node.add(nn.ScaleOp(x, beta)))), alpha))


def _hard_sigmoid(node: Node, x: SSAValue, constants: Constants) -> SSAValue:
    return node.add(nn.ClipOp(_affine(node, x, constants), 0.0, 1.0))


def _thresholded_relu(node: Node, x: SSAValue, constants: Constants) -> SSAValue:
    above = node.add(nn.GreaterEqualOp(x, node.constant(constants[0], x)))
    return node.add(nn.SelectOp(above, x, node.constant(0, x)))


def _elu(node: Node, x: SSAValue, constants: Constants) -> SSAValue:
    grown = node.add(nn.ShiftOp(node.add(nn.ExpOp(x)), -1.0))
    below = node.add(nn.LessOp(x, node.constant(0, x)))
    return node.add(nn.SelectOp(below, node.add(nn.ScaleOp(grown, constants[0])), x))


def _softsign(node: Node, x: SSAValue, constants: Constants) -> SSAValue:
    del constants
    return node.add(nn.DivOp(x, node.add(nn.ShiftOp(node.add(nn.AbsOp(x)), 1.0))))


FUNCTIONS: dict[str, Function] = {
    "Relu": _unary(nn.ReluOp),
    "Tanh": _unary(nn.TanhOp),
    "Sigmoid": _unary(nn.SigmoidOp),
    "Affine": Function(_affine, (1.0, 0.0)),
    "LeakyRelu": Function(_leaky_relu, (0.01,)),
    "ThresholdedRelu": Function(_thresholded_relu, (1.0,)),
    "ScaledTanh": Function(_scaled_tanh, (1.0, 1.0)),
    "HardSigmoid": Function(_hard_sigmoid, (0.2, 0.5)),
    "Elu": Function(_elu, (1.0,)),
    "Softsign": Function(_softsign),
    "Softplus": _unary(nn.SoftplusOp),
}
"""The activation functions of recurrent layers, by ONNX's name."""

Activation = Callable[[Node, SSAValue], SSAValue]
Rounding = Callable[[Node, SSAValue], SSAValue]


@dataclass(frozen=True)
class Layer:
    """A recurrent layer that is being imported.

    states: the number of states of each step; the first is the result.

    Attributes:
        directions: see DIRECTIONS.
        functions: the activations of each direction.
        recurrence: weights of the state, [D, G, H, H].
        held: further weights and biases that steps read, by name.
        rounded: applied to a state before it is multiplied by weights; None for nothing.
    """

    node: Node
    directions: tuple[bool, ...]
    hidden: int
    functions: tuple[tuple[Activation, ...], ...]
    recurrence: SSAValue
    held: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    rounded: Rounding | None = None

    def activate(self, which: int, value: SSAValue) -> SSAValue:
        """An activation of a value, [D, B, H], after clipping.

        Args:
            which: the activation's index in functions.
        """
        node = self.node
        if node.has_attribute("clip"):
            clip = node.number("clip")
            value = node.add(nn.ClipOp(value, -clip, clip))
        found = [each[which] for each in self.functions]
        if len(set(found)) == 1:
            return found[0](node, value)
        parts = _parts(node, value, 0)
        made = [f(node, each) for f, each in zip(found, parts, strict=True)]
        return node.add(nn.ConcatOp(made, 0))

    def recurrent(self, state: SSAValue, first: int, count: int) -> SSAValue:
        """The products of a state, [D, B, H], with the weights of some gates: [D, count, B, H]."""
        node, (d, gates, h, _) = self.node, nn.shape_of(self.recurrence)
        weights = self.recurrence
        if count < gates:
            weights = node.add(
                nn.SliceOp(weights, [0, first, 0, 0], [1, 1, 1, 1], [d, count, h, h])
            )
        batch = nn.shape_of(state)[1]
        if self.rounded is not None:
            state = self.rounded(node, state)
        rows = node.reshape(state, (d, 1, batch, h))
        return node.add(nn.MatMulOp(rows, weights, transpose_rhs=True))


def _add(node: Node, a: SSAValue, b: SSAValue) -> SSAValue:
    return node.add(nn.AddOp(a, b))


def _mul(node: Node, a: SSAValue, b: SSAValue) -> SSAValue:
    return node.add(nn.MulOp(a, b))


def _parts(node: Node, value: SSAValue, axis: int) -> list[SSAValue]:
    """The slices of size 1 along an axis."""
    shape = nn.shape_of(value)
    if shape[axis] == 1:
        return [value]
    extent = [1 if i == axis else n for i, n in enumerate(shape)]
    return [
        node.add(
            nn.SliceOp(
                value, [j if i == axis else 0 for i in range(len(shape))], [1] * len(shape), extent
            )
        )
        for j in range(shape[axis])
    ]


def _gates(node: Node, value: SSAValue) -> list[SSAValue]:
    """The gates of [D, G, B, H], each [D, B, H]."""
    d, _, b, h = nn.shape_of(value)
    return [node.reshape(each, (d, b, h)) for each in _parts(node, value, 1)]


# Steps: compute the new states from a row of the inputs' products and the old states.

States = list[SSAValue]


def _lstm_step(layer: Layer, row: SSAValue, states: States) -> States:
    node, held = layer.node, layer.held
    hidden, cell = states
    i, o, f, c = _gates(node, _add(node, layer.recurrent(hidden, 0, 4), row))

    def peeped(gate: SSAValue, name: str, at: SSAValue) -> SSAValue:
        return _add(node, gate, _mul(node, held[name], at)) if name in held else gate

    i = layer.activate(0, peeped(i, "peephole i", cell))
    if node.flag("input_forget"):
        f = node.add(nn.ShiftOp(node.add(nn.NegOp(i)), 1.0))
    else:
        f = layer.activate(0, peeped(f, "peephole f", cell))
    cell = _add(node, _mul(node, f, cell), _mul(node, i, layer.activate(1, c)))
    o = layer.activate(0, peeped(o, "peephole o", cell))
    # The clip applies to the inputs of gates only.
    squashed = [f[2] for f in layer.functions]
    if len(set(squashed)) == 1:
        out = squashed[0](node, cell)
    else:
        parts = zip(squashed, _parts(node, cell, 0), strict=True)
        out = node.add(nn.ConcatOp([f(node, each) for f, each in parts], 0))
    return [_mul(node, o, out), cell]


def _gru_step(layer: Layer, row: SSAValue, states: States) -> States:
    node = layer.node
    (hidden,) = states
    d, b, h = nn.shape_of(hidden)
    xz, xr, xh = _gates(node, row)
    after = node.flag("linear_before_reset")
    products = _gates(node, layer.recurrent(hidden, 0, 3 if after else 2))
    z = layer.activate(0, _add(node, products[0], xz))
    r = layer.activate(0, _add(node, products[1], xr))
    if after:
        new = products[2]
        if "bias h" in layer.held:
            new = _add(node, new, layer.held["bias h"])
        new = _mul(node, r, new)
    else:
        new = node.reshape(layer.recurrent(_mul(node, r, hidden), 2, 1), (d, b, h))
    new = layer.activate(1, _add(node, new, xh))
    # (1 - z) * new + z * hidden
    old = node.add(nn.SubOp(hidden, new))
    return [_add(node, new, _mul(node, z, old))]


def _rnn_step(layer: Layer, row: SSAValue, states: States) -> States:
    node = layer.node
    total = _add(node, layer.recurrent(states[0], 0, 1), row)
    return [layer.activate(0, _gates(node, total)[0])]


@dataclass(frozen=True)
class Kind:
    """A kind of recurrent layer.

    Attributes:
        gates: of each step.
        functions: the default activations of a direction.
        states: the number of states that a step passes on.
        step: see above.
    """

    gates: int
    functions: tuple[str, ...]
    states: int
    step: Callable[[Layer, SSAValue, States], States]


KINDS = {
    "LSTM": Kind(4, ("Sigmoid", "Tanh", "Tanh"), 2, _lstm_step),
    "GRU": Kind(3, ("Sigmoid", "Tanh"), 1, _gru_step),
    "RNN": Kind(1, ("Tanh",), 1, _rnn_step),
}

# Operands

X, W, R, B, LENGTHS, HIDDEN, CELL, PEEPHOLES = range(8)


def _functions(node: Node, kind: Kind, directions: int) -> tuple[tuple[Activation, ...], ...]:
    """The activations of each direction, with their constants."""
    given = [f.decode(errors="replace") for f in _strings(node, "activations")]
    names = given or [*kind.functions] * directions
    if len(names) != len(kind.functions) * directions:
        raise node.bad(
            f"{len(names)} activations; need {len(kind.functions)} for each of {directions} "
            "directions"
        )
    alphas, betas = iter(_floats(node, "activation_alpha")), iter(_floats(node, "activation_beta"))
    known = {name.casefold(): function for name, function in FUNCTIONS.items()}
    made: dict[tuple[str, Constants], Activation] = {}
    found: list[Activation] = []
    for name in names:
        function = known.get(name.casefold())
        if function is None:
            raise node.bad(f"activation {name!r}; need one of {', '.join(FUNCTIONS)}")
        constants = tuple(
            next(given, default)
            for given, default in zip((alphas, betas), function.defaults, strict=False)
        )
        # Make equal functions one object, so that both directions can be computed at once.
        key = name.casefold(), constants
        if key not in made:
            made[key] = partial(_applied, function, constants)
        found.append(made[key])
    each = len(kind.functions)
    return tuple(tuple(found[i * each : (i + 1) * each]) for i in range(directions))


def _applied(function: Function, constants: Constants, node: Node, value: SSAValue) -> SSAValue:
    return function.make(node, value, constants)


def _strings(node: Node, name: str) -> list[bytes]:
    return list(node.attributes[name].strings) if node.has_attribute(name) else []


def _floats(node: Node, name: str) -> list[float]:
    return list(node.attributes[name].floats) if node.has_attribute(name) else []


def _check(node: Node, operand: int, wanted: tuple[int, ...], what: str) -> None:
    if node.has(operand) and node.shape(operand) != wanted:
        given = list(node.shape(operand))
        raise node.bad(f"operand {operand} ({what}) has shape {given}; need {list(wanted)}")


def _pieces(node: Node, operand: int, shape: tuple[int, ...]) -> list[SSAValue]:
    """The parts of an operand [D, n * H] as values of [D, 1, H].

    Args:
        shape: [D, n, H].
    """
    d, n, h = shape
    known = None if node.graph.training else node.graph.known(node.value(operand))
    if known is not None:
        parts = np.moveaxis(known.reshape(d, n, 1, h), 1, 0)
        return [node.emitted(each) for each in parts]
    value = node.reshape(node[operand], shape)
    return _parts(node, value, 1)


def _biases(node: Node, kind: Kind, layer: Layer) -> SSAValue | None:
    """The biases added to the products of the inputs, [D, G, 1, H]; None without biases.

    The bias that a GRU's reset gate also multiplies is kept for the steps.
    """
    if not node.has(B):
        return None
    d, g, h = len(layer.directions), kind.gates, layer.hidden
    pieces = _pieces(node, B, (d, 2 * g, h))
    own, other = pieces[:g], pieces[g:]
    if node.operator == "GRU" and node.flag("linear_before_reset"):
        layer.held["bias h"] = other.pop()
    sums = [_add(node, a, b) for a, b in zip(own, other, strict=False)] + own[len(other) :]
    arrays = [a for a in map(node.graph.known, sums) if a is not None]
    if len(arrays) == len(sums) and not node.graph.training:
        whole = np.stack(arrays, 1)
        return node.emitted(whole)
    return node.add(nn.ConcatOp([node.reshape(each, (d, 1, 1, h)) for each in sums], 1))


def recurrent(kind: Kind, node: Node, rounded: Rounding | None = None) -> Results:
    """The results of a layer.

    Args:
        rounded: see Layer.
    """
    layout = node.integer("layout", 0)
    if layout not in (0, 1):
        raise node.bad(f"layout {layout}; need 0 or 1")
    shape = node.shape(X)
    if len(shape) != 3:
        raise node.bad(f"operand 0 (X) has shape {list(shape)}; need three axes")
    steps, batch = (shape[1], shape[0]) if layout else shape[:2]
    name = node.text("direction", "forward")
    if name not in DIRECTIONS:
        raise node.bad(f"direction {name!r}; need one of {', '.join(DIRECTIONS)}")
    directions = DIRECTIONS[name]
    d, g, features = len(directions), kind.gates, shape[2]
    given = node.shape(R)
    hidden = node.integer("hidden_size", given[-1] if given else 0)
    _check(node, W, (d, g * hidden, features), "W")
    _check(node, R, (d, g * hidden, hidden), "R")
    _check(node, B, (d, 2 * g * hidden), "B")
    _check(node, LENGTHS, (batch,), "sequence_lens")
    state = (batch, d, hidden) if layout else (d, batch, hidden)
    for operand, what in ((HIDDEN, "initial_h"), (CELL, "initial_c"))[: kind.states]:
        _check(node, operand, state, what)
    if kind.states == 2:
        _check(node, PEEPHOLES, (d, 3 * hidden), "P")
    if not steps:
        raise node.unsupported("a sequence of no steps", "need one or more")
    layer = Layer(
        node,
        directions,
        hidden,
        _functions(node, kind, d),
        node.reshape(node[R], (d, g, hidden, hidden)),
        rounded=rounded,
    )
    if kind.states == 2 and node.has(PEEPHOLES):
        names = ("peephole i", "peephole o", "peephole f")
        layer.held.update(zip(names, _pieces(node, PEEPHOLES, (d, 3, hidden)), strict=True))
    lengths = node.cast(node[LENGTHS], i32) if node.has(LENGTHS) else None
    rows = _input_products(kind, layer, steps, batch, layout)
    first = [_initial(layer, operand, batch, layout) for operand in (HIDDEN, CELL)[: kind.states]]
    results, last = _run(kind, layer, rows, first, lengths)
    return [*_outputs(layer, results, last, lengths, layout)]


def _input_products(kind: Kind, layer: Layer, steps: int, batch: int, layout: int) -> SSAValue:
    """The products of all inputs and their weights, and the biases: [D, G, T, B, H]."""
    node, d = layer.node, len(layer.directions)
    x = node[X]
    if layout:
        x = node.add(nn.TransposeOp(x, [1, 0, 2]))
    features = nn.shape_of(x)[2]
    lengths = node.value(LENGTHS) if node.has(LENGTHS) else None
    both = [
        node.reshape(
            reversed_in_time(node, x, lengths) if backward else x,
            (1, 1, steps * batch, features),
        )
        for backward in layer.directions
    ]
    x = both[0] if d == 1 else node.add(nn.ConcatOp(both, 0))
    weights = node.reshape(node[W], (d, kind.gates, layer.hidden, features))
    products = node.add(nn.MatMulOp(x, weights, transpose_rhs=True))
    biases = _biases(node, kind, layer)
    if biases is not None:
        products = _add(node, products, biases)
    return node.reshape(products, (d, kind.gates, steps, batch, layer.hidden))


def _initial(layer: Layer, operand: int, batch: int, layout: int) -> SSAValue:
    """The first value of a state, [D, B, H]."""
    node, shape = layer.node, (len(layer.directions), batch, layer.hidden)
    if not node.has(operand):
        return node.add(nn.ExpandOp(node.constant(0, node[X]), shape))
    return node.add(nn.TransposeOp(node[operand], [1, 0, 2])) if layout else node[operand]


def _run(
    kind: Kind, layer: Layer, rows: SSAValue, first: States, lengths: SSAValue | None
) -> tuple[SSAValue | None, States]:
    """The results of all steps, [T, D, B, H], if they are read, and the last states."""
    node = layer.node
    d, g, steps, b, h = nn.shape_of(rows)
    wanted = node.wants(0)

    def iteration(
        carried: States, row: SSAValue, number: SSAValue | None
    ) -> tuple[States, SSAValue]:
        """The states after an iteration, and its row of the results."""
        new = kind.step(layer, node.reshape(row, (d, g, b, h)), carried)
        if lengths is None:
            return new, new[0]
        number = node.constant(0, lengths) if number is None else number
        within = node.reshape(node.add(nn.LessOp(number, lengths)), (1, b, 1))
        kept = [
            node.add(nn.SelectOp(within, each, old)) for each, old in zip(new, carried, strict=True)
        ]
        if not wanted:
            return kept, new[0]
        zero = node.constant(0, new[0])
        return kept, node.add(nn.SelectOp(within, new[0], zero))

    if steps == 1:
        last, result = iteration(first, rows, None)
        return (node.reshape(result, (1, d, b, h)) if wanted else None), last

    def body(carried: States, number: SSAValue) -> tuple[States, Rows]:
        row = node.add(nn.GatherOp(rows, node.reshape(number, (1,)), 2))
        new, result = iteration(carried, row, number)
        return new, [(result, number)] if wanted else []

    last, tables = collecting_loop(node, steps, first, body)
    return (tables[0] if wanted else None), last


def _outputs(
    layer: Layer, results: SSAValue | None, last: States, lengths: SSAValue | None, layout: int
) -> Iterator[Value | str]:
    """Y, and the last states, in ONNX's order of axes."""
    node = layer.node
    if results is None:
        yield "the result has no name"
    else:
        if True in layer.directions:
            results = _in_order(layer, results)
        yield node.add(nn.TransposeOp(results, [2, 0, 1, 3])) if layout else results
    for state in last:
        yield node.add(nn.TransposeOp(state, [1, 0, 2])) if layout else state


def _in_order(layer: Layer, results: SSAValue) -> SSAValue:
    """The results of all steps, [T, D, B, H], with the results of backward directions reversed."""
    node = layer.node
    steps, _, b, h = nn.shape_of(results)
    lengths = node.value(LENGTHS) if node.has(LENGTHS) else None
    parts = [
        node.reshape(
            reversed_in_time(node, node.reshape(part, (steps, b, h)), lengths),
            (steps, 1, b, h),
        )
        if backward
        else part
        for part, backward in zip(_parts(node, results, 1), layer.directions, strict=True)
    ]
    return parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, 1))


RECURRENT: dict[str, Importer] = {name: partial(recurrent, kind) for name, kind in KINDS.items()}
