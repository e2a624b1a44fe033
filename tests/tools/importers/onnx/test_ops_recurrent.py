"""LSTM, GRU and RNN against their equations, and ReverseSequence."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from onnx import TensorProto, helper

from abele.backends.reference import run_reference
from abele.dialects import control, nn
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.onnx_backend import AbeleBackend

Array = np.ndarray
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
T, B, X, H = 4, 3, 2, 5


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def model(operator: str, operands: dict[str, Array], results: int = 1, **attributes):
    """A model of one node. operands: by name, empty ones left out."""
    kind = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
    given = {name: a for name, a in operands.items() if a.size}
    graph = helper.make_graph(
        [
            helper.make_node(
                operator,
                [name if a.size else "" for name, a in operands.items()],
                [f"y{i}" for i in range(results)],
                **attributes,
            )
        ],
        "g",
        [helper.make_tensor_value_info(n, kind[a.dtype], a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(results)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def computed(operator: str, operands: dict[str, Array], results: int, **attributes) -> list[Array]:
    made = import_onnx(model(operator, operands, results, **attributes), AbeleContext())
    given = {name: a for name, a in operands.items() if a.size}
    found = run_reference(made, given).outputs
    return [found[f"y{i}"] for i in range(results)]


def operands_of(operator: str, directions: int, *, lengths: Sequence[int] = ()) -> dict[str, Array]:
    g, random = GATES[operator], np.random.default_rng(3)
    d = directions

    def some(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    found = {
        "X": some(T, B, X),
        "W": some(d, g * H, X),
        "R": some(d, g * H, H) * 0.5,
        "B": some(d, 2 * g * H),
        "lengths": np.array(lengths, np.int32),
        "h": some(d, B, H),
    }
    return {**found, "c": some(d, B, H), "P": some(d, 3 * H)} if operator == "LSTM" else found


def lstm_step(x: Array, h: Array, c: Array, w: Array, r: Array, b: Array, p: Array):
    i, o, f, g = np.split(x @ w.T + h @ r.T + b[: 4 * H] + b[4 * H :], 4, -1)
    pi, po, pf = np.split(p, 3)
    i, f = sigmoid(i + pi * c), sigmoid(f + pf * c)
    c = f * c + i * np.tanh(g)
    return sigmoid(o + po * c) * np.tanh(c), c


def by_equations(operands: dict[str, Array], backward: Sequence[bool], lengths: Sequence[int]):
    """Y, Y_h and Y_c of an LSTM, one sequence and one step after another."""
    x, w, r, b, _, h, c, p = (a.astype(np.float64) for a in operands.values())
    y, h, c = np.zeros((T, len(backward), B, H)), h.copy(), c.copy()
    for d, turned in enumerate(backward):
        for n, count in enumerate(lengths):
            for t in reversed(range(count)) if turned else range(count):
                h[d, n], c[d, n] = lstm_step(x[t, n], h[d, n], c[d, n], w[d], r[d], b[d], p[d])
                y[t, d, n] = h[d, n]
    return y, h, c


@pytest.mark.parametrize(
    ("direction", "backward"),
    [("forward", [False]), ("reverse", [True]), ("bidirectional", [False, True])],
)
@pytest.mark.parametrize("lengths", [(), (2, 4, 1)], ids=["whole", "lengths"])
def test_an_lstm_computes_its_equations(direction: str, backward: list[bool], lengths):
    operands = operands_of("LSTM", len(backward), lengths=lengths)
    need = by_equations(operands, backward, lengths or (T,) * B)
    found = computed("LSTM", operands, 3, direction=direction, hidden_size=H)
    for mine, other in zip(found, need, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=1e-6)


def test_the_batch_comes_first_in_layout_1():
    operands = operands_of("LSTM", 2)
    need = computed("LSTM", operands, 3, direction="bidirectional")
    turned = {
        name: np.ascontiguousarray(a.swapaxes(0, 1)) if name in "Xhc" else a
        for name, a in operands.items()
    }
    y, *states = computed("LSTM", turned, 3, direction="bidirectional", layout=1)
    np.testing.assert_array_equal(y, need[0].transpose(2, 0, 1, 3))
    for mine, other in zip(states, need[1:], strict=True):
        np.testing.assert_array_equal(mine, other.swapaxes(0, 1))


@pytest.mark.parametrize("after", [0, 1])
def test_a_gru_resets_before_or_after_its_product(after: int):
    operands = operands_of("GRU", 1)
    x, w, r, b, _, h = (a.astype(np.float64) for a in operands.values())
    h, steps = h[0], []
    (wz, wr, wh), (rz, rr, rh) = np.split(w[0], 3), np.split(r[0], 3)
    bz, br, bh, cz, cr, ch = np.split(b[0], 6)
    for each in x:
        z = sigmoid(each @ wz.T + h @ rz.T + bz + cz)
        reset = sigmoid(each @ wr.T + h @ rr.T + br + cr)
        product = reset * (h @ rh.T + ch) if after else (reset * h) @ rh.T + ch
        h = (1 - z) * np.tanh(each @ wh.T + product + bh) + z * h
        steps.append(h)
    y, last = computed("GRU", operands, 2, linear_before_reset=after)
    np.testing.assert_allclose(y[:, 0], np.stack(steps), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(last[0], h, rtol=2e-5, atol=1e-6)


ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], list[float], list[float]]] = {
    "Relu": (lambda x: np.maximum(x, 0), [], []),
    "Tanh": (np.tanh, [], []),
    "Sigmoid": (sigmoid, [], []),
    "Affine": (lambda x: 0.5 * x + 0.25, [0.5], [0.25]),
    "LeakyRelu": (lambda x: np.where(x < 0, 0.5 * x, x), [0.5], []),
    "ThresholdedRelu": (lambda x: np.where(x >= 0.5, x, 0), [0.5], []),
    "ScaledTanh": (lambda x: 0.5 * np.tanh(2 * x), [0.5], [2.0]),
    "HardSigmoid": (lambda x: np.clip(0.2 * x + 0.5, 0, 1), [], []),
    "Elu": (lambda x: np.where(x < 0, np.expm1(x), x), [], []),
    "Softsign": (lambda x: x / (1 + np.abs(x)), [], []),
    "Softplus": (lambda x: np.log1p(np.exp(x)), [], []),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_layer_may_have_each_activation_in_each_direction(name: str):
    function, alpha, beta = ACTIVATIONS[name]
    operands = operands_of("RNN", 2)
    x, w, r, b, _, h = (a.astype(np.float64) for a in operands.values())
    first, other = (
        x[t] @ w[d].T + h[d] @ r[d].T + b[d, :H] + b[d, H:] for d, t in enumerate((0, T - 1))
    )
    given = {"activation_alpha": alpha, "activation_beta": beta}
    (y,) = computed(
        "RNN",
        operands,
        1,
        direction="bidirectional",
        activations=[name, "Tanh"],
        **{key: values for key, values in given.items() if values},
    )
    np.testing.assert_allclose(y[0, 0], function(first), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(y[T - 1, 1], np.tanh(other), rtol=2e-5, atol=1e-6)


def test_a_layer_is_one_loop_however_long_its_sequence_is():
    counts: set[int] = set()
    for steps in (5, 500):
        operands = operands_of("LSTM", 2)
        operands["X"] = np.zeros((steps, B, X), np.float32)
        made = import_onnx(model("LSTM", operands, direction="bidirectional"), AbeleContext())
        loops = [op for op in made.walk() if isinstance(op, control.RepeatOp)]
        assert [loop.iterations for loop in loops] == [steps]
        products = [op for op in made.walk() if isinstance(op, nn.MatMulOp)]
        assert [op.parent_op() is loops[0] for op in products] == [False, True]
        counts.add(sum(1 for _ in made.walk()))
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({"R": np.zeros((1, 20, 4), np.float32)}, {}, r"operand 1 \(W\) has shape .*need \[1, 16"),
        ({}, {"hidden_size": 6}, r"operand 1 \(W\) has shape \[1, 20, 2\]; need \[1, 24, 2\]"),
        ({}, {"direction": "sideways"}, "direction 'sideways'; need one of forward, reverse, bi"),
        ({}, {"activations": ["Tanh"]}, "1 activations; need 3 for each of 1 directions"),
        ({}, {"activations": ["Tanh", "Sine", "Tanh"]}, "activation 'Sine'; need one of Relu, T"),
        ({}, {"layout": 2}, "layout 2; need 0 or 1"),
    ],
)
def test_a_layer_that_does_not_fit_together_is_named(change, attributes, message: str):
    operands = {**operands_of("LSTM", 1), **change}
    with pytest.raises(InputError, match=rf"node 'y0' \(LSTM\): {message}"):
        import_onnx(model("LSTM", operands, **attributes), AbeleContext())


def test_a_layer_runs_on_the_machine():
    operands = operands_of("GRU", 1, lengths=(1, 4, 2))
    need = computed("GRU", operands, 2)
    found = AbeleBackend.run_model(
        model("GRU", operands, 2), [a for a in operands.values() if a.size]
    )
    for mine, other in zip(found, need, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_as_many_steps_are_reversed_as_a_sequence_has(time: int, batch: int):
    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    lengths = np.array([4, 1, 3], np.int32)
    need = x.copy()
    for n, count in enumerate(lengths):
        need[:count, n] = x[:count, n][::-1]
    operands = {"x": x if time == 0 else x.swapaxes(0, 1), "n": lengths}
    (found,) = computed("ReverseSequence", operands, 1, time_axis=time, batch_axis=batch)
    np.testing.assert_array_equal(found if time == 0 else found.swapaxes(0, 1), need)
