"""A step of training: losses, optimisers, and what is and is not updated."""

from dataclasses import fields
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, ModuleOp, StringAttr, f64
from xdsl.ir import Attribute

from abele.backends.faults import IndexFault
from abele.backends.reference import run_reference
from abele.dialects import control, nn
from abele.dialects.levels import NN as NN_LEVEL
from abele.dialects.settable import listed_names
from abele.ir.errors import InputError
from abele.ir.provenance import origin
from abele.ir.text import parse_module
from abele.ir.verify import verify
from abele.ir.well_known import FACTORS, TRAINED
from abele.passes.gradients.losses import LOSSES, REDUCTIONS
from abele.passes.gradients.optimizers import OPTIMIZERS, Numbers
from abele.passes.train import Train
from abele.tools.driver.context import new_context

Arrays = dict[str, np.ndarray]

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
W = np.array([[0.4, -0.3], [0.2, 0.9], [-0.6, 0.1]])


def linear(op: str = "") -> tuple[str, Arrays]:
    """y = x @ w, and perhaps a function of it, in float64."""
    last = "%1" if op else "%0"
    kind = "tensor<2x2xf64>"
    more = f'%1 = {op} : ({kind}) -> {kind} loc("end")' if op else ""
    text = f"""
    nn.state @w : tensor<3x2xf64> = <"{{w}}">
    func.func @main(%x: tensor<2x3xf64>) -> {kind} attributes {{arg_names = ["x"]}} {{
      %w = nn.load @w : tensor<3x2xf64> loc("w")
      %0 = nn.matmul %x, %w : (tensor<2x3xf64>, tensor<3x2xf64>) -> {kind} loc("product")
      {more}
      func.return {last} : {kind}
    }}"""
    return text, {"w": W}


def training(program: tuple[str, Arrays], factors: Attribute | None = None, **options) -> ModuleOp:
    """A program that was made to train.

    factors: the attribute of the module that gives weights factors of the learning rate.
    """
    text, states = program
    context = new_context()
    for name, array in states.items():
        text = text.replace(f"{{{name}}}", context.blobs.add(array).digest)
    module = parse_module(text, context)
    if factors is not None:
        module.attributes[FACTORS] = factors
    Train(**options).apply(context, module)
    verify(module, NN_LEVEL)
    return module


OF_ONE_VECTOR = [name for name, each in LOSSES.items() if not each.has_frames]
"""The losses of outputs with two axes."""


def target_of(loss: str) -> np.ndarray:
    if LOSSES[loss].has_classes:
        return np.array([1, 0], np.int32)
    return np.array([[0.3, 1.0], [0.0, 0.8]])


def inputs_for(loss: str) -> dict[str, np.ndarray]:
    return {"x": X, "target": target_of(loss)} if LOSSES[loss].has_target else {"x": X}


def loss_of(module: ModuleOp, w: np.ndarray, inputs: dict[str, np.ndarray]) -> float:
    return float(run_reference(module, inputs, {"w": w}).outputs["loss"].sum())


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", OF_ONE_VECTOR)
def test_a_step_follows_the_slope_of_the_loss(loss: str, reduction: str):
    options = {"loss": loss, "reduction": reduction, "learning_rate": 1.0}
    if LOSSES[loss].has_classes:
        options["label_smoothing"] = 0.1
    module = training(linear(), **options)
    inputs = inputs_for(loss)
    stepped = W - run_reference(module, inputs).state["w"]
    way = np.random.default_rng(0).normal(size=W.shape)
    ends = [loss_of(module, W + sign * 1e-6 * way, inputs) for sign in (1, -1)]
    assert (stepped * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


def softmax(z: np.ndarray) -> np.ndarray:
    power = np.exp(z - z.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


Z = X @ W
VALUES = {
    "softmax_cross_entropy": -np.log(softmax(Z)[[0, 1], [1, 0]]),
    "nll": -Z[[0, 1], [1, 0]],
    "binary_cross_entropy": np.log1p(np.exp(Z)) - Z * target_of("mean_square"),
    "mean_square": (Z - target_of("mean_square")) ** 2,
    "mean_absolute": np.abs(Z - target_of("mean_square")),
    "huber": np.where(
        np.abs(Z - target_of("mean_square")) <= 0.5,
        (Z - target_of("mean_square")) ** 2 / 2,
        0.5 * (np.abs(Z - target_of("mean_square")) - 0.25),
    ),
    "given": Z,
}
"""The losses of x @ w, one by one, as their formulas say."""


@pytest.mark.parametrize("loss", OF_ONE_VECTOR)
def test_a_loss_is_what_its_formula_says(loss: str):
    delta = {"delta": 0.5} if loss == "huber" else {}
    module = training(linear(), loss=loss, reduction="none", **delta)
    found = run_reference(module, inputs_for(loss)).outputs["loss"]
    assert found == pytest.approx(VALUES[loss], rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "op"),
    [
        ("softmax_cross_entropy", "nn.softmax %0 axis 1"),
        ("binary_cross_entropy", "nn.sigmoid %0"),
    ],
)
def test_a_softmax_or_sigmoid_at_the_end_is_part_of_the_loss(loss: str, op: str):
    inputs = {"x": X, "target": target_of(loss)}
    runs = [run_reference(training(linear(each), loss=loss), inputs) for each in ("", op)]
    assert runs[0].outputs == runs[1].outputs
    assert np.array_equal(runs[0].state["w"], runs[1].state["w"])


def test_ignored_labels_count_neither_in_the_loss_nor_in_the_step():
    module = training(linear(), ignore_index=-1, learning_rate=1.0)
    found = run_reference(module, {"x": X, "target": np.array([1, -1], np.int32)})
    assert found.outputs["loss"] == pytest.approx(VALUES["softmax_cross_entropy"][0])
    none = run_reference(module, {"x": X, "target": np.array([-1, -1], np.int32)})
    assert none.outputs["loss"] == 0
    assert np.array_equal(none.state["w"], W)


def test_a_label_out_of_range_is_a_fault():
    with pytest.raises(IndexFault, match="2"):
        run_reference(training(linear()), {"x": X, "target": np.array([1, 2], np.int32)})


# Optimisers, each by its formula in NumPy


def moments(s, g, o, t):
    s["m"] = o.beta1 * s.get("m", 0) + (1 - o.beta1) * g
    s["v"] = o.beta2 * s.get("v", 0) + (1 - o.beta2) * g * g
    return (s["m"] / (1 - o.beta1**t)) / (np.sqrt(s["v"] / (1 - o.beta2**t)) + o.epsilon)


def norm(a):
    return np.sqrt((a * a).sum())


def sgd(s, w, g, o, t):
    g = g + o.weight_decay * w
    s["v"] = o.momentum * s.get("v", 0) + (1 - o.dampening) * g
    return g + o.momentum * s["v"] if o.nesterov else s["v"]


def adamax(s, w, g, o, t):
    s["m"] = o.beta1 * s.get("m", 0) + (1 - o.beta1) * g
    s["v"] = np.maximum(o.beta2 * s.get("v", 0), np.abs(g))
    return s["m"] / (1 - o.beta1**t) / (s["v"] + o.epsilon)


def adamw(s, w, g, o, t):
    return moments(s, g, o, t) + o.weight_decay * w


def lamb(s, w, g, o, t):
    x = adamw(s, w, g, o, t)
    return norm(w) / norm(x) * x


def rmsprop(s, w, g, o, t):
    s["v"] = o.alpha * s.get("v", 0) + (1 - o.alpha) * g * g
    v = s["v"]
    if o.centered:
        s["a"] = o.alpha * s.get("a", 0) + (1 - o.alpha) * g
        v = v - s["a"] ** 2
    x = g / (np.sqrt(v + o.epsilon) if o.epsilon_inside else np.sqrt(v) + o.epsilon)
    s["b"] = o.momentum * s.get("b", 0) + x
    return s["b"]


def adagrad(s, w, g, o, t):
    s["v"] = s.get("v", 0) + g * g
    return g / (np.sqrt(s["v"]) + o.epsilon)


def adadelta(s, w, g, o, t):
    g = g + o.weight_decay * w
    s["v"] = o.alpha * s.get("v", 0) + (1 - o.alpha) * g * g
    step = np.sqrt(s.get("m", 0) + o.epsilon) / np.sqrt(s["v"] + o.epsilon) * g
    s["m"] = o.alpha * s.get("m", 0) + (1 - o.alpha) * step * step
    return step


def lars(s, w, g, o, t):
    g = g + o.weight_decay * w
    s["v"] = o.momentum * s.get("v", 0) + o.trust * norm(w) / norm(g) * g
    return s["v"]


DIRECTIONS = {
    "sgd": sgd,
    "adam": lambda s, w, g, o, t: moments(s, g + o.weight_decay * w, o, t),
    "adamw": adamw,
    "adamax": adamax,
    "lamb": lamb,
    "rmsprop": rmsprop,
    "adagrad": adagrad,
    "adadelta": adadelta,
    "lars": lars,
}

VARIANTS = [
    *((name, {}) for name in OPTIMIZERS),
    ("sgd", {"momentum": 0.9, "dampening": 0.25, "weight_decay": 0.1}),
    ("sgd", {"momentum": 0.9, "nesterov": True}),
    ("adam", {"weight_decay": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}),
    ("adamw", {"weight_decay": 0.1}),
    ("lamb", {"weight_decay": 0.1}),
    ("rmsprop", {"centered": True, "momentum": 0.5}),
    ("adadelta", {"alpha": 0.5, "epsilon": 1e-2, "weight_decay": 0.1}),
    ("rmsprop", {"epsilon_inside": True, "epsilon": 1e-3}),
    ("lars", {"momentum": 0.9, "weight_decay": 0.01}),
]


@pytest.mark.parametrize(("name", "numbers"), VARIANTS)
def test_an_optimizer_steps_as_its_formula_says(name: str, numbers: dict[str, float]):
    options = {"loss": "mean_square", "reduction": "sum", "learning_rate": 0.05}
    module = training(linear(), optimizer=name, **options, **numbers)
    target = target_of("mean_square")
    kept, w, state = {}, W, None
    for t in range(1, 4):
        gradient = 2 * X.T @ (X @ w - target)
        w = w - 0.05 * DIRECTIONS[name](kept, w, gradient, Numbers(**numbers), t)
        state = run_reference(module, {"x": X, "target": target}, state).state
        # What makes the first steps unbiased is kept in float32.
        assert state["w"] == pytest.approx(w, rel=1e-7)


@pytest.mark.parametrize("nesterov", [False, True])
def test_the_momentum_may_keep_steps_with_the_rate_of_their_time(nesterov: bool):
    numbers = {"momentum": 0.9, "nesterov": nesterov, "rate_in_momentum": True}
    options = {"loss": "mean_square", "reduction": "sum", "schedule": True}
    module, target = training(linear(), **options, **numbers), target_of("mean_square")
    kept, w, state = np.zeros_like(W), W, None
    for rate in (0.0625, 0.0625, 0.0078125):
        step = rate * 2 * X.T @ (X @ w - target)
        kept = 0.9 * kept + step
        w = w - (step + 0.9 * kept if nesterov else kept)
        inputs = {"x": X, "target": target, "learning_rate": np.float32(rate)}
        state = run_reference(module, inputs, state).state
        assert state["w"] == pytest.approx(w, rel=1e-7)


@pytest.mark.parametrize("schedule", [False, True])
def test_a_weight_may_have_factors_of_the_rate_and_the_decay(schedule: bool):
    factors = DictionaryAttr({"w": ArrayAttr([FloatAttr(2.0, f64), FloatAttr(0.5, f64)])})
    options = {"loss": "mean_square", "reduction": "sum", "weight_decay": 0.1}
    trained = training(linear(), factors, learning_rate=0.05, schedule=schedule, **options)
    target = target_of("mean_square")
    rate = {"learning_rate": np.float32(0.05)} if schedule else {}
    found = run_reference(trained, {"x": X, "target": target, **rate}).state["w"]
    wanted = W - 0.1 * (2 * X.T @ (X @ W - target) + 0.05 * W)
    assert found == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize(
    "attribute", [StringAttr("w=2"), DictionaryAttr({"w": FloatAttr(2.0, f64)})]
)
def test_factors_of_another_form_are_refused(attribute: Attribute):
    with pytest.raises(InputError, match="need two numbers of 0 or more"):
        training(linear(), attribute)


def test_every_optimizer_and_loss_has_a_second_definition():
    assert set(DIRECTIONS) == set(OPTIMIZERS)
    assert set(VALUES) == set(OF_ONE_VECTOR)


def test_the_norm_of_all_gradients_is_limited():
    options = {"loss": "mean_square", "reduction": "sum", "learning_rate": 1.0}
    inputs = {"x": X, "target": target_of("mean_square")}
    free, limited, wide = (
        W - run_reference(training(linear(), clip_norm=c, **options), inputs).state["w"]
        for c in (0.0, 0.1, 1e6)
    )
    assert norm(limited) == pytest.approx(0.1)
    assert limited / norm(limited) == pytest.approx(free / norm(free))
    assert wide == pytest.approx(free)


def test_the_host_may_give_the_learning_rate():
    module = training(linear(), loss="mean_square", schedule=True)
    inputs = {"x": X, "target": target_of("mean_square")}
    steps = [
        W - run_reference(module, inputs | {"learning_rate": np.float32(r)}).state["w"]
        for r in (np.float32(0.5), np.float32(0.25))
    ]
    assert steps[0] == pytest.approx(2 * steps[1])


NORMALISED = """
    nn.state @scale : tensor<2xf32> = <"{scale}">
    nn.state @bias : tensor<2xf32> = <"{bias}">
    nn.state @mean : tensor<2xf32> = <"{mean}">
    nn.state @variance : tensor<2xf32> = <"{variance}">
    func.func @main(%x: tensor<4x2x3xf32>) -> tensor<4x2x3xf32> attributes {arg_names = ["x"]} {
      %s = nn.load @scale : tensor<2xf32>
      %b = nn.load @bias : tensor<2xf32>
      %m = nn.load @mean : tensor<2xf32>
      %v = nn.load @variance : tensor<2xf32>
      %0 = nn.batch_norm %x, %s, %b, %m, %v epsilon 0.5 : (tensor<4x2x3xf32>, tensor<2xf32>,
        tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4x2x3xf32> loc("norm")
      func.return %0 : tensor<4x2x3xf32>
    }"""

STATISTICS = {
    "scale": np.array([1, 2], np.float32),
    "bias": np.array([0, 1], np.float32),
    "mean": np.array([5, 6], np.float32),
    "variance": np.array([7, 8], np.float32),
}


def normalised(x: np.ndarray, target: np.ndarray, *, two: bool = False, **options):
    text = NORMALISED.replace("tensor<4x2x3", "tensor<2x2x3") if two else NORMALISED
    module = training((text, STATISTICS), loss="mean_square", outputs=True, **options)
    return run_reference(module, {"x": x, "target": target})


def test_a_batch_is_normalised_by_its_own_statistics_which_the_running_ones_follow():
    x = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    found = normalised(x, np.zeros_like(x))
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    shown = (x - mean[:, None]) / np.sqrt(variance[:, None] + 0.5)
    expected = shown * STATISTICS["scale"][:, None] + STATISTICS["bias"][:, None]
    assert found.outputs["out0"] == pytest.approx(expected, abs=1e-5)
    assert found.state["mean"] == pytest.approx(0.9 * STATISTICS["mean"] + 0.1 * mean, rel=1e-5)
    unbiased = variance * 12 / 11
    follows = 0.9 * STATISTICS["variance"] + 0.1 * unbiased
    assert found.state["variance"] == pytest.approx(follows, rel=1e-5)
    step = 0.01 * 2 * (expected * shown).sum((0, 2)) / x.size
    assert found.state["scale"] == pytest.approx(STATISTICS["scale"] - step, abs=1e-5)


def test_groups_of_samples_are_normalised_by_statistics_of_their_own():
    x = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    zeros = np.zeros_like(x[:2])
    found = normalised(x, np.zeros_like(x), batch_groups=2, reduction="sum")
    halves = [normalised(each, zeros, two=True, reduction="sum") for each in (x[:2], x[2:])]
    made = np.concatenate([each.outputs["out0"] for each in halves])
    assert found.outputs["out0"] == pytest.approx(made, abs=1e-5)
    for name in ("mean", "variance"):
        mean = (halves[0].state[name] + halves[1].state[name]) / 2
        assert found.state[name] == pytest.approx(mean, rel=1e-5)
    for name in ("scale", "bias"):
        steps = sum(STATISTICS[name] - each.state[name] for each in halves)
        assert found.state[name] == pytest.approx(STATISTICS[name] - steps, abs=1e-5)


def test_groups_have_equal_numbers_of_samples():
    x = np.zeros((4, 2, 3), np.float32)
    with pytest.raises(InputError, match="at norm: batch_groups 3 of 4 samples; need a number"):
        normalised(x, x, batch_groups=3)


@pytest.mark.parametrize("options", [{"batch_statistics": 0.0}, {"freeze": ("scale",)}])
def test_a_frozen_normalisation_keeps_its_statistics(options: dict[str, object]):
    x = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    found = normalised(x, np.zeros_like(x), **options)
    assert np.array_equal(found.state["mean"], STATISTICS["mean"])
    assert not np.array_equal(found.state["bias"], STATISTICS["bias"])
    assert np.array_equal(found.state["scale"], STATISTICS["scale"]) == ("freeze" in options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"loss": "mean_sqare"}, "loss 'mean_sqare'; did you mean mean_square"),
        ({"optimizer": "sdg"}, "no optimizer 'sdg'; did you mean sgd.$"),
        ({"reduction": "average"}, "no reduction 'average'; there are mean, none, sum$"),
        ({"momentum": 1.0}, "momentum 1; need 0 or more, and less than 1"),
        ({"optimizer": "adam", "momentum": 0.5}, "optimizer adam has no momentum; it takes beta1"),
        ({"nesterov": True}, "nesterov without a momentum"),
        ({"loss": "huber", "label_smoothing": 0.1}, "loss huber has no label_smoothing"),
        ({"label_smoothing": 1.0}, "label_smoothing 1"),
        ({"learning_rate": -1.0}, "learning_rate -1; need 0 or more"),
        ({"freeze": ("v",)}, "freeze 'v': no weight has such a name; there is w"),
        ({"freeze": ("(",)}, "freeze '\\(': .*; need a pattern"),
        ({"freeze": ("w",)}, "the loss depends on no weight that is trained"),
        ({"output": "z"}, "no output 'z'; there is out0"),
        ({"target": "x"}, "the program has an input 'x' already"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, object], problem: str):
    with pytest.raises(InputError, match=problem):
        training(linear(), **options)


def test_every_number_of_an_optimizer_is_an_option():
    names = {each.name for each in fields(Numbers)}
    assert names <= {each.name for each in fields(Train)}
    assert {number for each in OPTIMIZERS.values() for number in each.reads} == names


def test_weights_are_updated_at_the_end():
    module = training(linear("nn.tanh %0"), loss="mean_square")
    names = [op.name for op in module.walk()]
    assert names[-3:] == ["nn.sub", "nn.store", "func.return"]
    (store,) = (op for op in module.walk() if isinstance(op, nn.StoreOp))
    assert origin(store) == "product/w/update"


# Micro-batches

BIG = np.random.default_rng(1).normal(size=(8, 3))
LABELS = np.array([0, 1, -1, 1, -1, -1, 1, 0], np.int32)
"""The second part of four samples has fewer labels that count than the first."""


def of_eight(program: tuple[str, Arrays]) -> tuple[str, Arrays]:
    """The same program for eight samples instead of two."""
    text, states = program
    return text.replace("2x3xf64", "8x3xf64").replace("2x2xf64", "8x2xf64"), states


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_micro_batches_step_as_the_whole_batch_does(reduction: str):
    options = {"reduction": reduction, "ignore_index": -1, "learning_rate": 1.0, "outputs": True}
    options |= {"clip_norm": 0.1, "momentum": 0.5}
    inputs = {"x": BIG, "target": LABELS}
    whole = run_reference(training(of_eight(linear()), **options), inputs)
    parts = run_reference(training(linear(), micro_batches=4, **options), inputs)
    for name, array in whole.outputs.items():
        assert parts.outputs[name] == pytest.approx(array, rel=1e-12), name
    for name, array in whole.state.items():
        assert parts.state[name] == pytest.approx(array, rel=1e-12), name


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_micro_batches_of_a_given_loss_add_up_to_the_whole_batch(reduction: str):
    """The program computes a mean or a sum without axes, so the parts follow from its input."""
    kind = "tensor<2x2xf64>"

    def losses(program: tuple[str, Arrays]) -> tuple[str, Arrays]:
        text, states = program
        count = 16 if "8x2xf64" in text else 4
        factor = 1 / count if reduction == "mean" else 1.0
        shape = kind.replace("2x2", f"{count // 2}x2")
        text = text.replace(
            "func.return %0",
            f"""
          %s = nn.square %0 : ({shape}) -> {shape} loc("s")
          %t = nn.reduce "sum" %s axes [0, 1] : ({shape}) -> tensor<f64> loc("t")
          %l = nn.scale %t by {factor} : (tensor<f64>) -> tensor<f64> loc("l")
          func.return %l""",
        )
        return text.replace(f": {shape}\n    }}", ": tensor<f64>\n    }").replace(
            f"-> {shape} attributes", "-> tensor<f64> attributes"
        ), states

    options = {"loss": "given", "reduction": reduction, "learning_rate": 0.5}
    whole = run_reference(training(losses(of_eight(linear())), **options), {"x": BIG})
    parts = run_reference(training(losses(linear()), micro_batches=4, **options), {"x": BIG})
    assert parts.outputs["loss"] == pytest.approx(whole.outputs["loss"], rel=1e-12)
    assert parts.state["w"] == pytest.approx(whole.state["w"], rel=1e-12)


def test_a_gradient_of_narrow_elements_is_summed_in_wide_ones():
    text = linear()[0].replace("f64", "f16")
    module = training((text, {"w": W.astype(np.float16)}), micro_batches=3)
    (loop,) = (op for op in module.walk() if isinstance(op, control.RepeatOp))
    assert [str(v.type) for v in loop.initial] == ["tensor<f32>", "tensor<3x2xf32>"]


def test_samples_may_lie_along_another_axis_of_an_input():
    text, states = linear()
    text = text.replace("%x: tensor<2x3xf64>", "%x: tensor<3x2xf64>").replace(
        "%0 = nn.matmul %x, %w : (tensor<2x3xf64>",
        "%0 = nn.matmul %x, %w transpose_lhs : (tensor<3x2xf64>",
    )
    with pytest.raises(
        InputError, match=r"input 'x' of shape \[3, 2\] has not 2 samples .* x:AXIS"
    ):
        training((text, states), micro_batches=4)
    module = training((text, states), micro_batches=4, batch_axes=("x:1",), ignore_index=-1)
    whole = training(of_eight(linear()), ignore_index=-1)
    found = run_reference(module, {"x": BIG.T, "target": LABELS}).state["w"]
    expected = run_reference(whole, {"x": BIG, "target": LABELS}).state["w"]
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_state_that_the_program_stores_goes_from_one_micro_batch_to_the_next():
    text, states = linear()
    text = text.replace("func.func", 'nn.state @n : tensor<f64> = <"{n}">\nfunc.func')
    text = text.replace(
        "%w = nn.load",
        """%n = nn.load @n : tensor<f64>
      %more = nn.shift %n by 1.0 : (tensor<f64>) -> tensor<f64>
      nn.store %more, @n : tensor<f64>
      %w = nn.load""",
    )
    module = training((text, states | {"n": np.array(7.0)}), micro_batches=4, ignore_index=-1)
    assert run_reference(module, {"x": BIG, "target": LABELS}).state["n"] == 11


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("parts", [1, 2])
def test_several_steps_in_a_run_are_as_many_runs_to_the_bit(optimizer: str, parts: int):
    options = {"optimizer": optimizer, "micro_batches": parts, "ignore_index": -1}
    options |= {"clip_norm": 0.5, "outputs": True, "schedule": True}
    one, many = training(linear(), **options), training(linear(), steps=3, **options)
    random = np.random.default_rng(0)
    inputs = {
        "x": random.standard_normal((3, 2 * parts, 3)),
        "target": random.integers(-1, 2, (3, 2 * parts), np.int32),
        "learning_rate": np.array([0.1, 0.5, 0.2], np.float32),
    }
    found = run_reference(many, inputs)
    state = None
    for i in range(3):
        step = run_reference(one, {name: array[i] for name, array in inputs.items()}, state)
        state = step.state
        for name, array in step.outputs.items():
            assert np.array_equal(found.outputs[name][i], array), name
    for name, array in state.items():
        assert np.array_equal(found.state[name], array), name


def test_several_steps_are_the_iterations_of_a_loop_of_runs():
    module = training(linear(), loss="mean_square", steps=3)
    (loop,) = (op for op in module.walk() if isinstance(op, control.RepeatOp))
    assert (loop.iterations, loop.runs is not None) == (3, True)
    inside = [op.name for op in loop.body.block.ops]
    assert (inside.count("nn.load"), inside.count("nn.store")) == (1, 1)
    assert inside.count("nn.update") == 1
    # Both inputs are read by the number of the iteration.
    assert inside[:4] == ["nn.reshape", "nn.gather", "nn.reshape", "nn.reshape"]
    assert {op.name for op in loop.parent.ops} <= {
        "nn.constant", "nn.expand", "control.repeat", "func.return"
    }  # fmt: skip
    assert [str(t) for t in loop.parent_op().function_type.outputs] == ["tensor<3xf64>"]


def test_a_result_that_is_an_input_is_one_of_several_steps_too():
    text, states = linear()
    text = text.replace(
        "-> tensor<2x2xf64> attributes", "-> (tensor<2x2xf64>, tensor<2x3xf64>) attributes"
    )
    text = text.replace(
        "func.return %0 : tensor<2x2xf64>", "func.return %0, %x : tensor<2x2xf64>, tensor<2x3xf64>"
    )
    module = training((text, states), loss="mean_square", output="out0", outputs=True, steps=2)
    x = np.arange(12.0).reshape(2, 2, 3)
    found = run_reference(module, {"x": x, "target": np.zeros((2, 2, 2))})
    assert np.array_equal(found.outputs["out1"], x)


def test_micro_batches_are_the_iterations_of_a_loop_before_the_update():
    module = training(linear(), loss="mean_square", micro_batches=4)
    (loop,) = (op for op in module.walk() if isinstance(op, control.RepeatOp))
    inside = [op.name for op in loop.body.block.ops]
    # Both inputs are read by the number of the iteration, and nothing is loaded or stored.
    assert inside.count("nn.gather") == 2
    assert inside[-3:] == ["nn.add", "nn.add", "control.yield"]
    assert not {"nn.load", "nn.store"} & set(inside)
    after = [op.name for op in loop.parent.ops][[*loop.parent.ops].index(loop) + 1 :]
    assert after == ["nn.scale", "nn.sub", "nn.store", "func.return"]
    assert {origin(op) for op in loop.body.block.ops if op.name == "nn.matmul"} == {
        "product",
        "product/backward",
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"micro_batches": 0}, "micro_batches 0; need 1 or more"),
        ({"steps": 0}, "steps 0; need 1 or more"),
        ({"batch_axes": ("x:1",)}, "batch_axes without micro_batches"),
        ({"micro_batches": 2, "batch_axes": ("x",)}, "batch_axes 'x'; need INPUT:AXIS"),
        ({"micro_batches": 2, "batch_axes": ("z:1",)}, "no input 'z'"),
    ],
)
def test_micro_batches_that_cannot_be_are_refused(options: dict[str, object], problem: str):
    with pytest.raises(InputError, match=problem):
        training(linear(), **options)


IN_A_LOOP = """
    nn.state @w : tensor<2xf64> = <"{w}">
    func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
      %w = nn.load @w : tensor<2xf64> loc("w")
      %0 = control.repeat 2 (%x) : (tensor<2xf64>) -> (tensor<2xf64>) {
      ^bb0(%y: tensor<2xf64>):
        %1 = nn.mul %y, %w : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
        control.yield %1 : tensor<2xf64>
      }
      func.return %0 : tensor<2xf64>
    }"""


def test_a_weight_may_be_read_in_a_loop_alone():
    """The loss is (x w^2)^2 for a target of 0, and its slope is 4 x^2 w^3."""
    w, x = np.array([0.5, -1.0]), np.array([2.0, 1.0])
    module = training((IN_A_LOOP, {"w": w}), loss="mean_square", reduction="sum")
    found = run_reference(module, {"arg0": x, "target": np.zeros(2)})
    np.testing.assert_allclose(found.state["w"], w - 0.01 * 4 * x**2 * w**3)


IN_A_FUNCTION = """
    nn.state @w : tensor<2xf64> = <"{w}">
    func.func @f(%y: tensor<2xf64>) -> tensor<2xf64> {
      %w = nn.load @w : tensor<2xf64> loc("w")
      %0 = nn.mul %y, %w : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
      func.return %0 : tensor<2xf64>
    }
    func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
      %0 = control.repeat 2 (%x) : (tensor<2xf64>) -> (tensor<2xf64>) {
      ^bb0(%y: tensor<2xf64>):
        %1 = func.call @f(%y) : (tensor<2xf64>) -> tensor<2xf64>
        control.yield %1 : tensor<2xf64>
      }
      %w = nn.load @w : tensor<2xf64> loc("w")
      %2 = nn.mul %0, %w : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
      func.return %2 : tensor<2xf64>
    }"""


def test_a_weight_may_be_loaded_in_a_function_too():
    """The loss is (x w^3)^2 for a target of 0, and its slope is 6 x^2 w^5."""
    w, x = np.array([0.5, -1.0]), np.array([2.0, 1.0])
    module = training((IN_A_FUNCTION, {"w": w}), loss="mean_square", reduction="sum")
    found = run_reference(module, {"arg0": x, "target": np.zeros(2)})
    np.testing.assert_allclose(found.state["w"], w - 0.01 * 6 * x**2 * w**5)


NORMALISED_IN_A_FUNCTION = (
    NORMALISED.replace("@main", "@f")
    + """
    func.func @main(%x: tensor<4x2x3xf32>) -> tensor<4x2x3xf32> {
      %0 = func.call @f(%x) : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
      func.return %0 : tensor<4x2x3xf32>
    }"""
)


def test_running_statistics_are_not_updated_in_a_function_and_no_weights():
    program = (NORMALISED_IN_A_FUNCTION, STATISTICS)
    with pytest.raises(InputError, match="^nn.batch_norm at norm is in a loop, a branch or a "):
        training(program, loss="mean_square")
    module = training(program, loss="mean_square", batch_statistics=0.0)
    assert listed_names(module, TRAINED) == ("scale", "bias")


def test_a_store_in_a_branch_is_not_carried_between_micro_batches():
    text, states = linear()
    text = text.replace("func.func", 'nn.state @n : tensor<f64> = <"{n}">\nfunc.func')
    text = text.replace(
        "%w = nn.load",
        """%n = nn.load @n : tensor<f64>
      %big = nn.greater %n, %n : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %o = control.if %big : tensor<i1> -> (tensor<f64>) {
        nn.store %n, @n : tensor<f64> loc("count")
        control.yield %n : tensor<f64>
      } else {
        control.yield %n : tensor<f64>
      }
      %w = nn.load""",
    )
    with pytest.raises(InputError, match="^micro_batches: nn.store at count is in a loop, a br"):
        training((text, states | {"n": np.array(7.0)}), micro_batches=4)


STORED = """
    nn.state @w : tensor<2xf8E5M2> = <"{w}">
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf8E5M2>) {
      %w = nn.load @w : tensor<2xf8E5M2> loc("w")
      %0 = nn.cast %w : (tensor<2xf8E5M2>) -> tensor<2xf32>
      %1 = nn.mul %x, %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1, %w : tensor<2xf32>, tensor<2xf8E5M2>
    }"""


@pytest.mark.parametrize(
    ("output", "problem"),
    [("out0", "weight 'w' has elements f8E5M2, which are only stored"), ("out1", "output 'out1'")],
)
def test_elements_that_are_only_stored_are_not_trained(output: str, problem: str):
    states = {"w": np.ones(2, ml_dtypes.float8_e5m2)}
    with pytest.raises(InputError, match=problem):
        training((STORED, states), loss="mean_square", output=output)


THROUGH_STORED = """
    nn.state @w : tensor<2xf32> = <"{w}">
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %w = nn.load @w : tensor<2xf32> loc("w")
      %0 = nn.cast %w : (tensor<2xf32>) -> tensor<2xf8E5M2>
      %1 = nn.cast %0 : (tensor<2xf8E5M2>) -> tensor<2xf32>
      %3 = nn.cast %0 : (tensor<2xf8E5M2>) -> tensor<2xf32>
      %4 = nn.add %1, %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }"""


def test_gradients_pass_casts_to_elements_that_are_only_stored_and_are_added_in_wider_ones():
    w = np.ones(2, np.float32)
    module = training(
        (THROUGH_STORED, {"w": w}), loss="mean_square", reduction="sum", learning_rate=0.5
    )
    x = {"arg0": w, "target": np.array([0, 2], np.float32)}
    assert run_reference(module, x).state["w"].tolist() == [1 - 0.5 * 2 * 2 * 2, 1]


# Losses of sequences

SPOKEN = np.linspace(-1, 1, 2 * 4 * 3).reshape(2, 4, 3)
SAID = np.array([[1, 0, -1], [2, -1, -1]], np.int32)
"""Two labels of the first sample, one of the second. The blank is the last class, 3."""


def spoken(op: str = "") -> tuple[str, Arrays]:
    """y = x @ w, and perhaps a function of it, of samples, frames and classes."""
    last, kind = "%1" if op else "%0", "tensor<2x4x4xf64>"
    more = f'%1 = {op} : ({kind}) -> {kind} loc("end")' if op else ""
    text = f"""
    nn.state @w : tensor<3x4xf64> = <"{{w}}">
    func.func @main(%x: tensor<2x4x3xf64>) -> {kind} attributes {{arg_names = ["x"]}} {{
      %w = nn.load @w : tensor<3x4xf64> loc("w")
      %0 = nn.matmul %x, %w : (tensor<2x4x3xf64>, tensor<3x4xf64>) -> {kind} loc("p")
      {more}
      func.return {last} : {kind}
    }}"""
    return text, {"w": np.random.default_rng(3).normal(size=(3, 4))}


def chances(labels: list[int], logs: np.ndarray, blank: int) -> float:
    """The chance of all alignments of frames with labels."""
    total = 0.0
    for path in product(range(logs.shape[1]), repeat=len(logs)):
        runs = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        if [c for c in runs if c != blank] == labels:
            total += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return total


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_loss_of_sequences_sums_over_alignments(reduction: str):
    options = {"loss": "ctc", "blank": 3, "labels": 3, "reduction": reduction}
    module = training(spoken(), learning_rate=1.0, **options)
    inputs, weights = {"x": SPOKEN, "target": SAID}, spoken()[1]["w"]
    found = run_reference(module, inputs)
    logs = SPOKEN @ weights
    logs = logs - np.log(np.exp(logs).sum(2, keepdims=True))
    each = np.array([-np.log(chances(y, x, 3)) for y, x in zip([[1, 0], [2]], logs, strict=True)])
    wanted = {"none": each, "sum": each.sum(), "mean": (each / [2, 1]).mean()}
    assert found.outputs["loss"] == pytest.approx(wanted[reduction], rel=1e-12)
    stepped = weights - found.state["w"]
    way = np.random.default_rng(0).normal(size=weights.shape)
    ends = [loss_of(module, weights + sign * 1e-6 * way, inputs) for sign in (1, -1)]
    assert (stepped * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("loss", ["ctc", "softmax_cross_entropy"])
def test_a_loss_contains_a_softmax_along_its_own_classes_only(loss: str):
    """Along another axis, it is a function like others."""
    target = SAID if loss == "ctc" else np.zeros((2, 4), np.int32)
    options = {"loss": loss, **({"blank": 3, "labels": 3} if loss == "ctc" else {})}
    runs = [
        run_reference(training(spoken(op), **options), {"x": SPOKEN, "target": target}).outputs
        for op in ("", "nn.softmax %0 axis 1", "nn.softmax %0 axis 2")
    ]
    own, other = (2, 1) if loss == "ctc" else (1, 2)
    assert runs[own] == runs[0]
    assert runs[other] != runs[0]


@pytest.mark.parametrize(
    ("row", "place"), [([1, -1, 0, -1], 1), ([-2, -1, -1, -1], 0), ([1, 3, -1, -1], 1)]
)
def test_a_row_of_labels_has_only_minus_one_after_them_and_no_blank(row: list[int], place: int):
    module = training(spoken(), loss="ctc", blank=3, labels=4)
    target = np.array([row, [2, -1, -1, -1]], np.int32)
    with pytest.raises(IndexFault, match=rf"labels_but_not_blank: index 4 at \[0, {place}\]"):
        run_reference(module, {"x": SPOKEN, "target": target})


def test_a_sample_with_too_few_frames_has_an_infinite_loss_and_no_gradient():
    module = training(spoken(), loss="ctc", blank=3, reduction="none")
    labels = np.array([[1, 1, 1, -1], [2, -1, -1, -1]], np.int32)
    both = run_reference(module, {"x": SPOKEN, "target": labels})
    assert np.isinf(both.outputs["loss"]).tolist() == [True, False]
    assert np.isfinite(both.state["w"]).all()


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        (linear(), {}, r"reads an output of shape \[2, 2\]; need samples, frames and classes"),
        (spoken(), {"blank": 4}, "blank 4 of 4 classes"),
        (spoken(), {"labels": -1}, "labels -1; need 0 or more"),
        (spoken(), {"loss": "nll", "blank": 1}, "loss nll has no blank; loss ctc has"),
    ],
)
def test_options_of_sequences_that_do_not_fit_are_refused(program, options, message: str):
    with pytest.raises(InputError, match=message):
        training(program, **{"loss": "ctc", **options})
