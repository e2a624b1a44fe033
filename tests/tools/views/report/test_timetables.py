"""The exchanges of a report, beside those that abele exchange shows."""

from base64 import b64decode

import numpy as np
import pytest
from some_models import convolutions

from abele.backends.target import resolve_target
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.views.exchange.exchanges import exchange_of, superstep_named, why
from abele.tools.views.report import timetables
from abele.tools.views.report.collect import collect
from abele.tools.views.report.folder import rows_of

TARGET = resolve_target("tiny:8")


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


def test_each_exchange_has_the_figures_of_its_own_timetable(exe: Executable):
    tables = collect(exe).tables
    module, names = exe.module_at("exchange"), list(tables["supersteps"]["name"])
    rows = rows_of(tables["timetables"])
    assert len(rows) > 3
    for row in rows:
        step = superstep_named(module, names[row["superstep"]])
        found = exchange_of(module, step, TARGET, order=False)
        table = found.table
        assert (row["messages"], row["bound"]) == (len(table.start), table.bound)
        assert (row["cycles"], row["why"]) == (table.cycles, why(table, table.moves, None))
        assert row["code_most"] == found.code.max()
        assert row["code_mean"] * row["code_tiles"] == pytest.approx(found.code.sum())


def test_the_pictures_show_who_sends_on_each_lane_in_each_cycle(exe: Executable):
    report = collect(exe)
    longest = sorted(set(report.tables["timetables"]["cycles"]), reverse=True)
    assert report.lanes[0].cycles == longest[0]
    module, names = exe.module_at("exchange"), list(report.tables["supersteps"]["name"])
    compared = 0
    for lanes in report.lanes:
        step = superstep_named(module, names[lanes.supersteps[0]])
        table = exchange_of(module, step, TARGET, order=False).table
        if table.cycles > timetables.COLUMNS:
            continue
        compared += 1
        for side, text in enumerate((lanes.lanes_out, lanes.lanes_in)):
            drawn = np.frombuffer(b64decode(text), np.uint8).reshape(len(lanes.tiles), -1)
            expected = np.zeros((TARGET.tiles, table.cycles), np.int64)
            windows = table.windows
            for lane, message, begin, length in zip(
                windows.lane, windows.message, table.begin, windows.length, strict=True
            ):
                if lane % 2 == side:
                    shade = 1 + table.messages.tile[message] * 254 // (TARGET.tiles - 1)
                    expected[lane // 2, begin : begin + length] = shade
            assert (drawn == expected[list(lanes.tiles)]).all()
    assert compared


def test_a_program_with_too_many_messages_says_so(exe: Executable, monkeypatch: pytest.MonkeyPatch):
    whole = rows_of(collect(exe).tables["timetables"])
    monkeypatch.setattr(timetables, "MOST_LISTED", 1)
    report = collect(exe)
    rows = rows_of(report.tables["timetables"])
    missing = sum(row["cycles"] < 0 for row in rows)
    assert missing > 0
    assert report.absent["timetables"].startswith(f"{missing} of {len(rows)} exchanges have no ")
    assert [row["code_most"] for row in rows] == [row["code_most"] for row in whole]
    assert not report.lanes or missing < len(rows)


def test_a_mesh_has_no_timetables():
    report = collect(compile_model(convolutions(), target="mesh:4"))
    assert report.absent["timetables"].startswith("a mesh has no timetables")
    assert not rows_of(report.tables["timetables"])
