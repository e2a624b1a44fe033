"""The report of a program on several chips."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_models import convolutions

from abele.dialects.exchange import VariableOp
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.page import page_text
from abele.tools.views.report.text import report_lines

TEXT = """
!x = tensor<ROWSx64xf16>
!w = tensor<64x64xf16>
nn.state @kept : tensor<64x64xf16> = <[WEIGHTS] : tensor<64x64xf16>>
func.func @main(%x: !x, %v: !w) -> !x attributes {arg_names = ["x", "v"]} {
  %w = nn.load @kept : !w
  %0 = nn.matmul %x, %w : (!x, !w) -> !x loc("fc1")
  %1 = nn.softmax %0 axis 0 : (!x) -> !x loc("softmax")
  %2 = nn.matmul %1, %v : (!x, !w) -> !x loc("fc2")
  func.return %2 : !x
}
"""

FAST = (
    "links.rung_gbytes=1e6,links.rail_gbytes=1e6,links.hop_ns=0,links.first_word_ns=0,"
    "links.topology="
)
"""Links that cost little, so that small programs use all chips."""


def compiled(folder: Path, rows: int, target: str) -> Executable:
    path = folder / "net.mlir"
    weights = ", ".join(["0.5"] * 64 * 64)
    path.write_text(TEXT.replace("ROWS", f"{rows}").replace("WEIGHTS", weights))
    return compile_model(path, target, cache=False)


@pytest.fixture(scope="module")
def exe(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    # With seven tiles a chip, plans leave some idle, so tiles of a variable are not neighbours.
    target = f"tiny:28,{FAST}ladder,links.chips=4"
    return compiled(tmp_path_factory.mktemp("four"), 500, target)


@pytest.fixture(scope="module")
def report(exe: Executable) -> Report:
    return collect(exe)


def column(report: Report, table: str, name: str) -> np.ndarray:
    return np.asarray(report.tables[table][name])


def data_of(report: Report) -> dict[str, Any]:
    (packed,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', page_text(report))
    return json.loads(zlib.decompress(b64decode(packed)))


def test_chips_send_what_others_receive_and_what_supersteps_move(report: Report):
    total = report.program["crossing_bytes"]
    assert total > 0
    assert column(report, "crossings", "bytes").sum() == total
    assert column(report, "chips", "sent_bytes").sum() == total
    assert column(report, "chips", "received_bytes").sum() == total
    steps = column(report, "supersteps", "crossing_bytes") * column(report, "supersteps", "times")
    assert steps.sum() == total
    assert (
        column(report, "crossings", "source") != column(report, "crossings", "destination")
    ).all()


def test_no_chip_works_longer_than_the_run_and_waiting_is_the_rest(report: Report):
    names = ("compute_cycles", "exchange_cycles", "sync_cycles", "waiting_cycles")
    assert (sum(column(report, "chips", n) for n in names) == report.program["cycles"]).all()
    assert (column(report, "chips", "compute_cycles") > 0).all()


def test_chips_hold_what_their_tiles_hold(exe: Executable, report: Report):
    for name in ("always_live", "live_now"):
        assert column(report, "chips", name).sum() == column(report, "tiles", name).sum()
    assert column(report, "chips", "max_tile_bytes").max() == exe.memory.max_tile_bytes
    assert column(report, "chips", "tiles_used").sum() == exe.memory.tiles_used
    weights = column(report, "placements", "resident_bytes").sum()
    kept = column(report, "variables", "kind") != "value"
    assert weights == column(report, "variables", "bytes")[kept].sum() > 0


def test_operations_work_on_chips_as_their_supersteps_do(exe: Executable, report: Report):
    work = column(report, "placements", "tile_cycles").sum()
    tiles = column(report, "superstep_tiles", "compute_cycles")
    times = column(report, "supersteps", "times")[column(report, "superstep_tiles", "superstep")]
    assert work == (tiles * times).sum()


def test_variables_with_tiles_on_several_chips_say_which(exe: Executable, report: Report):
    ranges, apart = (column(report, "variables", name) for name in ("ranges", "apart"))
    first, tiles = (column(report, "variables", name) for name in ("first_tile", "tiles"))
    placed = [op for op in exe.module_at("exchange").walk() if isinstance(op, VariableOp)]
    assert len(placed) == len(first)
    for k, op in enumerate(placed):
        begins = first[k] + apart[k] * np.arange(ranges[k])
        length = tiles[k] // ranges[k]
        assert op.placed.tiles.spans == tuple((b, b + length) for b in begins.tolist())
    assert ranges.max() == 4


def test_the_command_says_what_moves_between_chips(report: Report):
    (line,) = [each for each in report_lines(report, None) if each.startswith("4 chips")]
    assert f"{report.program['crossing_bytes']:,} bytes between them; link " in line


def test_the_report_of_one_chip_has_no_links():
    found = collect(compile_model(convolutions(), "tiny:4", cache=False))
    for name in ("chip_links", "crossings", "placements"):
        assert not len(next(iter(found.tables[name].values())))
    assert len(found.tables["chips"]["chip"]) == 1
    assert not [each for each in report_lines(found, None) if "chips" in each]


def test_nothing_in_a_page_grows_with_the_pairs_of_chips(tmp_path: Path):
    many = collect(compiled(tmp_path, 8192, f"tiny:128,{FAST}torus,links.chips=64"))
    assert len(many.tables["chips"]["chip"]) == 64
    data = data_of(many)
    assert data["chips"]["group"] == 2
    assert sum(data["chips"]["pairs"]) == many.program["crossing_bytes"] > 0
    lengths = [len(values) for values in data["chips"].values() if isinstance(values, list)]
    operations = len(many.tables["operations"]["name"])
    assert max(lengths) <= max(32 * 32, 32 * operations)
    assert len(data["tables"]["chip_links"]["link"]) == 3 * 64
    assert "crossings" not in data["tables"]
