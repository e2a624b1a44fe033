import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from some_models import convolutions
from typer.testing import CliRunner, Result

from abele.dialects import nn
from abele.tools.cli import app
from abele.tools.driver.compile import compile_model
from abele.tools.views import terminal as views_terminal


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch):
    """A pipe in which all columns of a plan fit, so that tests can read each cell in one line."""
    monkeypatch.setattr(views_terminal, "PIPE_COLUMNS", 400)


def plan(*arguments: str | Path, command: str = "plan") -> Result:
    result = CliRunner().invoke(app, [command, *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.onnx"
    onnx.save(convolutions(), path)
    return path


def rows(output: str) -> list[list[str]]:
    """The cells of a table's rows."""
    lines = [line for line in output.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_each_operator_has_a_row_and_all_together_the_last(network: Path):
    result = plan(network, "--target", "tiny:16")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    found = rows(result.stdout)
    assert found[-1][0] == f"all {len(found) - 1}"
    assert [row[1] for row in found[:-1]].count("nn.conv") == 2
    cycles = [[int(n.replace(",", "")) for n in row[6:11]] for row in found]
    for whole, *phases in cycles:
        assert abs(whole - sum(phases)) <= len(found)
    assert abs(cycles[-1][0] - sum(row[0] for row in cycles[:-1])) <= len(found)
    assert re.search(r"fullest tile: [\d,]+ of 245,760 bytes", result.stdout)


def test_the_most_expensive_operators_come_first_with_top(network: Path):
    every = rows(plan(network, "--target", "tiny:16").stdout)[:-1]
    few = rows(plan(network, "--target", "tiny:16", "--top", "2").stdout)[:-1]
    dearest = sorted(every, key=lambda row: -int(row[6].replace(",", "")))
    assert [row[0] for row in few] == [row[0] for row in dearest[:2]]


HEADS = """
<ir_version: 8, opset_import: ["" : 17]>
heads (float[1, 64] x, float[64, 64] q, float[64, 64] k, float[64, 64] v)
=> (float[1, 64] y) {
  a = MatMul(x, q)
  b = MatMul(x, k)
  c = MatMul(x, v)
  d = Mul(a, b)
  y = Mul(c, d)
}
"""


@pytest.mark.parametrize("options", [(), ("--precision", "float16"), ("--sparsity", "zeros")])
def test_a_plan_is_that_of_the_program_that_compile_makes(tmp_path: Path, options: tuple[str, ...]):
    """It has the products that compile merges, unless a pipeline is given."""
    model = onnx.parser.parse_model(HEADS)
    weights = np.random.default_rng(0).normal(0, 1, (64, 64)).astype(np.float32)
    for name in "qkv":
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    del model.graph.input[1:]
    path, target = tmp_path / "heads.onnx", ("--target", "mk2:64")
    onnx.save(model, path)

    def spaces(*more: str) -> list[str]:
        result = plan(path, *target, *options, "--columns", "op,space", *more)
        assert result.exit_code == 0, result.output
        return [row[1] for row in rows(result.stdout) if row[0] == "nn.matmul"]

    assert spaces() == ["n=192 k=64"]
    assert len(spaces("-p", "nn")) == 3
    exe = compile_model(path, "mk2:64", cache=False, **given_options(options))
    assert exe.stages.plans is not None
    found = [op for op in exe.stages.plans.module.walk() if isinstance(op, nn.MatMulOp)]
    assert [nn.shape_of(op.rhs) for op in found] == [(64, 192)]


def given_options(options: tuple[str, ...]) -> dict[str, Any]:
    """Options of the command, as compile_model takes them."""
    return {options[0].removeprefix("--"): options[1]} if options else {}


def test_a_product_of_matrices_needs_no_file():
    result = plan("--matmul", "64,256,32", "--target", "tiny:16")
    assert result.exit_code == 0, result.output
    assert "m=64 n=32 k=256" in result.stdout
    assert "matmul 64,256,32 f16" in result.stdout


def test_one_operator_shows_its_alternatives(tmp_path: Path):
    pytest.importorskip("matplotlib")
    picture, record = tmp_path / "it.png", tmp_path / "it.json"
    arguments = ("--matmul", "64,256,32", "--target", "tiny:16", "--operator", "matmul")
    result = plan(*arguments, "--png", picture, "--json", record)
    assert result.exit_code == 0, result.output
    front = rows(result.stdout)
    assert [row[-1] for row in front].count("chosen") == 1
    assert picture.read_bytes().startswith(b"\x89PNG")
    plans = json.loads(record.read_text())["trade_offs"]["plans"]
    assert [p["cycles"] for p in plans] == sorted(p["cycles"] for p in plans)
    assert sum(p["pareto"] or p["chosen"] for p in plans) == len(front)
    every = rows(plan(*arguments, "--every").stdout)
    assert len(every) == len(plans) > len(front)


def test_every_command_reports_relaxed_limits(network: Path):
    limit = ("--target", "tiny:16", "--memory-proportion", "0.001")
    told = plan(network, *limit)
    assert told.exit_code == 0
    (relaxed, *_) = re.findall(r"relaxed: (the_\S+: 0\.001 -> [\d.]+ of a tile)", told.stdout)
    assert f"warning: no plan keeps the memory proportion of {relaxed}" in told.stderr
    for command, more in (("run", ()), ("compile", ("-o", "p.abele"))):
        result = plan(network, *limit, *more, "--profile", "p.json", command=command)
        assert result.exit_code == 0, result.output
        assert f"warning: no plan keeps the memory proportion of {relaxed}" in result.stderr
        (first, *_) = json.loads(Path("p.json").read_text())["relaxed_limits"]
        assert first["limit"] == 0.001
        assert first["relaxed_to"] > 0.001
    # A saved program has not forgotten.
    assert relaxed in plan("p.abele", command="run").stderr


def test_constraints_are_kept_by_every_command(network: Path):
    Path("c.json").write_text('{"operators": {"the_c1*": {"split": {"y": 2}}}}')
    asked = ("--target", "tiny:16", "--constraints", "c.json")
    found = [row for row in rows(plan(network, *asked).stdout) if "the_c1" in row[0]]
    assert all("y=2" in row[3] for row in found)
    assert found
    result = plan(network, *asked, "--dump-ir", "dump", "-o", "p.abele", command="compile")
    assert result.exit_code == 0, result.output
    dump = next(Path("dump").glob("*plan-splits*.mlir")).read_text()
    splits = re.findall(r"split \[1, 2, \d+, 2, ", dump)
    assert splits


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "need either a MODEL or --matmul M,K,N"),
        (("small.onnx", "--matmul", "1,2,3"), "need either a MODEL or --matmul M,K,N"),
        (("--matmul", "1,2"), "--matmul 1,2: need M,K,N"),
        (("--matmul", "1,0,2"), "need sizes of at least 1"),
        (("--matmul", "1,2,x"), "need M,K,N"),
        (("--matmul", "1,2,3", "--dtype", "f8"), "dtype 'f8'; need one of f16, f32"),
        (("small.onnx", "--dtype", "f16"), "--dtype is for --matmul"),
        (("small.onnx", "--png", "x.png"), "--png: need --operator NAME"),
        (("small.onnx", "--every"), "--every: need --operator NAME"),
        (("small.onnx", "--operator", "the_c9"), "no operator 'the_c9'; did you mean"),
        (("small.onnx", "--memory-proportion", "1.5"), "memory proportion 1.5; need 0..1"),
        (("small.onnx", "--memory-proportion", "nan"), "memory proportion nan; need 0..1"),
        (("small.onnx", "--constraints", "absent.json"), "absent.json: cannot be read"),
        (("small.onnx", "--constraints", "bad.json"), "bad.json:2: operators.conv9: no operator"),
        (("small.onnx", "--json", "small.onnx"), "both the model and --json"),
        (("small.onnx", "--json", "x", "--csv", "x"), "x: both --json and --csv"),
        (("small.onnx", "--csv", "small.onnx/x.csv"), "small.onnx/x.csv: cannot be written"),
        (("small.onnx", "--columns", "split,cycle"), "no column 'cycle'; did you mean cycles?"),
        (("small.onnx", "--columns", "node", "--operator", "the_c1"), "no column 'node'; "),
        (
            ("small.onnx", "-p", "nn,partition"),
            "pipeline 'nn,partition' ends at partition; need passes that stay",
        ),
        (("p.abele",), "p.abele: unknown kind of file"),
        (("small.onnx", "--target", "bad.toml"), "bad.toml:2: tiles: 0; need an integer in"),
    ],
)
def test_bad_input_is_one_message(network: Path, arguments: tuple[str, ...], says: str):
    Path("bad.json").write_text('{"operators": {\n"conv9": {}}}')
    Path("bad.toml").write_text('base = "tiny"\ntiles = 0\n')
    before = sorted(Path().rglob("*"))
    result = plan(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert says in result.stderr
    assert sorted(Path().rglob("*")) == before


def test_constraints_need_a_pass_that_plans(network: Path):
    assert plan(network, "-o", "p.abele", "--target", "tiny:16", command="compile").exit_code == 0
    Path("c.json").write_text("{}")
    result = plan("p.abele", "--constraints", "c.json", command="run")
    assert result.exit_code == 2
    assert "compiled already, so it cannot be planned again" in result.stderr


def test_a_program_that_does_not_fit_is_reported(network: Path):
    result = plan(network, "--target", "tiny:2,memory.reserved_bytes=0,memory.bytes_per_tile=2048")
    assert result.exit_code == 0, result.output
    assert "warning: by this estimate the program does not fit" in result.stderr


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Make standard output a terminal of a width."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))


@pytest.mark.parametrize("width", [60, 80, 120, 260])
def test_the_table_fits_the_terminal(network: Path, width: int, monkeypatch: pytest.MonkeyPatch):
    terminal(monkeypatch, width)
    result = plan(network, "--target", "tiny:16")
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in result.stdout.splitlines()]
    table = [line for line in lines if line.startswith(("│", "┃", "┏"))]
    assert {len(line) for line in table} == {len(table[0])}
    assert len(table[0]) <= width
    # One line per operator, or two where a long name is folded; letters never stand in a column.
    assert len(rows("\n".join(table))) <= 2 * 6
    assert any(line.startswith("too narrow for ") for line in lines) == (width < 260)


def test_columns_are_those_that_are_asked_for(network: Path):
    result = plan(network, "--target", "tiny:16", "--columns", "cycles,limited-by,node")
    (heading,) = [line for line in result.stdout.splitlines() if line.startswith("┃")]
    assert [each.strip() for each in heading.strip("┃").split("┃")] == [
        "cycles",
        "limited by",
        "node",
    ]
    operator = ("--matmul", "64,256,32", "--target", "tiny:16", "--operator", "matmul")
    found = rows(plan(*operator, "--columns", "tiles,cycles").stdout)
    assert all(len(row) == 2 for row in found)


def test_csv_has_the_cells_of_the_table(network: Path):
    result = plan(network, "--target", "tiny:16", "--csv", "plan.csv")
    heading, *lines = csv.reader(Path("plan.csv").read_text().splitlines())
    found = rows(result.stdout)[:-1]
    assert len(heading) == len(found[0])
    assert [line[0] for line in lines] == [row[0] for row in found]
    cycles = heading.index("cycles")
    shown = [int(row[cycles].replace(",", "")) for row in found]
    assert [round(float(line[cycles])) for line in lines] == pytest.approx(shown, abs=1)
    plan(network, "--target", "tiny:16", "--csv", "few.csv", "--columns", "node", "--top", "1")
    assert len(Path("few.csv").read_text().splitlines()) == 2


def test_numbered_nodes_have_the_names_of_their_weights(tmp_path: Path):
    path = tmp_path / "numbered.onnx"
    made = convolutions()
    for number, each in enumerate(made.graph.node):
        each.name = f"n{number}"
    onnx.save(made, path)
    record = tmp_path / "plan.json"
    result = plan(path, "--target", "tiny:16", "--json", record)
    names = [row[0] for row in rows(result.stdout)[:-1]]
    assert not [each for each in names if re.match(r"n\d", each)]
    # JSON keeps the nodes, because constraints name them; --operator takes either.
    operators = json.loads(record.read_text())["operators"]
    assert [each["layer"] for each in operators] == names
    for each in (operators[0]["node"], operators[0]["layer"]):
        assert plan(path, "--target", "tiny:16", "--operator", each).exit_code == 0


def test_a_step_of_training_is_planned_phase_by_phase(network: Path):
    options = ("--train", "--loss", "mean_square", "--training", "momentum=0.9")
    result = plan(network, "--target", "tiny:16", *options, "--json", "plan.json")
    assert result.exit_code == 0, result.output
    found = rows(result.stdout)
    record = json.loads(Path("plan.json").read_text())
    phases = [each["phase"] for each in record["operators"]]
    assert [row[1] for row in found[: len(phases)]] == phases
    assert set(phases) == {"forward", "backward", "update"}
    cycles = {row[1]: int(row[7].replace(",", "")) for row in found if row[0].startswith("all ")}
    for phase in ("forward", "backward", "update"):
        own = [each for each in record["operators"] if each["phase"] == phase]
        assert cycles[phase] == pytest.approx(sum(each["cycles"] for each in own), abs=1)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("small.onnx", "--loss", "huber"), "--loss without --train"),
        (("--matmul", "4,4,4", "--train"), "--train is for a MODEL"),
        (("small.onnx", "--train", "--loss", "square"), "loss 'square'"),
    ],
)
def test_training_that_cannot_be_planned_is_refused(
    network: Path, options: tuple[str, ...], problem: str
):
    result = plan(*options)
    assert result.exit_code == 2
    assert problem in result.stderr


@pytest.mark.parametrize(("chips", "tiles"), [("1", 1472), ("2", 2944)])
def test_a_product_is_planned_for_the_chips_that_are_asked_for(tmp_path: Path, chips, tiles):
    out = tmp_path / "plan.json"
    result = plan("--matmul", "64,64,64", "--target", "mk2x4", "--chips", chips, "--json", str(out))
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["tiles"] == tiles


@pytest.mark.parametrize("command", ["run", "compile", "report", "memory", "bisect"])
def test_more_chips_than_a_topology_has_are_refused_by_every_command(network: Path, command: str):
    where = {"compile": ("-o", "p.abele"), "report": ("-o", "r")}.get(command, ())
    asked = ("small.onnx", *where, "--target", "mk1x2", "--chips", "4")
    result = plan(*asked, command=command)
    assert result.exit_code == 2
    assert result.stderr.rstrip().endswith("--chips 4: 4 chips; mk1x2 has 2")
