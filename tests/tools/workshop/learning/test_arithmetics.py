import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.tools.views.script import script
from abele.tools.workshop.learning import arithmetics as module


def test_an_arithmetic_is_a_row_with_the_accuracy_of_each_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(module, "ARITHMETICS", module.ARITHMETICS[-1:])
    monkeypatch.setattr(module, "EPOCHS", {0.1: 1})
    path, picture = tmp_path / "found.json", tmp_path / "curves.png"
    given = ["--rates", "0.1", "--seeds", "1", "--json", str(path), "--png", str(picture)]
    result = CliRunner().invoke(script(module.arithmetics), given)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(path.read_text())
    assert (row["arithmetic"], row["rate"], row["steps"]) == ("float16, stochastic", 0.1, 96)
    (accuracy,) = row["accuracies"]
    assert 0.5 < accuracy < 1.0
    assert f"{accuracy:.2%}" in result.output
    (curve,) = row["curves"]
    # A run has 16 steps, so there are six points.
    assert curve["steps"] == [16, 32, 48, 64, 80, 96]
    assert curve["losses"][-1] < curve["losses"][0]
    assert curve["accuracies"][-1] == accuracy > curve["accuracies"][0]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_rate_without_a_number_of_epochs_is_refused():
    result = CliRunner().invoke(script(module.arithmetics), ["--rates", "0.5"])
    assert result.exit_code == 2
    assert "--rates '0.5'; need one of 0.1, 0.01, 0.001" in result.output


def test_the_standard_error_is_that_of_a_mean():
    assert module.standard_error([1.0, 2.0, 3.0]) == pytest.approx(1 / 3**0.5)
    assert module.standard_error([1.0]) == 0.0
