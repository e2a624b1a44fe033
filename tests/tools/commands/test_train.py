"""abele train: a loss that falls, validation, checkpoints that go on to the same bits."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from lengths import large
from some_models import model, node, random
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools import Training, compile_model
from abele.tools.cli import app
from abele.tools.driver.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from abele.tools.driver.samples import Samples

COUNT = 10

SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A model of a dense layer for batches of 4, and 10 samples."""
    nodes = [node("Gemm", "x w b", "y", transB=1)]
    weights = {"w": random((3, 5), 1, 0.5), "b": np.zeros(3, np.float32)}
    onnx.save(model(nodes, {"x": [4, 5]}, ["y"], weights), tmp_path / "net.onnx")
    x = random((COUNT, 5), 2)
    np.savez(tmp_path / "data.npz", x=x, target=x[:, :3].argmax(1))
    return str(tmp_path / "net.onnx"), str(tmp_path / "data.npz")


def words(files: tuple[str, str], *options: object) -> list[str]:
    chosen = ["--target", "tiny:2", "--optimizer", "adam", "--training", "learning-rate=0.05"]
    return ["train", files[0], "--data", files[1], *chosen, *map(str, options)]


def train(files: tuple[str, str], *options: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, words(files, *options))
    return result.exit_code, result.output


def table(path: Path) -> dict[str, list[str]]:
    """The columns of a curve."""
    head, *rows = (row.split(",") for row in path.read_text().splitlines())
    return dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))


def test_a_run_of_several_steps_draws_the_batches_of_single_steps(
    files: tuple[str, str], tmp_path: Path
):
    curves = [tmp_path / "one.csv", tmp_path / "many.csv"]
    several = ("--training", "steps=3", "--checkpoint", tmp_path / "w.safetensors")
    rates = ("--schedule", "cosine", "--validation", 0.2, "--report", 2)
    assert train(files, "--steps", 12, "--curve", curves[0], *rates)[0] == 0
    assert train(files, "--steps", 12, "--curve", curves[1], *several, *rates)[0] == 0
    one, many = map(table, curves)
    assert one["step"] == many["step"]
    assert [*map(float, many["loss"])] == pytest.approx([*map(float, one["loss"])], rel=1e-5)
    code, output = train(files, "--steps", 14, *several, "--resume", tmp_path / "w.safetensors")
    assert code == 2
    assert "--steps 14 with 3 steps in a run; need a multiple of 3 after the 12 steps" in output


def test_a_loss_that_is_not_finite_in_a_run_of_several_steps_is_found(files: tuple[str, str]):
    arrays = dict(np.load(files[1]))
    arrays["x"][:] = np.inf
    np.savez(files[1], **arrays)
    code, output = train(files, "--steps", 4, "--training", "steps=2")
    assert code == 2
    assert "step 1: the loss is nan" in output
    assert "input 'x' holds inf in batch 1 of 2 of the run" in output


def test_the_batch_of_a_run_of_several_steps_that_is_not_finite_is_named(
    spoilt: tuple[str, str],
):
    # A number too large is in the batch of the third step.
    code, output = train(spoilt, "--steps", 4, "--training", "steps=2")
    assert code == 2
    assert "of finite values in batch 1 of 2 of the run" in output
    code, output = train(spoilt, "--steps", 4, "--training", "steps=4")
    assert code == 2
    assert "of finite values in batch 3 of 4 of the run" in output


def test_the_loss_falls_and_the_curve_has_every_step(files: tuple[str, str], tmp_path: Path):
    curve, picture = tmp_path / "loss.csv", tmp_path / "loss.png"
    code, output = train(files, "--steps", 20, "--curve", curve, "--curve", picture)
    assert code == 0, output
    columns = table(curve)
    losses = list(map(float, columns["loss"]))
    assert list(columns) == ["step", "loss"]
    assert list(map(int, columns["step"])) == list(range(1, 21))
    assert losses[-1] < 0.5 * losses[0]
    assert f"loss {losses[0]:.6g} -> {losses[-1]:.6g}" in output
    assert f"step 2 of 20: loss {np.mean(losses[:2]):.6g}\n" in output
    assert picture.read_bytes().startswith(SIGNATURE)


def test_epochs_go_through_all_samples(files: tuple[str, str]):
    code, output = train(files, "--epochs", 3)
    assert code == 0, output
    # 3 times 10 samples are 7 batches of 4 and a half one.
    assert "step 8 of 8" in output


# Checkpoints


def test_a_checkpoint_goes_on_to_the_same_bits(files: tuple[str, str], tmp_path: Path):
    whole, half, rest = (tmp_path / f"{name}.safetensors" for name in ("whole", "half", "rest"))
    assert train(files, "--steps", 7, "--checkpoint", whole, "--seed", 3)[0] == 0
    assert train(files, "--steps", 4, "--checkpoint", half, "--seed", 3)[0] == 0
    code, output = train(files, "--steps", 7, "--checkpoint", rest, "--resume", half)
    assert code == 0, output
    assert whole.read_bytes() == rest.read_bytes()
    assert whole.read_bytes() != half.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wait", "sent"), [large(0.0, signal.SIGINT), (0.05, signal.SIGTERM), large(0.3, signal.SIGINT)]
)
def test_a_signal_leaves_a_checkpoint_that_goes_on_to_the_same_bits(
    files: tuple[str, str], tmp_path: Path, wait: float, sent: signal.Signals
):
    """The signal comes some time after the first checkpoint: in a step, or while one is written."""
    stopped, whole = tmp_path / "stopped.safetensors", tmp_path / "whole.safetensors"
    command = words(files, "--steps", 10**6, "--checkpoint", stopped, "--every", 1)
    # A background shell lets its processes ignore Ctrl-C.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from abele.tools.cli import main; main()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        end = time.monotonic() + 120
        while not stopped.exists() and running.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(wait)
        running.send_signal(sent)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    found = read_checkpoint(stopped)
    assert running.returncode == 128 + sent
    assert f"stopped after step {found.step}; --resume {stopped} goes on" in said
    assert [path.name for path in tmp_path.glob("*safetensors*")] == [stopped.name]
    go_on, steps = tmp_path / "rest.safetensors", found.step + 3
    assert train(files, "--steps", steps, "--resume", stopped, "--checkpoint", go_on)[0] == 0
    assert train(files, "--steps", steps, "--checkpoint", whole)[0] == 0
    assert go_on.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("states", "problem"),
    [
        (
            {"w": (3, 5)},
            "no state 'train.unbiased.1' in the checkpoint; it is of another model, or",
        ),
        (None, "state 'w' is float32[3, 4], and the program's is float32[3, 5]; it is of another"),
    ],
)
def test_a_checkpoint_of_another_program_is_refused(
    files: tuple[str, str], tmp_path: Path, states: dict[str, tuple[int, ...]] | None, problem: str
):
    path = tmp_path / "other.safetensors"
    if states is None:
        assert train(files, "--steps", 1, "--checkpoint", path)[0] == 0
        found = dict(read_checkpoint(path).states)
        arrays = found | {"w": np.zeros((3, 4), np.float32)}
    else:
        arrays = {name: np.zeros(shape, np.float32) for name, shape in states.items()}
    write_checkpoint(path, Checkpoint(1, 0, arrays))
    code, output = train(files, "--steps", 2, "--resume", path)
    assert code == 2
    assert f"{path}: {problem}" in output


def test_a_checkpoint_with_more_than_the_program_is_refused(files: tuple[str, str], tmp_path: Path):
    path = tmp_path / "adam.safetensors"
    assert train(files, "--steps", 1, "--checkpoint", path)[0] == 0
    code, output = train(files, "--steps", 2, "--resume", path, "--training", "freeze=b")
    assert code == 2
    assert "the program has no state 'b" in output


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path):
    states = {"a": random((2, 3)), "n": np.array(7, np.int64), "e": np.zeros((0, 2), np.float16)}
    write_checkpoint(tmp_path / "c", Checkpoint(5, 9, states))
    found = read_checkpoint(tmp_path / "c")
    assert (found.step, found.seed, set(found.states)) == (5, 9, set(states))
    for name, array in states.items():
        assert found.states[name].dtype == array.dtype
        assert np.array_equal(found.states[name], array)


@pytest.mark.parametrize("kept", [0, 4, 20, -3])
def test_a_damaged_checkpoint_is_refused(kept: int, tmp_path: Path):
    path = tmp_path / "c"
    write_checkpoint(path, Checkpoint(5, 9, {"a": random((2, 3))}))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match="damaged, or not a checkpoint"):
        read_checkpoint(path)


# Values that are not finite


@pytest.fixture
def spoilt(files: tuple[str, str], tmp_path: Path) -> tuple[str, str]:
    """The samples, of which the first one of the third step is too large to be squared."""
    with np.load(files[1]) as data:
        x, target = data["x"], data["target"]
    order = Samples("", {"i": np.arange(COUNT)}, 4).at(2, 0)["i"]
    x[order[0]] = 1e38
    np.savez(tmp_path / "bad.npz", x=x, target=target)
    return files[0], str(tmp_path / "bad.npz")


def test_a_step_that_is_not_finite_ends_training_before_it(
    files: tuple[str, str], spoilt: tuple[str, str], tmp_path: Path
):
    two, stopped = tmp_path / "two.safetensors", tmp_path / "stopped.safetensors"
    assert train(files, "--steps", 2, "--checkpoint", two)[0] == 0
    code, output = train(spoilt, "--steps", 7, "--checkpoint", stopped)
    assert code == 2
    assert "step 3: the loss is" in output
    assert "of finite values" in output
    assert stopped.read_bytes() == two.read_bytes()


def test_a_sample_that_is_not_finite_is_the_cause_and_not_the_learning_rate(
    files: tuple[str, str], tmp_path: Path
):
    path = tmp_path / "nan.npz"
    np.savez(path, x=np.full((COUNT, 5), np.nan, np.float32), target=np.zeros(COUNT, np.int32))
    code, output = train((files[0], str(path)), "--steps", 1)
    assert code == 2
    assert "input 'x' holds nan before the step" in output
    assert "Mend the samples; skipping" in output
    assert "learning rate" not in output


def test_a_step_that_is_not_finite_can_be_skipped(spoilt: tuple[str, str], tmp_path: Path):
    two, three = tmp_path / "two.safetensors", tmp_path / "three.safetensors"
    assert train(spoilt, "--steps", 2, "--checkpoint", two)[0] == 0
    code, output = train(spoilt, "--steps", 3, "--checkpoint", three, "--non-finite", "skip")
    assert code == 0, output
    assert output.count("; skipped\n") == 1
    before, after = read_checkpoint(two), read_checkpoint(three)
    assert after.step == 3
    assert all(np.array_equal(after.states[name], each) for name, each in before.states.items())
    # Training goes on: the sample comes once more in the next pass through all of them.
    code, output = train(spoilt, "--steps", 5, "--non-finite", "skip")
    assert (code, output.count("; skipped\n")) == (0, 2)


# Validation and schedules


def test_validation_counts_every_sample_once(files: tuple[str, str], tmp_path: Path):
    """10 samples are two batches of 4, and half of one: against NumPy, with the final weights."""
    curve, path = tmp_path / "loss.csv", tmp_path / "w.safetensors"
    shutil.copy(files[1], tmp_path / "held.npz")
    held = ("--validation-data", tmp_path / "held.npz", "--report", 2)
    code, output = train(files, "--steps", 4, *held, "--curve", curve, "--checkpoint", path)
    assert code == 0, output
    states = read_checkpoint(path).states
    with np.load(files[1]) as data:
        z = data["x"] @ states["w"].T + states["b"]
        target = data["target"]
    loss = np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(COUNT), target])
    columns = table(curve)
    assert [each != "" for each in columns["validation_loss"]] == [False, True] * 2
    assert float(columns["validation_loss"][-1]) == pytest.approx(loss, rel=1e-5)
    assert float(columns["accuracy"][-1]) == (z.argmax(1) == target).mean()
    assert f"validation loss {float(columns['validation_loss'][-1]):.6g}, accuracy" in output


def test_a_fraction_is_kept_out(files: tuple[str, str]):
    code, output = train(files, "--epochs", 1, "--validation", 0.3)
    assert code == 0, output
    # 7 samples are left, in batches of 4.
    assert "step 2 of 2" in output
    assert "; validation loss" in output


def test_the_host_gives_the_rates_of_a_schedule(files: tuple[str, str], tmp_path: Path):
    curve = tmp_path / "loss.csv"
    rates = ("--schedule", "linear-warmup:2+step:3:0.5")
    code, output = train(files, "--steps", 5, "--curve", curve, *rates)
    assert code == 0, output
    found = list(map(float, table(curve)["learning_rate"]))
    assert found == pytest.approx([0.025, 0.05, 0.05, 0.025, 0.025])


def test_a_constant_schedule_is_no_schedule(files: tuple[str, str], tmp_path: Path):
    with_one, without = tmp_path / "with.safetensors", tmp_path / "without.safetensors"
    assert train(files, "--steps", 3, "--checkpoint", without)[0] == 0
    given = ("--schedule", "constant")
    assert train(files, "--steps", 3, "--checkpoint", with_one, *given)[0] == 0
    assert with_one.read_bytes() == without.read_bytes()


# The model written back


def test_the_trained_model_is_written_as_onnx(files: tuple[str, str], tmp_path: Path):
    out, path = tmp_path / "trained.onnx", tmp_path / "w.safetensors"
    code, output = train(files, "--steps", 5, "--save-onnx", out, "--checkpoint", path)
    assert code == 0, output
    states = read_checkpoint(path).states
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    x = random((4, 5), 7)
    (found,) = session.run(None, {"x": x})
    exe = compile_model(files[0], "tiny:2", train=Training(update=False, outputs=True))
    exe.set_states({name: states[name] for name in exe.states})
    own = exe.run({"x": x, "target": np.zeros(4, np.int32)})["y"]
    assert own == pytest.approx(found, rel=1e-5, abs=1e-6)
    assert found == pytest.approx(x @ states["w"].T + states["b"], rel=1e-5, abs=1e-6)
    again = compile_model(out, "tiny:2").run({"x": x})["y"]
    assert own == pytest.approx(again, rel=1e-5, abs=1e-6)
    before, after = onnx.load(files[0]), onnx.load(out)
    del before.graph.initializer[:], after.graph.initializer[:]
    assert before == after


@pytest.mark.slow
def test_dropout_drops_in_training_only_and_goes_on_to_the_same_bits(tmp_path: Path):
    nodes = [
        node("Gemm", "x w b", "h", transB=1),
        node("Dropout", "h", "d"),
        node("Gemm", "d v c", "y", transB=1),
    ]
    weights = {"w": random((8, 5), 1, 0.5), "b": np.zeros(8, np.float32)}
    weights |= {"v": random((3, 8), 2, 0.5), "c": np.zeros(3, np.float32)}
    onnx.save(model(nodes, {"x": [4, 5]}, ["y"], weights), tmp_path / "drop.onnx")
    x = random((COUNT, 5), 2)
    np.savez(tmp_path / "data.npz", x=x, target=x[:, :3].argmax(1))
    files = str(tmp_path / "drop.onnx"), str(tmp_path / "data.npz")
    whole, half, rest = (tmp_path / f"{name}.safetensors" for name in ("whole", "half", "rest"))
    out = tmp_path / "trained.onnx"
    assert train(files, "--steps", 4, "--checkpoint", whole, "--save-onnx", out)[0] == 0
    assert train(files, "--steps", 2, "--checkpoint", half)[0] == 0
    assert train(files, "--steps", 4, "--checkpoint", rest, "--resume", half)[0] == 0
    assert whole.read_bytes() == rest.read_bytes()
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    states = read_checkpoint(whole).states
    (found,) = session.run(None, {"x": x[:4]})
    hidden = x[:4] @ states["w"].T + states["b"]
    assert found == pytest.approx(hidden @ states["v"].T + states["c"], rel=1e-5, abs=1e-6)


# What is refused


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--steps", "1", "--every", "1"], "--every without --checkpoint"),
        (["--steps", "0"], "greater than or equal to 1"),
        ([], "need --steps or --epochs"),
        (["--steps", "1", "--epochs", "1"], "need --steps or --epochs"),
        (["--steps", "1", "--loss", "mean_square"], "'target' has shape [10]; need [samples, 3]"),
        (["--steps", "1", "--training", "target=label"], "arrays target, x; need one for each"),
        (["--steps", "1", "--validation", "0.01"], "0.01 of 10 samples; need one or more"),
        (["--steps", "1", "--validation", "nan"], "nan of 10 samples; need one or more"),
        (["--steps", "1", "--validation", "inf"], "inf of 10 samples; need one or more"),
        (["--steps", "1", "--curve", "loss.txt"], "unknown kind of curve; need .csv or .png"),
        (["--steps", "1", "--save-onnx", "o.txt"], "o.txt: --save-onnx; need a file that ends"),
        (["--steps", "1", "--schedule", "cosin"], "no schedule 'cosin'; did you mean cosine?"),
        (["--steps", "1", "--schedule", ""], "no schedule ''; there are constant"),
        (["--steps", "1", "--schedule", "step"], "need one of constant, cosine, step:N[:F], "),
        (["--steps", "1", "--schedule", "cosine:3"], "need one of constant, cosine, step:N[:F], "),
        (["--steps", "1", "--non-finite", "go"], "'skip'"),
        (["--steps", "1", "--training", "momentum=0.9"], "optimizer adam has no momentum"),
    ],
)
def test_what_does_not_fit_is_refused(files: tuple[str, str], options: list[str], problem: str):
    code, output = train(files, *options)
    assert code == 2
    assert problem in " ".join(output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"text", "damaged, or not an .npz file: File is not a zip file"),
        (b"\x93NUMPY\x01", "one array without a name (.npy); need np.savez(path, name=array)"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_what_holds_no_samples_is_refused(
    files: tuple[str, str], tmp_path: Path, content: bytes | None, problem: str
):
    path = tmp_path / "bad.npz"
    if content is not None:
        path.write_bytes(content)
    code, output = train((files[0], str(path)), "--steps", 1)
    assert code == 2
    assert output == f"error: {path}: {problem}\n"


def test_samples_are_as_many_of_each_input(files: tuple[str, str], tmp_path: Path):
    path = tmp_path / "bad.npz"
    np.savez(path, x=random((9, 5)), target=np.zeros(8, np.int32))
    code, output = train((files[0], str(path)), "--steps", 1)
    assert code == 2
    assert f"{path}: samples: 9 of 'x', 8 of 'target'; need as many of each" in output


def test_a_label_that_is_no_class_is_named(files: tuple[str, str], tmp_path: Path):
    with np.load(files[1]) as data:
        x, target = data["x"], data["target"]
    target[6] = 3
    np.savez(tmp_path / "bad.npz", x=x, target=target)
    code, output = train((files[0], str(tmp_path / "bad.npz")), "--steps", 1)
    assert code == 2
    assert "bad.npz: label 3 of sample 6 in 'target'; need 0 to 2\n" in output
    ignored = ("--training", "ignore-index=3")
    code, output = train((files[0], str(tmp_path / "bad.npz")), "--steps", 1, *ignored)
    assert code == 0, output


def test_a_program_file_trains_but_cannot_be_compiled_again(files: tuple[str, str], tmp_path: Path):
    out = tmp_path / "step.abele"
    compiled = ["compile", files[0], "--train", "--target", "tiny:2", "-o", str(out)]
    assert CliRunner().invoke(app, compiled).exit_code == 0
    plain = ["train", str(out), "--data", files[1], "--steps", "2"]
    assert CliRunner().invoke(app, plain).exit_code == 0
    for option, problem in (
        (("--validation", "0.5"), "validation: need the model"),
        (("--save-onnx", str(tmp_path / "o.onnx")), "--save-onnx; need an .onnx model"),
        (("--schedule", "cosine"), "--schedule; need the model"),
    ):
        result = CliRunner().invoke(app, [*plain, *option])
        assert result.exit_code == 2
        assert problem in result.output


def test_stashes_are_kept_narrow_and_a_wrong_choice_is_refused(files: tuple[str, str]):
    losses = [train(files, "--steps", 1, *more)[1] for more in ((), ("--stash", "f134@0.125:*"))]
    assert losses[0].splitlines()[0] == losses[1].splitlines()[0]
    for stash, problem in (
        ("f99:*", "type 'f99'; need one of float16, bfloat16, f143, f152, f134"),
        ("f134@3:*", "scale '3'; need a power of two"),
        ("f134:nothing", "no operator of that name"),
    ):
        code, output = train(files, "--steps", 1, "--stash", stash)
        assert code == 2
        assert problem in output
