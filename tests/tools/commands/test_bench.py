import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from abele.backends.target import Target
from abele.tools.bench.fidelity import network
from abele.tools.bench.fidelity.cases import Network
from abele.tools.bench.fidelity.rows import CALIBRATION
from abele.tools.cli import app


def bench(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """The rows of the calibration that take no planning, and two that have no price."""
    head, *rows = CALIBRATION.read_text().splitlines(keepends=True)
    kept = [row for row in rows if row.startswith(("amp16", "scaleadd", "gblur", "gbconv"))]
    path = tmp_path / "few.csv"
    path.write_text("".join([head, *kept, kept[0].replace("fp16", "posit")]))
    return path


def test_fidelity_prints_families_and_writes_fractions(few: Path, tmp_path: Path):
    out = tmp_path / "out.json"
    result = bench("fidelity", "--csv", few, "--json", out)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert list(found) == ["amp", "vector", "stencil", "stencil across chips"]
    assert all(set(each) == {"rows", "median", "p90", "worst"} for each in found.values())
    assert found["amp"]["rows"] == 5
    assert 0 < found["amp"]["median"] < found["amp"]["worst"] < 0.01
    assert "not fitted" in result.output
    assert "on 2 IPUs" in result.output
    assert "'posit in" in result.output
    assert "scaleadd_64" not in result.output


def test_fidelity_shows_every_row_when_asked(few: Path):
    result = bench("fidelity", "--csv", few, "--rows")
    assert "scaleadd_64" in result.output
    assert "counter 45" in result.output


def test_fidelity_compares_the_networks_that_it_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    def figures(case: Network, target: Target) -> dict[str, int]:
        phases = {"compute": 700_000, "exchange": case.batch, "sync": case.io_tiles}
        return {f"{phase}_cycles": n for phase, n in (phases | {"host": 12_345}).items()}

    monkeypatch.setattr(network, "_compiled", figures)
    result = bench("fidelity", "--networks", "resnet50")
    assert result.exit_code == 0, result.output
    assert "sync 64" in result.output
    assert "12,345" in result.output
    assert "amp" not in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fidelty",), "did you mean fidelity?"),
        (("fidelity", "--layers"), "--layers; it takes --csv, --rows, --networks, --json"),
        (("fidelity", "--networks", "resnet"), "did you mean resnet50?"),
        (("fidelity", "--networks", "resnet50", "--csv", CALIBRATION), "both --csv and --networks"),
        (("trace", "--json", "x"), "--json; it takes --networks, --target"),
        (("steps", "--layers"), "--layers; it takes --networks, --target"),
        (("training", "--layers", "--networks", "alexnt"), "did you mean alexnet?"),
        (("training", "--folder", "absent"), "the folder"),
        (("graphs", "--networks", "alexnet:0"), "need NAME[:BATCH[:VERTICES]]"),
        (("learning", "--networks", "digts"), "did you mean digits?"),
        (("light", "--target", "mk9"), "'mk9' is not a preset"),
        (("comparator", "--target", "mk2"), "--target; it takes --json"),
        (("fidelity", "--csv", "absent.csv"), "absent.csv: cannot be read"),
        (("fidelity", "--csv", CALIBRATION, "--json", CALIBRATION), "both --csv and --json"),
    ],
)
def test_an_impossible_request_is_one_message(arguments, says):
    result = bench(*arguments)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert result.stderr.count("error:") == 1


def test_other_benchmarks_are_reached():
    result = bench("trace", "--networks", "squeezenet", "--target", "mk2")
    assert result.exit_code == 0, result.output
    assert "squeezenet" in result.output
