"""abele fuzz --tool: exit codes, messages, saved findings and replays."""

from pathlib import Path

import planted_transforms as planted
import pytest
from typer.testing import CliRunner

from abele.tools.cli import app


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working folder with the planted functions in a module `mistakes`."""
    (tmp_path / "mistakes.py").write_text(Path(planted.__file__).read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fuzz(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["fuzz", *words])
    return done.exit_code, done.output


OPERATORS = ("--operator", "Relu", "--operator", "Add", "--reduce-seconds", "1", "--seed", "1")


def test_a_finding_is_printed_saved_and_replayed(here: Path):
    code, text = fuzz("--tool", "mistakes:drop_relu", "--examples", "8", *OPERATORS, "-o", "out")
    assert code == 1
    assert "wrong value" in text
    (folder,) = (here / "out").iterdir()
    assert (folder / "reproduce.py").exists()
    assert fuzz("--replay", str(folder))[0] == 1
    (here / "mistakes.py").write_text("def drop_relu(model):\n    return model\n")
    code, text = fuzz("--replay", str(folder))
    assert (code, text.strip()) == (0, "nothing is wrong any more")


def test_a_tool_is_compared_with_itself(here: Path):
    right = "rule own: onnx.Relu(x: f32[_]) => onnx.Max(x, onnx.Constant() {value = 0.0})\n"
    (here / "my.rw").write_text(right)
    words = ("--tool", "mistakes:run_rightly", "--equivalents", "--load", "my.rw")
    code, text = fuzz(*words, "--examples", "4", *OPERATORS, "-o", "out")
    assert code == 0, text
    assert "pairs of equivalent models" in text


def test_a_right_tool_exits_with_0(here: Path):
    code, text = fuzz("--tool", "mistakes:keep", "--examples", "4", *OPERATORS, "-o", "out")
    assert code == 0, text
    assert "models judged" in text


def test_a_tool_that_fails_on_every_model_is_given_up(here: Path):
    words = ("--tool", "mistakes:return_text", "--examples", "40", *OPERATORS, "-o", "out")
    code, text = fuzz(*words)
    assert code == 2
    assert "20 models in a row fail" in text.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tool", "nonsense"), "no such tool"),
        (("--tool", "mistakes:nothing"), "cannot be started"),
        (("canonicalize", "--tool", "onnxruntime"), "tests no pass"),
        (("--tool-seconds", "3"), "need --tool"),
        (("--equivalents",), "need --tool"),
        (("--tool", "onnxruntime", "--executor", "here"), "--tool works on this host only"),
        (("--hostile", "--executor", "here"), "--hostile works on this host only"),
        (("--replay", "out", "--executor", "here"), "--replay works on this host only"),
        (("--tool", "mistakes:keep", "--load", "my.rw"), "needs --equivalents, which takes rules"),
        (
            ("--tool", "mistakes:keep", "--equivalents", "--load", "my.rw"),
            "rule nn is about nn.neg",
        ),
        (("--tool", "mistakes:keep", "--tool-python", "no-python"), "no such command"),
        (("--tool", "mistakes:keep", "--operator", "Nonsense"), "no models are made of it"),
    ],
)
def test_bad_arguments_get_one_message(here: Path, words: tuple[str, ...], message: str):
    (here / "my.rw").write_text("rule nn: nn.neg(nn.neg(x)) => x\n")
    code, text = fuzz(*words, "--examples", "1") if "--tool" in words else fuzz(*words)
    assert code == 2, text
    assert message in " ".join(text.split())
    assert "Traceback" not in text
