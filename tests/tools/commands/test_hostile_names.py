"""Names of nodes, tensors, files and dimensions that look like markup, through every command."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from some_models import model, node, random
from typer.testing import CliRunner

from abele.tools.cli import COMMANDS, app

NAMES = (
    "a[/b]",
    "dense[bias]",
    "[bold red]x",
    ":smile:",
    "{{DATA}}",
    "</script><script>alert(1)</script>",
    "\x1b[2J\x1b]0;t\x07\u202e",
    "$x^{$_&amp;<!--%s{0}",
)

FILE = "m[b]{{DATA}}<b>\x1b[2J\udcff.onnx"
"""A name like markup, that moves the cursor and is not UTF-8."""

ELSEWHERE = {"fuzz", "mutate", "bench", "demo", "prove", "scan"}
"""Commands that print no name from a file but words, and one that tests/tools/views/scan tests."""


def hostile() -> onnx.ModelProto:
    """A chain of operators with one hostile name each, of nodes and of tensors."""
    nodes, weights, last = [], {}, "x[/in]"
    for number, name in enumerate(NAMES):
        value = f"v{name}{number}"
        weights[f"w{name}{number}"] = random((6, 6))
        made = node("MatMul", "x", "y")
        made.name = name
        del made.input[:], made.output[:]
        made.input.extend([last, f"w{name}{number}"])
        made.output.append(value)
        nodes.append(made)
        last = value
    return model(nodes, {"x[/in]": ["N[/b]", 6]}, [last], weights)


COMMAND_LINES: dict[str, tuple[str, ...]] = {
    "run": ("run", "MODEL", "--profile", "p.json", "--trace", "t.json", "--outputs", "y.npz"),
    "check": ("run", "MODEL", "--check", "--verbose"),
    "dump": ("compile", "MODEL", "-o", "p.abele", "--dump-ir", "dump"),
    "plan": ("plan", "MODEL", "--json", "p.json", "--csv", "p.csv"),
    "operator": ("plan", "MODEL", "--operator", "dense[bias]", "--png", "p.png"),
    "no operator": ("plan", "MODEL", "--operator", "dense[bias"),
    "memory": ("memory", "MODEL", "--json", "p.json"),
    "exchange": ("exchange", "MODEL"),
    "graph": ("graph", "MODEL", "-o", "graph", "--graphml", "g.graphml"),
    "report": ("report", "MODEL", "-o", "report", "--markdown", "r.md", "--perfetto", "r.trace"),
    "bisect": ("bisect", "MODEL"),
    "cache": ("cache", "explain", "MODEL"),
    "train": ("train", "MODEL", "--data", "samples.npz", "--steps", "1", "--loss", "mean_square"),
    "quantise": ("quantise", "MODEL", "--inputs", "samples.npz", "--to", "int8", "-o", "q.onnx"),
    "generate": ("generate", "MODEL", "--prompt-ids", "1,2"),
    "missing": ("run", "[/b]\x1b\udcff.onnx"),
    "doctor": ("doctor", "--json", "[b].json"),
    "export": ("export", "MODEL", "-o", "[b].mlir"),
    "sweep": ("sweep", "[b].toml", "--executor", "here", "--best", "min cycles"),
}
SPEC = """
[[model]]
file = "[b].onnx"
name = "[/b]"
dims = {"N[/b]" = 2}

[[target]]
base = "tiny"
"""
EXPLAIN = ("explain", "relu-of-relu", "dump/00-input.mlir")
OPT = ("opt", "dump/00-input.mlir", "-p", "decompose", "--mlir-print-debuginfo")


def test_every_command_is_listed():
    ours = {line[0] for line in (*COMMAND_LINES.values(), EXPLAIN, OPT)}
    assert ours == set(COMMANDS) - ELSEWHERE


def run(*arguments: str) -> str:
    """What a command prints. It may refuse, but not fail, and it prints nothing but text."""
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    assert done.exit_code in (0, 2, 3), done.output
    assert not set(done.output) & set("\x1b\x07\x9b\u202e"), done.output
    done.output.encode()
    return done.output


@pytest.mark.slow
def test_no_name_is_read_as_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    Path(FILE).write_bytes(hostile().SerializeToString())
    np.savez("samples.npz", **{"x[/in]": np.ones((2, 6), np.float32), "target": np.ones((2, 4))})
    Path("[b].onnx").write_bytes(Path(FILE).read_bytes())
    Path("[b].toml").write_text(SPEC)
    said = {}
    for name, line in COMMAND_LINES.items():
        words = [FILE if each == "MODEL" else each for each in line]
        more = ["--dim", "N[/b]=2", "--target", "tiny"] if name not in ("missing", "sweep") else []
        said[name] = run(*words, *more)
    shown = FILE.replace("\x1b", "\\x1b").replace("\udcff", "\\xff")
    for name in ("run", "memory", "graph", "dump"):
        assert shown in said[name].replace("\n", ""), name
    for name in ("plan", "memory"):
        # A name in a narrow column is folded.
        text = "".join(said[name].split())
        for each in ("a[/b]", "dense[bias]", "[boldred]x", ":smile:", "{{DATA}}", "\\x1b[2J"):
            assert each in text, (name, each)
    assert "dense[bias" in said["no operator"]
    assert "[/b]" in said["sweep"]
    for each in ("p.json", "t.json"):
        json.loads(Path(each).read_text())
    assert ElementTree.parse("g.graphml")
    with np.load("y.npz") as outputs:
        assert len(outputs.files) == 1
    page = Path("dump/index.html").read_text()
    assert "<b>" not in page.partition("<title>")[2].partition("</title>")[0]
    assert page.count("<script") == 2
    run(*OPT)
    run(*EXPLAIN)
