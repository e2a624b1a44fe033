"""abele generate prints tokens and where their cycles go, and refuses what is no decoder."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools.cli import app
from abele.tools.driver.session import Session

MAKE = run_path(str(Path(__file__).parents[3] / "examples" / "make_decoders.py"))
SIZES = MAKE["Sizes"](layers=1, width=32, heads=2, groups=1, hidden=48, words=61, longest=80)


@pytest.fixture(scope="module")
def made() -> onnx.ModelProto:
    return MAKE["gpt2"](SIZES)


@pytest.fixture
def model(made: onnx.ModelProto, tmp_path: Path) -> onnx.ModelProto:
    found = onnx.ModelProto()
    found.CopyFrom(made)
    return found


def run(model: onnx.ModelProto, folder: Path, *arguments: str) -> str:
    """What the command says. It may refuse the model, but not fail."""
    onnx.save(model, folder / "net.onnx")
    line = ["generate", str(folder / "net.onnx"), "--target", "tiny:4", "--no-cache"]
    found = CliRunner().invoke(app, [*line, "--prompt-ids", "1,2,3", *arguments])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exc_info
    assert found.exit_code == (2 if "error: " in found.output else 0), found.output
    return " ".join(found.output.split())


def renamed(model: onnx.ModelProto, old: str, new: str) -> None:
    """Give an input, or an output, and all that reads or makes it another name."""
    graph = model.graph
    for each in (*graph.input, *graph.output):
        each.name = new if each.name == old else each.name
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]


def test_the_command_prints_tokens_and_where_their_cycles_go(
    model: onnx.ModelProto, tmp_path: Path
):
    said = run(model, tmp_path, "--tokens", "5")
    tokens = said.split()[0].split(",")
    assert len(tokens) == 5, said
    for word in ("before the layers", "h.0", "behind the layers", "sampling", "loop over tokens"):
        assert word in said
    assert "tokens per second on tiny: " in said
    # Another name of the cache, told by --keep; and the same prompt, in three runs.
    renamed(model, "past_key_values.0.key", "bygone")
    kept = ("--keep", "bygone=present.0.key", "--at-once", "1", "--context", "8")
    assert run(model, tmp_path, "--tokens", "5", *kept).split()[0].split(",") == tokens


@pytest.mark.parametrize(
    ("runs", "error", "said"),
    [
        # The prompt takes two runs; each of the following ones generates two tokens.
        (1, KeyboardInterrupt(), "stopped while it read the prompt (3 long): no token so far"),
        (2, SystemExit(143), "stopped while it generated 5 tokens: 1 token so far"),
        (3, InputError("a limit"), "stopped while it generated 5 tokens: 3 tokens so far"),
    ],
)
def test_tokens_so_far_are_printed_if_something_ends_the_command(
    model: onnx.ModelProto,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    runs: int,
    said: str,
):
    onnx.save(model, tmp_path / "net.onnx")
    line = ["generate", str(tmp_path / "net.onnx"), "--target", "tiny:4", "--prompt-ids", "1,2,3"]
    line += ["--at-once", "2", "--per-run", "2", "--tokens", "5"]
    whole = CliRunner().invoke(app, line)
    tokens = whole.stdout.split()[0].split(",")
    run, left = Session.run, [None] * runs

    def stopping(self: Session, *given: Any) -> Any:
        if not left:
            raise error
        left.pop()
        return run(self, *given)

    monkeypatch.setattr(Session, "run", stopping)
    found = CliRunner().invoke(app, line)
    assert found.exit_code not in (0, whole.exit_code)
    assert said in found.stderr
    made = int(said.split()[-4]) if "no token" not in said else 0
    assert found.stdout.split() == ([",".join(tokens[:made])] if made else [])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--tokens", "9", "--context", "8"], "cache holds 8, which is enough for 6"),
        (["--context", "2"], "a prompt of 3 tokens, and the cache holds 2"),
        (["--prompt-ids", "1,x"], "--prompt-ids 1,x: need whole numbers"),
        (["--prompt-ids", ""], "the prompt has no tokens"),
        (["--prompt-ids", "1" * 30], "need tokens below 10^9"),
        (["--temperature", "0", "--top-k", "3"], "--temperature 0 draws no tokens"),
        (["--keep", "x=present.0.key"], "no input 'x'"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    model: onnx.ModelProto, tmp_path: Path, arguments: list[str], match: str
):
    assert match in run(model, tmp_path, *arguments)


def test_a_cache_without_a_partner_is_named(model: onnx.ModelProto, tmp_path: Path):
    renamed(model, "present.0.value", "other")
    said = run(model, tmp_path)
    assert "cache 'past_key_values.0.value' has no partner among the outputs" in said
    assert "(--keep past_key_values.0.value=OUTPUT)" in said


def test_a_vocabulary_that_does_not_match_is_refused(model: onnx.ModelProto, tmp_path: Path):
    for node in model.graph.node:
        if node.output[0] == "logits":
            node.input[1] = "head"
    head = np.zeros((32, 60), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(head, "head"))
    model.graph.output[0].type.tensor_type.shape.dim[2].dim_value = 60
    said = run(model, tmp_path)
    assert (
        "the embedding of 'input_ids' has 61 tokens, and output 'logits' has scores of 60" in said
    )


def test_an_input_that_no_name_explains_is_refused(model: onnx.ModelProto, tmp_path: Path):
    renamed(model, "position_ids", "places")
    assert "input 'places' is not known by its name; give it a value" in run(model, tmp_path)


def test_a_model_without_a_cache_or_without_ids_is_refused(model: onnx.ModelProto, tmp_path: Path):
    renamed(model, "input_ids", "words")
    assert "no input of token ids is among" in run(model, tmp_path)
    renamed(model, "words", "input_ids")
    for each in ("key", "value"):
        renamed(model, f"past_key_values.0.{each}", f"x.{each}")
    said = run(model, tmp_path, "--dim", "past_sequence_length=4")
    assert "no input is a cache by its name" in said
