"""Small pictures of memory and time: what they show is what the tables say."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from some_models import convolutions

from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.views.report import plots
from abele.tools.views.report.collect import Report
from abele.tools.views.report.plots import COLOURS, PLOT, memory_plot, timeline_plot

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


def bands(svg: str) -> dict[str, float]:
    """The area of each band in pixels, by its title."""
    found = {}
    for each in ElementTree.fromstring(svg).iter(f"{SVG}polygon"):
        x, y = np.array([p.split(",") for p in each.get("points", "").split()], float).T
        area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
        found[each.find(f"{SVG}title").text] = area
    return found


def test_memory_and_timeline_are_frames_with_a_picture(exe: Executable):
    assert len(exe.memory.frame) == 8
    assert exe.memory["tile"].tolist() == list(range(8))
    assert exe.timeline["cycles"].sum() == exe.profile["cycles"]
    assert len(exe.timeline) == len(exe.timeline.frame)
    assert "critical_tile" in exe.timeline.columns
    for shown in (exe.memory, exe.timeline, exe.report().memory):
        page = shown._repr_html_()
        assert page.startswith("<div><svg ")
        assert "<table" in page
        assert shown.plot()._repr_svg_() in page
    with pytest.raises(AttributeError, match="nothing"):
        _ = exe.timeline.nothing


def test_the_report_of_memory_stays_what_it_was(exe: Executable):
    assert exe.memory.tiles == 8
    assert exe.memory.max_tile_bytes == exe.memory.tile_bytes.max()
    assert "view" not in repr(exe.memory)


def test_polars_is_asked_for_by_name(exe: Executable):
    try:
        found = exe.timeline.polars()
    except InputError as error:
        assert "pip install polars" in str(error)
    else:
        assert found["cycles"].sum() == exe.profile["cycles"]


def test_areas_of_phases_are_their_shares_of_a_run(exe: Executable):
    found = bands(timeline_plot(exe.report().data).svg)
    facts = exe.profile
    whole = sum(found.values())
    for name in ("compute", "exchange", "sync"):
        assert found[name] / whole == pytest.approx(
            facts[f"{name}_cycles"] / facts["cycles"], abs=0.01
        )


def test_areas_of_memory_are_the_bytes_of_tiles(exe: Executable):
    data = exe.report().data
    # The picture is as high as the live bytes of the fullest tile.
    facts = {**data.program, "bytes_per_tile": 1, "reserved_bytes": 0}
    found = bands(memory_plot(Report(facts, data.tables, data.absent)).svg)
    frame = exe.memory.frame
    live = frame["always_live"].sum(), frame["live_now"].sum()
    assert found["always live"] / found["live now"] == pytest.approx(live[0] / live[1], rel=0.02)


def test_a_large_target_has_a_column_for_its_fullest_tile():
    total = np.arange(10_000.0)
    total[777] = 1e6
    chosen = plots._largest(total)
    assert len(chosen) == PLOT
    assert 777 in chosen
    assert chosen[-1] == 9_999


def test_a_picture_is_a_file_and_its_text_is_escaped(exe: Executable, tmp_path):
    data = exe.report().data
    path = tmp_path / "memory.svg"
    memory_plot(Report({**data.program, "name": "<b>&"}, data.tables, data.absent)).save(path)
    text = path.read_text()
    assert "<b>" not in text
    assert "&lt;b&gt;&amp;" in text
    assert ElementTree.fromstring(text).get("role") == "img"
    assert set(re.findall(r'fill="(#\w+)"', text)) <= set(COLOURS.values())


def test_a_program_that_does_nothing_has_pictures(tmp_path):
    source = tmp_path / "same.mlir"
    source.write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes"
        ' {arg_names = ["x"], result_names = ["y"]} { func.return %x : tensor<4xf32> }'
    )
    exe = compile_model(source, target="tiny:4")
    assert ElementTree.fromstring(exe.timeline.plot().svg).tag == f"{SVG}svg"
    assert ElementTree.fromstring(exe.memory.plot().svg).tag == f"{SVG}svg"
