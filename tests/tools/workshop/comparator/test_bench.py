"""The table that holds abele's search to the comparator's."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.tools.views.script import script
from abele.tools.workshop.comparator import bench
from abele.tools.workshop.comparator.bench import OTHERS, PUBLISHED, SMALL

SHAPES = "31x257x50,1x2048x1000"


def test_each_shape_has_a_row_and_no_plan_is_worse_than_the_comparators(tmp_path: Path):
    report = tmp_path / "rows.json"
    result = CliRunner().invoke(
        script(bench.comparator), ["--shapes", SHAPES, "--json", str(report)]
    )
    assert result.exit_code == 0, result.output
    assert "31, 257, 50" in result.output
    rows = json.loads(report.read_text())
    assert [row["sizes"] for row in rows] == [[31, 257, 50], [1, 2048, 1000]]
    for row in rows:
        assert row["wider"] < row["same"] <= row["comparator"]
        assert 0 < row["pareto"] < row["priced"]


def test_a_published_figure_that_is_not_matched_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(bench.PUBLISHED, (31, 257, 50), 1)
    result = CliRunner().invoke(script(bench.comparator), ["--shapes", "31x257x50"])
    assert result.exit_code == 1
    assert "published figures matched: 0 of 1" in result.output


def test_there_is_no_ratio_if_no_plan_fits():
    result = CliRunner().invoke(script(bench.comparator), ["--shapes", "100000x100000x8"])
    assert result.exit_code == 0, result.output
    assert "no plan" in result.output


@pytest.mark.parametrize("text", ["12x34", "axbxc", "0x1x2"])
def test_text_that_is_not_a_shape_is_refused(text: str):
    assert CliRunner().invoke(script(bench.comparator), ["--shapes", text]).exit_code == 2


def test_six_shapes_are_published_and_twenty_are_not():
    assert (len(PUBLISHED), len(SMALL)) == (6, 4)
    assert len({*OTHERS} - {*PUBLISHED}) == 20
