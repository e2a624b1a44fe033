"""Losses, optimisers and AlexNet, against what torch computes. Slow, and skipped without torch."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from xdsl.dialects.builtin import ModuleOp

from abele.backends.reference import run_reference
from abele.ir.blob import Blob
from abele.ir.text import parse_module
from abele.passes.train import Train
from abele.tools import Training, compile_model
from abele.tools.driver.context import new_context
from abele.tools.importers.light_networks import seeded

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
functional = torch.nn.functional

SHAPE = (4, 5, 3)
"""Samples, classes, positions."""

RANDOM = np.random.default_rng(0)
X, W = RANDOM.normal(size=SHAPE), RANDOM.normal(size=SHAPE)
LABELS = RANDOM.integers(0, 5, (4, 3)).astype(np.int32)
DISTANT = RANDOM.normal(size=SHAPE)


def training(**options: object) -> ModuleOp:
    """A step of y = x + w in float64, which is as near to torch as rounding is."""
    context, kind = new_context(), "tensor<4x5x3xf64>"
    blob = context.blobs.add(Blob(W))
    text = f"""
    nn.state @w : {kind} = <"{blob.digest}">
    func.func @main(%x: {kind}) -> {kind} attributes {{arg_names = ["x"]}} {{
      %w = nn.load @w : {kind} loc("w")
      %0 = nn.add %x, %w : ({kind}, {kind}) -> {kind} loc("sum")
      func.return %0 : {kind}
    }}"""
    module = parse_module(text, context)
    Train(**options).apply(context, module)
    return module


def ignoring(labels: np.ndarray) -> np.ndarray:
    found = labels.copy()
    found[1, :] = found[2, 0] = -7
    return found


def long(labels: np.ndarray) -> Any:
    return torch.tensor(labels, dtype=torch.int64)


CASES: list[tuple[str, dict[str, object], np.ndarray, Callable[..., Any]]] = [
    (
        "softmax_cross_entropy",
        {},
        LABELS,
        lambda z, r: functional.cross_entropy(z, long(LABELS), reduction=r),
    ),
    (
        "softmax_cross_entropy",
        {"label_smoothing": 0.2},
        LABELS,
        lambda z, r: functional.cross_entropy(z, long(LABELS), label_smoothing=0.2, reduction=r),
    ),
    (
        "softmax_cross_entropy",
        {"label_smoothing": 0.2, "ignore_index": -7},
        ignoring(LABELS),
        lambda z, r: functional.cross_entropy(
            z, long(ignoring(LABELS)), label_smoothing=0.2, ignore_index=-7, reduction=r
        ),
    ),
    ("nll", {}, LABELS, lambda z, r: functional.nll_loss(z, long(LABELS), reduction=r)),
    (
        "nll",
        {"ignore_index": -7},
        ignoring(LABELS),
        lambda z, r: functional.nll_loss(z, long(ignoring(LABELS)), ignore_index=-7, reduction=r),
    ),
    (
        "binary_cross_entropy",
        {},
        (DISTANT > 0).astype(np.float64),
        lambda z, r: functional.binary_cross_entropy_with_logits(
            z, torch.tensor((DISTANT > 0).astype(np.float64)), reduction=r
        ),
    ),
    (
        "mean_square",
        {},
        DISTANT,
        lambda z, r: functional.mse_loss(z, torch.tensor(DISTANT), reduction=r),
    ),
    (
        "mean_absolute",
        {},
        DISTANT,
        lambda z, r: functional.l1_loss(z, torch.tensor(DISTANT), reduction=r),
    ),
    (
        "huber",
        {"delta": 0.7},
        DISTANT,
        lambda z, r: functional.huber_loss(z, torch.tensor(DISTANT), delta=0.7, reduction=r),
    ),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "options", "target", "loss"), CASES)
def test_a_loss_and_its_gradient_are_those_of_torch(
    name: str,
    options: dict[str, object],
    target: np.ndarray,
    loss: Callable[..., Any],
    reduction: str,
):
    module = training(loss=name, reduction=reduction, learning_rate=1.0, **options)
    run = run_reference(module, {"x": X, "target": target})
    weight = torch.tensor(W, requires_grad=True)
    expected = loss(weight + torch.tensor(X), reduction)
    expected.sum().backward()
    assert run.outputs["loss"] == pytest.approx(expected.detach().numpy(), rel=1e-12, abs=1e-14)
    assert W - run.state["w"] == pytest.approx(weight.grad.numpy(), rel=1e-9, abs=1e-14)


OPTIMIZERS: list[tuple[str, dict[str, object], Callable[..., Any]]] = [
    ("sgd", {}, lambda p: torch.optim.SGD(p, 0.05)),
    (
        "sgd",
        {"momentum": 0.9, "weight_decay": 0.1},
        lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.1),
    ),
    (
        "sgd",
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
    ),
    (
        "adam",
        {"beta1": 0.8, "epsilon": 1e-4, "weight_decay": 0.1},
        lambda p: torch.optim.Adam(p, 0.05, (0.8, 0.999), 1e-4, weight_decay=0.1),
    ),
    ("adamw", {"weight_decay": 0.1}, lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.1)),
    ("adamax", {"weight_decay": 0.1}, lambda p: torch.optim.Adamax(p, 0.05, weight_decay=0.1)),
    ("rmsprop", {"weight_decay": 0.1}, lambda p: torch.optim.RMSprop(p, 0.05, weight_decay=0.1)),
    (
        "rmsprop",
        {"centered": True, "momentum": 0.5, "alpha": 0.9, "epsilon": 1e-3},
        lambda p: torch.optim.RMSprop(p, 0.05, 0.9, 1e-3, centered=True, momentum=0.5),
    ),
    (
        "adagrad",
        {"weight_decay": 0.1, "epsilon": 1e-8},
        lambda p: torch.optim.Adagrad(p, 0.05, weight_decay=0.1, eps=1e-8),
    ),
    (
        "adadelta",
        {"alpha": 0.9, "weight_decay": 0.1, "epsilon": 1e-6},
        lambda p: torch.optim.Adadelta(p, 0.05, 0.9, 1e-6, 0.1),
    ),
]


@pytest.mark.parametrize(("name", "numbers", "optimizer"), OPTIMIZERS)
def test_an_optimizer_takes_the_steps_of_torch(
    name: str, numbers: Mapping[str, object], optimizer: Callable[..., Any]
):
    options = {"loss": "mean_square", "reduction": "sum", "learning_rate": 0.05}
    module = training(optimizer=name, **options, **numbers)
    weight = torch.tensor(W, requires_grad=True)
    steps = optimizer([weight])
    state = None
    for _ in range(5):
        state = run_reference(module, {"x": X, "target": DISTANT}, state).state
        steps.zero_grad()
        ((weight + torch.tensor(X) - torch.tensor(DISTANT)) ** 2).sum().backward()
        steps.step()
    # What makes the first steps unbiased is kept in float32.
    assert state["w"] == pytest.approx(weight.detach().numpy(), rel=2e-6, abs=1e-7)


def test_the_epsilon_of_rmsprop_may_be_inside_the_root():
    """That of TensorFlow and of the paper: g / sqrt(v + epsilon). torch has the other one only."""
    options = {"loss": "mean_square", "reduction": "sum", "learning_rate": 0.05}
    module = training(optimizer="rmsprop", epsilon_inside=True, epsilon=0.01, **options)
    weight, square, state = torch.tensor(W), torch.zeros(SHAPE, dtype=torch.float64), None
    for _ in range(5):
        state = run_reference(module, {"x": X, "target": DISTANT}, state).state
        gradient = 2 * (weight + torch.tensor(X) - torch.tensor(DISTANT))
        square = 0.99 * square + 0.01 * gradient**2
        weight = weight - 0.05 * gradient / torch.sqrt(square + 0.01)
    assert state["w"] == pytest.approx(weight.numpy(), rel=1e-12)


# AlexNet

OPERATORS: dict[str, Callable[..., Any]] = {
    "Relu": lambda a, x: functional.relu(x),
    "Conv": lambda a, x, w, b: functional.conv2d(
        x, w, b, a["strides"], a["pads"][:2], groups=a.get("group", 1)
    ),
    "LRN": lambda a, x: functional.local_response_norm(x, a["size"], a["alpha"], a["beta"]),
    "MaxPool": lambda a, x: functional.max_pool2d(
        functional.pad(x, (0, a["pads"][3], 0, a["pads"][2]), value=-torch.inf),
        a["kernel_shape"],
        a["strides"],
    ),
    "Reshape": lambda a, x, shape: x.reshape(x.shape[0], -1),
    "Gemm": lambda a, x, w, b: functional.linear(x, w, b),
    "Identity": lambda a, x: x,
    # Part of the loss.
    "Softmax": lambda a, x: x,
}
"""The operators of AlexNet in torch, from their attributes and operands."""


def alexnet() -> onnx.ModelProto:
    """AlexNet without dropout, which would draw other numbers here than there."""
    model = seeded("alexnet")
    for node in model.graph.node:
        if node.op_type == "Dropout":
            node.op_type = "Identity"
            del node.output[1:], node.attribute[:]
    return model


class Peer:
    """AlexNet in torch, in some precision, with the weights of the model."""

    def __init__(self, model: onnx.ModelProto, dtype: Any) -> None:
        self.graph, self.dtype = model.graph, dtype
        self.weights: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        for tensor in model.graph.initializer:
            value = torch.tensor(numpy_helper.to_array(tensor))
            if value.is_floating_point():
                self.weights[tensor.name] = value.to(dtype).requires_grad_()
            else:
                self.constants[tensor.name] = value

    def step(self, images: np.ndarray, labels: np.ndarray, rate: float) -> float:
        """A step of gradient descent, and its loss before."""
        values = {"data_0": torch.tensor(images).to(self.dtype), **self.weights, **self.constants}
        for node in self.graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            operands = [values[name] for name in node.input]
            values[node.output[0]] = OPERATORS[node.op_type](attributes, *operands)
        loss = functional.cross_entropy(values["prob_1"], long(labels))
        loss.backward()
        with torch.no_grad():
            for weight in self.weights.values():
                weight -= rate * weight.grad
                weight.grad = None
        return loss.item()


@pytest.mark.large
@pytest.mark.parametrize("batch", [1, 4, 16])
def test_alexnet_is_as_near_to_float64_as_torch_is(batch: int):
    """Three steps at exchange on mk2: the error of each tensor is at most 4 times torch's."""
    model, rate = alexnet(), 1e-4
    random = np.random.default_rng(0)
    images = random.standard_normal((batch, 3, 224, 224), np.float32)
    labels = random.integers(0, 1000, batch).astype(np.int32)
    exe = compile_model(model, "mk2", batch=batch, train=Training(learning_rate=rate))
    exact, peer = Peer(model, torch.float64), Peer(model, torch.float32)
    first = exe.weights
    for _ in range(3):
        found = float(exe.step({"data_0": images, "target": labels})["loss"])
        loss = exact.step(images, labels, rate)
        peer.step(images, labels, rate)
        # One image is learnt in two steps. A loss near 0 is the difference of two numbers near 10,
        # each of which has a rounding of 1e-6 in float32.
        assert found == pytest.approx(loss, rel=1e-4, abs=1e-6)
    weights = exe.weights
    assert set(weights) == set(exact.weights)
    for name, weight in weights.items():
        true = exact.weights[name].detach().numpy()
        own = np.linalg.norm(weight - true)
        theirs = np.linalg.norm(peer.weights[name].detach().numpy() - true)
        assert np.linalg.norm(true - first[name]) > 10 * own, name
        assert own <= 4 * theirs, f"{name}: {own:.3g}, torch {theirs:.3g}"


@pytest.mark.large
def test_the_loss_of_alexnet_falls_over_20_steps():
    random = np.random.default_rng(1)
    given = {
        "data_0": random.standard_normal((4, 3, 224, 224), np.float32),
        "target": random.integers(0, 1000, 4).astype(np.int32),
    }
    exe = compile_model(alexnet(), "mk2", batch=4, train=Training(learning_rate=1e-4))
    losses = [float(exe.step(given)["loss"]) for _ in range(20)]
    assert losses[-1] < 0.2 * losses[0]
    assert np.mean(losses[10:]) < np.mean(losses[:10])
