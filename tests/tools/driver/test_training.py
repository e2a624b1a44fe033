"""Training from Python: steps on the machine, weights that change, and what is refused."""

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from lengths import large
from some_models import model, node, random
from typer.testing import CliRunner

from abele.ir.blob import Blob
from abele.ir.errors import InputError
from abele.tools import Executable, Training, compile_model
from abele.tools.cli import app
from abele.tools.driver.training import LossIsNotFinite

EXAMPLES = Path(__file__).parents[3] / "examples"


def network() -> onnx.ModelProto:
    """A strided and a grouped convolution, normalisations, an overlapping pool, dense layers."""
    nodes = [
        node("Conv", "x w0 b0", "c0", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c0 s t m v", "n0"),
        node("Relu", "n0", "r0"),
        node("LRN", "r0", "l0", size=3, alpha=0.1),
        node("Conv", "l0 w1", "c1", group=2, pads=[1, 1, 1, 1]),
        node("MaxPool", "c1", "m0", kernel_shape=[3, 3], strides=[2, 2]),
        node("Flatten", "m0", "f0"),
        node("Gemm", "f0 w2 b2", "y", transB=1),
        node("Softmax", "y", "p"),
    ]
    weights = {
        "w0": random((4, 2, 3, 3), 1, 0.4),
        "b0": random((4,), 2),
        "s": 1 + random((4,), 3, 0.2),
        "t": random((4,), 4, 0.2),
        "m": random((4,), 5, 0.2),
        "v": np.ones(4, np.float32),
        "w1": random((6, 2, 3, 3), 6, 0.4),
        "w2": random((5, 24), 7, 0.3),
        "b2": random((5,), 8),
    }
    return model(nodes, {"x": [3, 2, 11, 11]}, ["p"], weights)


INPUTS = {"x": random((3, 2, 11, 11), 9), "target": np.array([4, 0, 2], np.int32)}


@cache
def compiled(**options: object) -> Executable:
    return compile_model(network(), "tiny:8", train=Training(**options))


def trained(**options: object) -> Executable:
    """The program of a step, with the first values of all states."""
    exe = compiled(**options)
    exe.reset()
    return exe


def test_the_machine_takes_the_steps_of_the_reference():
    # The gradient of b0 is that of a bias before a normalisation: nothing but rounding. With a
    # smaller epsilon, adam would take steps of full length along it.
    exe = trained(optimizer="adam", epsilon=1e-2, learning_rate=0.01, clip_norm=1.0)
    before = exe.weights
    losses = [float(exe.step(INPUTS)["loss"]) for _ in range(3)]
    weights, states = exe.weights, exe.states
    again = [float(exe.step(INPUTS, at="nn")["loss"]) for _ in range(3)]
    assert losses == pytest.approx(again, rel=1e-4)
    assert losses[0] > losses[1] > losses[2]
    assert set(before) == {"w0", "b0", "s", "t", "w1", "w2", "b2"}
    assert set(states) - set(before) >= {"m", "v", "w0.mean", "w0.square", "train.unbiased.0"}
    for name, weight in weights.items():
        assert weight == pytest.approx(exe.weights[name], abs=2e-4)
        assert not np.array_equal(weight, before[name])


@pytest.mark.parametrize("level", ["partition", "tile"])
def test_every_level_takes_the_same_step(level: str):
    exe = trained(momentum=0.9)
    start = {name: 0.5 * array for name, array in exe.weights.items()}
    exe.set_states(start)
    exe.step(INPUTS)
    weights = exe.weights
    exe.set_states(start, at=level)
    exe.step(INPUTS, at=level)
    for name, weight in weights.items():
        assert np.array_equal(weight, exe.weights[name]), name


def test_a_strict_machine_steps_to_the_same_bits():
    exe = trained(momentum=0.9)
    losses = [exe.step(INPUTS)["loss"] for _ in range(2)]
    weights = exe.weights
    assert [exe.step(INPUTS, strict=True)["loss"] for _ in range(2)] == losses
    assert all(np.array_equal(weight, weights[name]) for name, weight in exe.weights.items())


def test_states_that_are_set_go_on_to_the_same_bits():
    exe = trained(momentum=0.9)
    exe.step(INPUTS)
    kept = {name: array.copy() for name, array in exe.states.items()}
    losses = [exe.step(INPUTS)["loss"] for _ in range(2)]
    exe.reset()
    assert not np.array_equal(exe.weights["w0"], kept["w0"])
    exe.set_states(kept)
    assert [exe.step(INPUTS)["loss"] for _ in range(2)] == losses


def test_a_saved_program_goes_on_training(tmp_path: Path):
    exe = trained()
    exe.save(tmp_path / "step.abele")
    loaded = compile_model(tmp_path / "step.abele")
    assert loaded.step(INPUTS) == exe.step(INPUTS)
    assert set(loaded.weights) == set(exe.weights)


def test_micro_batches_take_the_step_of_the_whole_batch():
    # Statistics of a batch are those of each part, so they are left out here.
    options = {"batch_statistics": 0.0, "momentum": 0.9, "freeze": ("^[st]$",)}
    whole, parts = (
        compiled(**options),
        compile_model(network(), "tiny:8", batch=3, train=Training(micro_batches=3, **options)),
    )
    whole.reset()
    losses = [[float(exe.step(INPUTS)["loss"]) for _ in range(2)] for exe in (whole, parts)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    for name, weight in whole.weights.items():
        assert parts.weights[name] == pytest.approx(weight, abs=1e-5), name
    loss = parts.step(INPUTS)["loss"]
    parts.reset()
    assert [float(parts.step(INPUTS, strict=True)["loss"]) for _ in range(2)] == losses[1]
    assert parts.step(INPUTS, strict=True)["loss"] == loss


def _doubled() -> onnx.ModelProto:
    """Each sample times a weight of 1."""
    return model([node("Mul", "x w", "y")], {"x": ["N", 2]}, ["y"], {"w": np.ones(2, np.float32)})


def test_sums_over_parts_of_a_batch_go_beyond_what_16_bits_hold():
    options = {"loss": "mean_square", "reduction": "sum", "learning_rate": 2.0**-20}
    exe = compile_model(
        _doubled(),
        "tiny:4",
        batch=4,
        train=Training(micro_batches=4, **options),
        precision="float16",
    )
    x = np.full((4, 2), 200.0, np.float32)
    exe.step({"x": x, "target": x - 100})
    # The gradient of a weight is the sum of 2 * 100 * 200 over four samples, and float16 holds
    # numbers up to 65,504.
    assert exe.weights["w"] == pytest.approx(1 - 4 * 40_000 * 2.0**-20, rel=1e-3)


def test_losses_of_several_steps_are_those_of_single_steps_in_16_bits():
    options = {"loss": "mean_square", "learning_rate": 2.0**-16}
    one, many = (
        compile_model(
            _doubled(), "tiny:4", batch=2, train=Training(steps=n, **options), precision="float16"
        )
        for n in (1, 3)
    )
    x = random((3, 2, 2), 3)
    target = random((3, 2, 2), 4)
    single = [one.step({"x": x[i], "target": target[i]})["loss"] for i in range(3)]
    assert many.step({"x": x, "target": target})["loss"].tolist() == [float(n) for n in single]


def test_running_statistics_follow_each_micro_batch():
    options = {"learning_rate": 0.0, "reduction": "sum"}
    parts = compile_model(network(), "tiny:8", batch=6, train=Training(micro_batches=2, **options))
    both = {name: np.concatenate([a, a + a.dtype.type(1)][:2]) for name, a in INPUTS.items()}
    both["target"] %= 5
    parts.step(both)
    apart = trained(**options)
    for which in (slice(3), slice(3, 6)):
        apart.step({name: array[which] for name, array in both.items()})
    for name in "mv":
        assert parts.states[name] == pytest.approx(apart.states[name], rel=1e-5), name


BATCHES = {
    "x": random((4, *INPUTS["x"].shape), 10),
    "target": np.array([[4, 0, 2], [1, 1, 3], [0, 2, 4], [3, 4, 0]], np.int32),
}


@pytest.mark.parametrize(
    "options",
    [large({"momentum": 0.9}), {"optimizer": "adam", "epsilon": 1e-2, "clip_norm": 1.0}],
)
def test_several_steps_in_a_run_find_what_the_steps_before_have_left(options: dict[str, object]):
    many, one = trained(steps=4, **options), trained(**options)
    losses = many.step(BATCHES)["loss"]
    for i in range(4):
        loss = one.step({name: array[i] for name, array in BATCHES.items()})["loss"]
        assert losses[i] == loss
    for name, state in one.states.items():
        assert np.array_equal(many.states[name], state), name
    bytes_in = [exe.profile["host_input_bytes"] for exe in (one, many)]
    assert bytes_in[1] == 4 * bytes_in[0]


def test_several_steps_are_the_same_bits_at_all_levels_and_on_a_strict_machine():
    exe = trained(steps=4, momentum=0.9)
    losses, start = exe.step(BATCHES)["loss"], exe.weights
    after = exe.step(BATCHES)["loss"]
    weights = exe.weights
    for level in ("partition", "tile"):
        found = [exe.step(BATCHES, at=level)["loss"] for _ in range(2)]
        assert np.array_equal(found, [losses, after])
        assert all(np.array_equal(each, weights[name]) for name, each in exe.weights.items())
    assert not np.array_equal(start["w0"], weights["w0"])
    exe.reset()
    assert np.array_equal(exe.step(BATCHES, strict=True)["loss"], losses)


def test_a_batch_that_does_not_part_is_refused():
    with pytest.raises(InputError, match="micro_batches 2 of a batch of 3; need a number that"):
        compile_model(network(), "tiny:8", batch=3, train=Training(micro_batches=2))


def test_frozen_weights_stay():
    exe = trained(freeze=("^w[01]$", "^b0$"))
    before = exe.states
    exe.step(INPUTS)
    changed = {name for name, a in exe.states.items() if not np.array_equal(a, before[name])}
    assert changed == {"s", "t", "m", "v", "w2", "b2"}
    assert set(exe.weights) == {"s", "t", "w2", "b2"}


def test_a_network_learns_digits():
    """The 297 digits of examples/ are real; 240 are trained on, and 57 held out."""
    images = np.load(EXAMPLES / "digits.npz")["x"]
    labels = np.load(EXAMPLES / "digit_labels.npy").astype(np.int32)
    rng, rate = np.random.default_rng(0), np.float32(0.01)
    training = Training(momentum=0.9, schedule=True, outputs=True)
    exe = compile_model(EXAMPLES / "digits.onnx", "tiny:16", batch=16, train=training)
    exe.set_states(
        {
            name: (rng.standard_normal(a.shape) * (2 / a[0].size) ** 0.5).astype(np.float32)
            for name, a in exe.weights.items()
            if a.ndim > 1
        }
    )

    def step(which: np.ndarray, rate: np.float32) -> dict[str, np.ndarray]:
        inputs = {"x": images[which], "target": labels[which], "learning_rate": np.array(rate)}
        return exe.step(inputs)

    losses = []
    for _ in range(10):
        losses += [step(i, rate)["loss"] for i in rng.permutation(240).reshape(-1, 16)]
    assert np.mean(losses[-15:]) < 0.1 * losses[0]
    # A learning rate of 0 leaves the weights as they are.
    held_out = np.arange(240, 288).reshape(-1, 16)
    scores = [step(i, np.float32(0))[exe.outputs[1].name] for i in held_out]
    assert (np.concatenate(scores).argmax(1) == labels[240:288]).mean() >= 0.9


def test_what_is_no_training_program_has_no_steps():
    exe = compile_model(network(), "tiny:8")
    with pytest.raises(InputError, match="no training program; compile the model with train"):
        exe.step(INPUTS)


def test_states_of_another_program_are_refused():
    exe = trained()
    with pytest.raises(
        InputError, match="no state 'other'; there are w, b$|no state 'other'; there are"
    ):
        exe.set_states({"other": np.ones(3)})
    with pytest.raises(InputError, match="'b2' .*: got float32"):
        exe.set_states({"b2": np.ones(3, np.float32)})


def test_a_loss_that_is_not_a_number_is_said_so():
    exe = trained()
    bad = INPUTS | {"x": np.full_like(INPUTS["x"], np.nan)}
    with pytest.raises(LossIsNotFinite, match="the loss is nan, and the weights have taken"):
        exe.step(bad)


def test_a_compiled_program_cannot_be_trained(tmp_path: Path):
    trained().save(tmp_path / "step.abele")
    with pytest.raises(InputError, match="compiled already, so it cannot be trained"):
        compile_model(tmp_path / "step.abele", train=Training())


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--loss", "huber"], "--loss without --train"),
        (["--train", "--loss", "huge"], "loss 'huge'"),
        (["--train", "--training", "momentun=1"], "did you mean momentum?"),
        (["--train", "--training", "momentum=much"], "need a number"),
        (["--train", "--training", "schedule=maybe"], "need true or false"),
        (["--train", "--training", "momentum=0.1", "--training", "momentum=0.2"], "given twice"),
    ],
)
def test_options_that_cannot_be_are_refused(options: list[str], problem: str, tmp_path: Path):
    path = tmp_path / "net.onnx"
    onnx.save(network(), path)
    code, output = invoke("compile", str(path), "-o", str(tmp_path / "p.abele"), *options)
    assert code == 2
    assert problem in output


def test_the_command_line_compiles_a_step(tmp_path: Path):
    path, out = tmp_path / "net.onnx", tmp_path / "p.abele"
    onnx.save(network(), path)
    options = ["--train", "--optimizer", "adamw", "--training", "freeze=^w0$"]
    options += ["--training", "weight-decay=0.1", "--target", "tiny:8"]
    code, output = invoke("compile", str(path), "-o", str(out), *options)
    assert code == 0, output
    assert "w0" not in compile_model(out).weights


# Programs that ask for training


def linear(folder: Path, asked: str) -> str:
    """A program with an attribute that asks for training. Its weight lies beside it."""
    blob = Blob(random((3, 2)))
    (folder / "blobs").mkdir(exist_ok=True)
    np.save(folder / "blobs" / f"{blob.digest}.npy", blob.array)
    attribute = f"attributes {{abele.train = {asked}}}" if asked else ""
    return f"""
    builtin.module {attribute} {{
      nn.state @w : tensor<3x2xf32> = <"{blob.digest}">
      func.func @main(%x: tensor<4x3xf32>) -> tensor<4x2xf32> attributes {{arg_names = ["x"]}} {{
        %w = nn.load @w : tensor<3x2xf32>
        %0 = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
        func.return %0 : tensor<4x2xf32>
      }}
    }}"""


def test_a_program_may_ask_for_training(tmp_path: Path):
    path, plain = tmp_path / "asks.mlir", tmp_path / "plain.mlir"
    path.write_text(linear(tmp_path, '"loss=mean_square optimizer=adam learning-rate=0.5"'))
    plain.write_text(linear(tmp_path, ""))
    options = {"loss": "mean_square", "optimizer": "adam", "learning_rate": 0.5}
    asked = compile_model(path, "tiny:2")
    given = compile_model(plain, "tiny:2", train=Training(**options))
    inputs = {"x": random((4, 3)), "target": random((4, 2), 1)}
    assert asked.step(inputs) == given.step(inputs)
    assert asked.states.keys() == given.states.keys()
    # What is given replaces what the program asks for, option by option.
    other = compile_model(path, "tiny:2", train=Training(optimizer="lars", momentum=0.5))
    assert (other.training.loss, other.training.learning_rate) == ("mean_square", 0.5)
    assert set(other.states) == {"w.momentum", "w"}
    out = str(tmp_path / "step.abele")
    result = CliRunner().invoke(app, ["compile", str(path), "--target", "tiny:2", "-o", out])
    assert result.exit_code == 0, result.output
    assert compile_model(out).training.loss == "mean_square"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ('"loss=mean_squar"', "did you mean mean_square?"),
        ('"momentun=0.9"', "momentun"),
        ('"optimizer=adam momentum=0.9"', "optimizer adam has no momentum"),
        ("3 : i64", "need options of the pass train as text"),
    ],
)
def test_what_a_program_cannot_ask_for_is_refused(asked: str, problem: str, tmp_path: Path):
    path = tmp_path / "asks.mlir"
    path.write_text(linear(tmp_path, asked))
    with pytest.raises(InputError, match="attribute abele.train: ") as caught:
        compile_model(path, "tiny:2")
    assert problem in str(caught.value)


# The program that is used after training


def test_the_host_sets_the_weights_of_a_program_that_is_judged():
    """Its normalisation reads the running statistics, and nothing of the weights is folded."""
    exe = trained()
    exe.step(INPUTS)
    judged = compile_model(
        network(), "tiny:8", train=Training(update=False, outputs=True, reduction="none")
    )
    states = exe.states
    judged.set_states({name: states[name] for name in judged.states})
    assert set(judged.states) == {"w0", "b0", "s", "t", "m", "v", "w1", "w2", "b2"}
    model = network()
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(states[tensor.name], tensor.name))
    plain = compile_model(model, "tiny:8").run({"x": INPUTS["x"]})["p"]
    for level in judged.levels:
        judged.set_states({name: states[name] for name in judged.states}, at=level)
        found = judged.run(INPUTS, at=level)
        assert found["p"] == pytest.approx(plain, rel=1e-4, abs=1e-6)
        own = -np.log(found["p"][np.arange(3), INPUTS["target"]])
        assert found["loss"] == pytest.approx(own, rel=1e-4)


def test_a_program_that_is_judged_keeps_its_weights():
    judged = compile_model(network(), "tiny:8", train=Training(update=False))
    before = judged.states
    judged.step(INPUTS)
    assert all(np.array_equal(each, before[name]) for name, each in judged.states.items())
