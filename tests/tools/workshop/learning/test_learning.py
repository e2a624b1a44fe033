"""Networks learn real data: a short run of digits always, the whole table with `make bench`."""

import numpy as np
import pytest
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.workshop.learning import data as sources
from abele.tools.workshop.learning.bench import SEEDS
from abele.tools.workshop.learning.data import NotInstalled, digits, folder_of
from abele.tools.workshop.learning.strain import WINDOW, strain
from abele.tools.workshop.learning.tasks import TASKS, learn, typical


def installed(package: str) -> None:
    try:
        folder_of(package)
    except NotInstalled as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.large
def test_digits_are_learned_in_two_epochs():
    installed("sklearn")
    found = learn(TASKS["digits"], 0, epochs=2)
    assert found.steps == 180
    assert found.figures.accuracy > 0.93


@pytest.mark.large
@pytest.mark.parametrize("name", TASKS)
def test_the_median_of_three_seeds_keeps_the_bar(name: str):
    task = TASKS[name]
    try:
        runs = [learn(task, seed) for seed in SEEDS]
    except NotInstalled as error:
        pytest.skip(str(error))
    assert typical(task, runs) >= task.bar


def test_no_digit_that_is_held_out_is_learned_from():
    installed("sklearn")
    found = digits(0)
    assert (len(found.x), len(found.held_x)) == (1437, 360)
    # A few digits of the set are equal to others; no sample is on both sides.
    everything = np.concatenate([found.x, found.held_x]).reshape(1797, -1)
    whole = digits(1)
    other = np.concatenate([whole.x, whole.held_x]).reshape(1797, -1)
    assert np.array_equal(*(each[np.lexsort(each.T)] for each in (everything, other)))


def test_settings_are_chosen_without_what_is_held_out():
    installed("sklearn")
    whole, part = digits(0), TASKS["digits"].within(0.1).read(0)
    assert (len(part.x), len(part.held_x)) == (862, 575)
    known = {each.tobytes() for each in whole.x}
    assert {each.tobytes() for each in (*part.x, *part.held_x)} == known


def test_series_are_read_and_normalised(tmp_path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "datasets" / "data" / "Two"
    folder.mkdir(parents=True)
    for part in ("TRAIN", "TEST"):
        (folder / f"Two_{part}.ts").write_text(
            "#about\n@problemName Two\n@data\n1,2,3:b\n5,5,8:a\n"
        )
    monkeypatch.setattr(sources, "folder_of", lambda _: tmp_path)
    found = sources.series("Two")(0)
    assert found.x.shape == (2, 1, 3)
    assert found.x.mean(-1) == pytest.approx(0, abs=1e-6)
    assert found.x.std(-1) == pytest.approx(1)
    assert list(found.held_y) == [1, 0]


def test_half_of_all_windows_of_strain_hold_a_chirp():
    installed("gwpy")
    installed("h5py")
    found = strain(0)
    assert found.x.shape == (8192, 1, WINDOW // 4)
    assert found.y.mean() == found.held_y.mean() == 0.5
    assert np.isfinite(found.x).all()
    # Whitened noise has no loud frequency: no window is far from a normal distribution.
    noise = found.x[found.y == 0]
    assert noise.std() == pytest.approx(1, abs=0.05)
    assert np.abs(noise).max() < 8


def test_what_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "find_spec", lambda _: None)
    result = CliRunner().invoke(app, ["bench", "learning", "--networks", "digits,GunPoint"])
    assert result.exit_code == 0, result.output
    assert "digits: left out: needs the package sklearn, which is not installed" in result.output
    assert "GunPoint: left out: needs the package aeon" in result.output


def test_a_task_that_does_not_exist_is_refused():
    result = CliRunner().invoke(app, ["bench", "learning", "--networks", "digit"])
    assert result.exit_code == 2
    assert "there is no 'digit'; did you mean digits?" in result.output
