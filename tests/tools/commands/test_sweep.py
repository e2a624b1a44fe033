"""abele sweep: what it prints, its exit codes, and Ctrl-C."""

import signal
from pathlib import Path

import pytest
from swept_product import PRODUCT
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.sweeps.folder import LOG, ROWS, Folder, Record, locked_folder

SPEC = """
[[model]]
file = "product.mlir"

[[target]]
base = "tiny:4"
clock_hz = [1e9, 2e9]

[options]
vertices_per_tile = [1, 2]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "product.mlir").write_text(PRODUCT)
    path = tmp_path / "s.toml"
    path.write_text(SPEC)
    return path


def typed(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["sweep", *map(str, words), "--executor", "here"])
    return done.exit_code, done.output


def test_the_best_point_is_shown_and_a_second_run_computes_nothing(spec: Path):
    code, text = typed(spec, "--best", "max items_per_s", "--constraint", "clock_hz < 1.5e9")
    assert code == 0
    assert "4 points; 4 fit; 2 programs compiled" in text
    (row,) = (line for line in text.splitlines() if line.startswith("│"))
    assert "1,000,000,000" in row
    code, text = typed(spec, "--best", "min cycles", "--constraint", "tiles > 4")
    assert code == 0
    assert "4 points, 4 of them from before; 4 fit; 0 programs compiled" in text
    assert "product: no point keeps the constraints" in text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--best", "cycles"], "--best cycles: need min or max"),
        (["--best", "min cycle"], "no figure cycle; did you mean cycles"),
        (["--constraint", "tiles"], "--constraint tiles: not understood"),
        (["-o", "s.toml"], "is not a folder"),
    ],
)
def test_wrong_options_are_one_message(words: list[str], problem: str, spec: Path):
    words = [str(spec) if each == "s.toml" else each for each in words]
    code, text = typed(spec, *words)
    assert code == 2
    assert problem in " ".join(text.split())
    assert not spec.with_suffix(".sweep").joinpath(ROWS).exists()


def test_a_spec_or_an_executor_that_is_not_there_is_one_message(spec: Path, tmp_path: Path):
    code, text = typed(tmp_path / "no.toml")
    assert (code, "cannot be read: No such file" in text) == (2, True)
    done = CliRunner().invoke(app, ["sweep", str(spec), "--executor", "cloud:7"])
    assert (done.exit_code, "executor 'cloud:7': need one of" in done.output) == (2, True)


def test_a_folder_in_use_is_one_message(spec: Path):
    with locked_folder(spec.with_suffix(".sweep")):
        code, text = typed(spec)
    assert (code, "another sweep writes into it" in text) == (2, True)


def test_ctrl_c_keeps_the_rows_and_says_so(spec: Path, monkeypatch: pytest.MonkeyPatch):
    spec.write_text(SPEC.replace("[1, 2]", "{from = 1, to = 200, step = 1}"))
    own = Folder.add

    def add(folder: Folder, record: Record) -> None:
        if len(folder.records) == 6:
            signal.raise_signal(signal.SIGINT)
        own(folder, record)

    monkeypatch.setattr(Folder, "add", add)
    code, text = typed(spec)
    assert code == 130
    assert "6 of 400 points have rows; the same command goes on with them" in text
    assert "Traceback" not in text
    folder = spec.with_suffix(".sweep")
    assert (folder / LOG).read_bytes().count(b"\n") == 1 + 6
    assert not (folder / ROWS).exists()
