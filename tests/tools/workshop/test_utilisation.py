"""Utilisation of the peak, by layer: shares of one machine, layers alike in one row."""

import pytest

from abele.tools.driver.request import Request
from abele.tools.views.planning.plan import plan_model
from abele.tools.workshop import utilisation as bench
from abele.tools.workshop.planning import resnet


def test_a_product_by_itself_is_under_its_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "BERT", {"attention": (16, 64, 32)})
    ((name, times, plan),) = bench.products("tiny:8")
    assert (name, times) == ("attention", 1)
    assert plan.space == "m=16 n=32 k=64"
    assert 0 < plan.utilisation < 1


def test_equal_layers_share_a_row_with_their_count():
    proto = resnet((2, 2), side=32, width=8, classes=10)
    convolutions = sum(node.op_type in ("Conv", "Gemm") for node in proto.graph.node)
    rows = list(bench._alike(plan_model(Request(proto, "tiny:16", passes="nn")).plan.operators))
    assert sum(times for _, times, _ in rows) == convolutions
    assert len(rows) < convolutions


def test_the_total_utilisation_is_weighted_by_cycles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "BERT", {"one": (16, 64, 32), "two": (64, 64, 64)})
    rows = list(bench.products("tiny:8"))
    table = bench._table("t", rows)
    whole = list(table.columns[-2].cells)[-1]
    work = sum(each.utilisation * each.cycles for _, _, each in rows)
    assert whole == f"{work / sum(each.cycles for _, _, each in rows):.1%}"
