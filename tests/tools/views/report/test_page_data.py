"""What the page keeps of supersteps and tiles."""

import json
import re
import zlib
from base64 import b64decode

import pytest
from some_models import convolutions

from abele.tools.driver.compile import compile_model
from abele.tools.views.report import page
from abele.tools.views.report.collect import Report, collect


@pytest.fixture(scope="module")
def report() -> Report:
    return collect(compile_model(convolutions(), target="tiny:8"))


def data_of(text: str) -> dict:
    (packed,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', text)
    return json.loads(zlib.decompress(b64decode(packed)))


def test_a_small_program_has_every_tile(report: Report):
    work = data_of(page.page_text(report))["work"]
    assert (work["tiles"], work["every"]) == (list(range(8)), 1)
    steps = report.tables["supersteps"]
    rows = [work["compute"][k : k + 8] for k in range(0, len(work["compute"]), 8)]
    assert [max(row) for row in rows] == list(steps["compute_cycles"])


def test_a_large_program_has_some_tiles_and_says_so(
    report: Report, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(page, "MOST_CELLS", 8 * len(report.tables["supersteps"]["name"]) // 3)
    work = data_of(page.page_text(report))["work"]
    assert work["every"] > 1
    assert 1 < len(work["tiles"]) < 8
    critical = set(map(int, report.tables["supersteps"]["critical_tile"]))
    assert critical <= set(work["tiles"])
