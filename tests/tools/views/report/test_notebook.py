"""A report in a notebook."""

import html

import pytest
from some_models import convolutions

from abele.ir.errors import InputError
from abele.tools import load_report
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(exe: Executable):
    shown = exe.report()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count("<") == 2
    page = html.unescape(shown.split('"')[1])
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")


def test_tables_are_frames(exe: Executable):
    report = exe.report()
    assert report.operations["cycles"].sum() == pytest.approx(exe.profile["cycles"], abs=50)
    assert len(report.memory) == 8
    timeline = report.timeline
    assert timeline["cycles"].sum() == exe.profile["cycles"]
    assert set(timeline.columns) >= {"start", "name", "compute_cycles", "critical_tile"}
    with pytest.raises(AttributeError, match="operations"):
        _ = report.operation
    with pytest.raises(InputError, match="no table"):
        report.table("x")


def test_a_saved_report_is_that_of_the_command(exe: Executable, tmp_path):
    exe.report().save(tmp_path / "out")
    assert load_report(tmp_path / "out").program["cycles"] == exe.profile["cycles"]
    assert (tmp_path / "out" / "index.html").exists()
