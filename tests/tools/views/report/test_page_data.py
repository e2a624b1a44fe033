"""What the page keeps of supersteps and tiles."""

import json
import re
import zlib
from base64 import b64decode

import pytest
from some_models import convolutions
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.driver.compile import compile_model
from abele.tools.views.report import page
from abele.tools.views.report.collect import Report, collect


@pytest.fixture(scope="module")
def report() -> Report:
    return collect(compile_model(convolutions(), target="tiny:8"))


def data_of(text: str) -> dict:
    (packed,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', text)
    return json.loads(zlib.decompress(b64decode(packed)))


def test_no_page_names_a_folder_of_the_host(tmp_path):
    source = tmp_path / "net.mlir"
    place = tmp_path / "framework" / "net.py"
    source.write_text(LOCATED.replace("PLACE", str(place)))
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["report", str(source), "-o", str(out), "--target", "tiny:4", "--passes"]
    )
    assert done.exit_code == 0, done.output
    pages = [out / "index.html", out / "passes" / "index.html"]
    assert all(each.is_file() for each in pages)
    for path in out.rglob("*.*"):
        found = path.read_bytes()
        if path in pages:
            found += json.dumps(data_of(found.decode())).encode()
        assert str(tmp_path).encode() not in found, path


LOCATED = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes
    {arg_names = ["x"], result_names = ["y"]} {
  %1 = nn.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("clamp"("PLACE":12:3))
  func.return %1 : tensor<4x8xf32> loc("main")
} loc("main")
"""


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
