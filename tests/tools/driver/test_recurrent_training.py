"""Recurrent networks train: their steps are those of formulas in float64, and of torch."""

from functools import cache

import numpy as np
import onnx
import pytest
from lengths import large
from some_models import model, node, random

from abele.tools import Executable, Training, compile_model

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 5, 4, 3, 4, 3
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
X = random((STEPS, BATCH, INPUTS), 6)
LABELS = np.array([2, 0, 1, 0], np.int32)

Weights = dict[str, np.ndarray]


def weights(kind: str) -> Weights:
    rows = GATES[kind] * HIDDEN
    return {
        "w": random((1, rows, INPUTS), 1, 0.7),
        "r": random((1, rows, HIDDEN), 2, 0.7),
        "b": random((1, 2 * rows), 3, 0.3),
        "v": random((CLASSES, HIDDEN), 4),
        "c": random((CLASSES,), 5),
    }


def classifier(kind: str) -> onnx.ModelProto:
    """A layer, and a dense one on its last state."""
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    nodes = [
        node(kind, "x w r b", " last", hidden_size=HIDDEN, **more),
        node("Squeeze", "last axes", "state"),
        node("Gemm", "state v c", "z", transB=1),
    ]
    nodes[0].output[:] = ["", "last"]
    constants = weights(kind) | {"axes": np.array([0], np.int64)}
    return model(nodes, {"x": [STEPS, BATCH, INPUTS]}, ["z"], constants)


@cache
def compiled(kind: str, *, recompute: bool = False) -> Executable:
    training = Training(learning_rate=1.0, recompute=recompute)
    return compile_model(classifier(kind), "tiny:8", train=training)


def stepped(kind: str, **options) -> tuple[float, Weights]:
    """The loss of a step, and the gradient that it followed."""
    exe = compiled(kind, **options)
    exe.reset()
    before = exe.weights
    loss = float(exe.step({"x": X, "target": LABELS})["loss"])
    return loss, {name: before[name] - after for name, after in exe.weights.items()}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_loss(given: Weights) -> float:
    """The loss of the LSTM in float64, by its formulas."""
    w, r, b = (given[name][0].astype(np.float64) for name in "wrb")
    hidden = cell = np.zeros((BATCH, HIDDEN))
    for x in X.astype(np.float64):
        gates = x @ w.T + hidden @ r.T + b[: len(b) // 2] + b[len(b) // 2 :]
        i, o, f, c = np.split(gates, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
        hidden = sigmoid(o) * np.tanh(cell)
    z = hidden @ given["v"].astype(np.float64).T + given["c"]
    z -= np.log(np.exp(z).sum(1, keepdims=True))
    return float(-z[np.arange(BATCH), LABELS].mean())


@pytest.mark.parametrize("recompute", [large(False), True])
def test_a_step_of_an_lstm_follows_differences_in_float64(recompute: bool):
    loss, found = stepped("LSTM", recompute=recompute)
    start = {name: array.astype(np.float64) for name, array in weights("LSTM").items()}
    assert loss == pytest.approx(lstm_loss(start), rel=1e-6)
    rng = np.random.default_rng(0)
    for name, array in start.items():
        way = rng.normal(size=array.shape)
        ends = [lstm_loss(start | {name: array + sign * 1e-6 * way}) for sign in (1, -1)]
        assert (found[name] * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=2e-5)


@pytest.mark.parametrize("kind", GATES)
def test_the_machine_takes_the_step_of_the_reference(kind: str):
    _, found = stepped(kind)
    exe = compiled(kind)
    exe.reset()
    before = exe.weights
    exe.step({"x": X, "target": LABELS}, at="nn")
    for name, after in exe.weights.items():
        assert found[name] == pytest.approx(before[name] - after, abs=2e-6), name
    exe.reset()
    losses = [float(exe.step({"x": X, "target": LABELS})["loss"]) for _ in range(5)]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("kind", GATES)
def test_a_step_is_that_of_torch(kind: str):
    torch = pytest.importorskip("torch")
    loss, found = stepped(kind)
    layer = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}[kind](INPUTS, HIDDEN)
    # torch's gates: i f c o, and r z n.
    order = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}[kind]
    start = weights(kind)
    rows = [start["w"][0], start["r"][0], *np.split(start["b"][0], 2)]

    def ordered(array: np.ndarray, order: list[int]) -> np.ndarray:
        return np.concatenate([np.split(array, len(order))[i] for i in order])

    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    layer.load_state_dict(
        {name: torch.tensor(ordered(a, order)) for name, a in zip(names, rows, strict=True)}
    )
    v, c = (torch.tensor(start[name], requires_grad=True) for name in "vc")
    _, last = layer(torch.tensor(X))
    z = (last[0] if kind == "LSTM" else last)[0] @ v.T + c
    expected = torch.nn.functional.cross_entropy(z, torch.tensor(LABELS.astype(np.int64)))
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    back = np.argsort(order).tolist()
    ways = [ordered(getattr(layer, name).grad.numpy(), back) for name in names]
    wanted = {"w": ways[0][None], "r": ways[1][None], "b": np.concatenate(ways[2:])[None]}
    wanted |= {"v": v.grad.numpy(), "c": c.grad.numpy()}
    for name, gradient in wanted.items():
        assert found[name] == pytest.approx(gradient, abs=2e-6), name
