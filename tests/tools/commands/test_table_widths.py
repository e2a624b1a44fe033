"""Tables of all commands fit into the width of a pipe, and lose no letter of a long name there."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from kept_kernels import copy_kernels
from onnx import helper, numpy_helper
from rich.table import Table
from typer.testing import CliRunner

from abele.tools.cli import COMMANDS, app
from abele.tools.views.terminal import PIPE_COLUMNS, console

LONG = "encoder.layers.11.attention.self_attention.query_key_value_projection.dense"
FRAME = frozenset("┌├└│┏┡┃")
"""How the lines of a table begin."""

TABLES = (
    "run net.onnx --check",
    "compile net.onnx -o net.abele",
    "train net.onnx --data s.npz --steps 1",
    "plan net.onnx",
    "plan net.onnx --columns node,split,space,limited_by,runner-up,op,method",
    f"plan net.onnx --every --operator {LONG}",
    "memory net.onnx",
    "memory net.onnx --advise",
    "exchange net.onnx",
    "graph net.onnx",
    "run net.onnx --list-ops",
    "cache",
    "doctor",
)
"""Commands that print tables, and can do so in a second."""

WITHOUT = {
    "bisect": "prints lines",
    "explain": "prints lines",
    "opt": "prints text of a program",
    "export": "prints lines",
    "report": "prints lines",
    "scan": "its table has two columns of figures; drawing takes seconds",
    "prove": "its table has names of rules, which are words; it takes seconds",
    "fuzz": "its table has fixed words; it takes seconds",
    "mutate": "its table has fixed words; it takes minutes",
    "bench": "measures for minutes",
    "sweep": "its table has columns that its spec names; it takes seconds",
    "generate": "its table has five columns of figures; it takes seconds",
    "quantise": "its table has three columns of figures; it takes seconds",
    "demo": "the table of run; it takes seconds",
}
"""Commands without a table of names, and why they are not run here."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model whose nodes have long names, and samples for it."""
    found = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(0)
    names, given = [f"{LONG}.{i}" for i in range(2)], "x"
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    for i, name in enumerate((LONG, *names)):
        weight = random.normal(size=(4, 4)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"{name}.weight"))
        nodes.append(helper.make_node("MatMul", [given, f"{name}.weight"], [f"v{i}"], name))
        given = f"v{i}"
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, [2, 4])],
        [helper.make_tensor_value_info(given, kind, [2, 4])],
        weights,
    )
    opsets = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), found / "net.onnx")
    copy_kernels(found / "cache")
    np.savez(found / "s.npz", x=np.zeros((2, 4), np.float32), target=np.zeros(2, np.int32))
    return found


@pytest.mark.parametrize("line", TABLES)
def test_tables_in_a_pipe_fit(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ABELE_CACHE", str(folder / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    words = [each.replace("_by", " by") for each in line.split()]
    target = [] if words[0] in ("cache", "doctor") else ["--target", "tiny:2"]
    found = CliRunner().invoke(app, [*words, *target])
    assert found.exit_code == 0, found.stderr
    table = [each for each in found.stdout.splitlines() if each[:1] in FRAME]
    assert table
    assert max(map(len, table)) <= PIPE_COLUMNS
    assert "…" not in found.stdout


def test_every_command_is_known_to_print_tables_or_not_to():
    assert {line.split()[0] for line in TABLES} | WITHOUT.keys() == COMMANDS.keys()


def test_words_are_folded_and_figures_are_not(capsys: pytest.CaptureFixture[str]):
    table = Table()
    for name in ("node", "line"):
        table.add_column(name, no_wrap=True)
    for i in range(6):
        table.add_column(f"figure {i}", justify="right")
    table.add_row(LONG, LONG[::-1], *["123,456,789"] * 6)
    console().print(table)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= PIPE_COLUMNS
    assert out.count("123,456,789") == 6
    cells = [line.split("│")[1:3] for line in out.splitlines() if line.startswith("│")]
    assert "".join(each[0].strip() for each in cells) == LONG
    assert "".join(each[1].strip() for each in cells) == LONG[::-1]
