"""The health of a training run as a table."""

import csv
from pathlib import Path

import numpy as np
import pytest
from some_steps import LARGE
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.views.report.health import COLUMNS

OPTIONS = ("--target", "mk2:2", "--loss", "mean_square", "--precision", "float16")
NEAREST = ("--rounding", "nearest", "--training", "learning-rate=0", "--no-cache")
SCALED = ("--training", "scaling=automatic", "--training", "loss-scale=4")


def trained(folder: Path, *options: object) -> tuple[int, str]:
    """Train on samples of which one makes gradients that float16 does not hold."""
    (folder / "m.mlir").write_text(LARGE)
    x = np.full((8, 4), 2.0**-18, np.float32)
    x[5] = 1.0
    np.savez(folder / "data.npz", x=x, target=np.zeros((8, 2), np.float32))
    words = ["train", str(folder / "m.mlir"), "--data", str(folder / "data.npz")]
    done = CliRunner().invoke(app, [*words, *OPTIONS, *NEAREST, *map(str, options)])
    return done.exit_code, done.output


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_the_table_has_each_operation_and_step_with_phase_and_line(tmp_path: Path):
    code, output = trained(tmp_path, "--steps", 4, "--health", tmp_path / "h.csv")
    assert code == 0, output
    found = rows(tmp_path / "h.csv")
    assert tuple(found[0]) == COLUMNS
    assert {row["step"] for row in found} == {"1", "2", "3", "4"}
    assert {row["phase"] for row in found} == {"forward", "backward", "update"}
    assert "net.py:7:1" in {row["line"] for row in found}
    (bad,) = {row["step"] for row in found if int(row["clipped"])}
    assert f"overflows in 1 of 4 recorded steps: first in step {bad}, in the float16" in output
    names = [[row["operation"] for row in found if row["step"] == step] for step in "1234"]
    assert names == [names[0]] * 4
    assert all(0 <= float(row["zeros"]) <= 1 for row in found)


def test_each_n_th_step_is_recorded(tmp_path: Path):
    trained(tmp_path, "--steps", 7, "--health", tmp_path / "h.csv", "--health-every", 3)
    assert {row["step"] for row in rows(tmp_path / "h.csv")} == {"3", "6"}


def test_training_is_the_same_with_and_without_a_record(tmp_path: Path):
    curves = [tmp_path / "a.csv", tmp_path / "b.csv"]
    trained(tmp_path, "--steps", 4, *SCALED, "--curve", curves[0])
    words = ("--health", tmp_path / "h.csv")
    trained(tmp_path, "--steps", 4, *SCALED, "--curve", curves[1], *words)
    assert curves[0].read_text() == curves[1].read_text()


def test_a_step_that_is_not_finite_is_recorded_whatever_its_number(tmp_path: Path):
    words = ("--target", "tiny:2", "--steps", 8, "--health", tmp_path / "h.csv")
    code, output = trained(tmp_path, *words, "--health-every", 8)
    assert code == 2
    (step,) = {row["step"] for row in rows(tmp_path / "h.csv")}
    assert f"step {step}: the loss is" in output


def test_the_curve_has_the_automatic_scale_and_its_two_bins(tmp_path: Path):
    code, output = trained(tmp_path, "--steps", 6, *SCALED, "--curve", tmp_path / "c.csv")
    assert code == 0, output
    found = rows(tmp_path / "c.csv")
    scales = [float(row["loss_scale"]) for row in found]
    assert scales[0] == 4.0
    for row, now, following in zip(found, scales, scales[1:], strict=False):
        assert following == (max(now / 2, 1.0) if int(row["large_gradients"]) else 2 * now)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--health", "h.txt"), "unknown kind of table of health; need .csv or .html"),
        (("--health-every", 3), "--health-every without --health; need both"),
        (
            ("--training", "scaling=unit", "--training", "loss-scale=4"),
            "loss_scale 4, unit; need none: unit scaling",
        ),
        (("--training", "scaling=often"), "--training scaling=often: need static or automatic"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_compiled(
    tmp_path: Path, options: tuple[object, ...], said: str
):
    code, output = trained(tmp_path, "--steps", 2, *options)
    assert code == 2
    assert said in output
