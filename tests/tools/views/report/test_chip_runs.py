"""What each chip does in a run, beside the price of the program."""

from __future__ import annotations

import numpy as np
import pytest

from abele.tools import compile_model
from abele.tools.views.report.chip_runs import PHASES, chip_runs
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.perfetto_trace import trace_bytes
from abele.tools.views.report.plots import timeline_plot

STAGES = """
builtin.module {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = control.repeat 3 (%x) : (tensor<8x8xf32>) -> (tensor<8x8xf32>) {
    ^bb0(%a: tensor<8x8xf32>):
      %1 = func.call @one(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %2 = func.call @two(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      control.yield %2 : tensor<8x8xf32>
    }
    func.return %0 : tensor<8x8xf32>
  }
  func.func @one(%x: tensor<8x8xf32>) -> tensor<8x8xf32>
      attributes {abele.chips = [0 : i64, 1 : i64, 1 : i64]} {
    %0 = nn.softmax %x axis 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    func.return %0 : tensor<8x8xf32>
  }
  func.func @two(%x: tensor<8x8xf32>) -> tensor<8x8xf32>
      attributes {abele.chips = [1 : i64, 1 : i64, 1 : i64]} {
    %0 = nn.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
    func.return %0 : tensor<8x8xf32>
  }
}
"""


@pytest.fixture(scope="module", params=["tiny:8,links.chips=2,links.topology=ladder", "tiny:8"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("stages") / "stages.mlir"
    text = STAGES if "chips" in request.param else STAGES.replace("[1 : i64, 1", "[0 : i64, 1")
    path.write_text(text)
    return collect(compile_model(path, request.param))


def test_runs_of_chips_have_no_gaps_and_the_cycles_of_the_price(report: Report):
    chips, runs = report.tables["chips"], chip_runs(report)
    assert len(runs) == len(chips["chip"])
    for chip, run in enumerate(runs):
        assert np.array_equal(run.arrives[1:], run.end[:-1])
        assert (run.arrives <= run.start).all()
        assert np.array_equal(run.end - run.start, run.sync + run.exchange + run.compute)
        assert run.end[-1] == chips["end"][chip]
        for name in PHASES:
            assert getattr(run, name).sum() == chips[f"{name}_cycles"][chip]
        waits = (run.start - run.arrives).sum() + report.program["cycles"] - run.end[-1]
        assert waits == chips["waiting_cycles"][chip]
    assert max(run.end[-1] for run in runs) == report.program["cycles"]


def test_pictures_and_traces_show_the_chips_side_by_side(report: Report):
    assert "compute" in timeline_plot(report).svg
    pytest.importorskip("perfetto")
    trace = trace_bytes(report)
    assert (b"supersteps, chip 1" in trace) == (len(chip_runs(report)) > 1)


def test_a_report_accounts_for_every_cycle_of_the_critical_path_once(report: Report):
    total = report.program["cycles"]
    assert np.sum(report.tables["tree"]["exclusive_cycles"]) == total
    assert np.sum(report.tables["supersteps"]["critical_cycles"]) == total
