"""Bounds on the error of every family of the calibration, and what a prediction may not see."""

from dataclasses import replace
from functools import lru_cache

import pytest
from lengths import large

from abele.backends.target import resolve_target
from abele.tools.bench.fidelity.cases import (
    Convolution,
    Elementwise,
    Product,
    SparseProduct,
    Vertex,
)
from abele.tools.bench.fidelity.predict import Statistics, by_family, predict, predictions
from abele.tools.bench.fidelity.rows import CALIBRATION, read_rows
from abele.tools.bench.fidelity.timed import with_timetables
from abele.tools.bench.fidelity.units import Unclear

BOW = resolve_target("bow")


@lru_cache
def calibration(*families: str):
    rows, _ = read_rows(CALIBRATION)
    found, skipped = predictions([each for each in rows if each.family in families])
    assert skipped == []
    return found


@pytest.mark.parametrize(
    ("family", "median", "worst"),
    [
        ("amp", 0.005, 0.02),
        ("vector", 0.03, 0.03),
        ("triad", 0.03, 0.03),
        ("stencil", 0.07, 0.07),
        ("stencil across chips", 0.15, 0.26),
        # One constant of a phase serves all schedules.
        ("schedule", 0.001, 0.005),
        large("gemm", 0.05, 0.2),
    ],
)
def test_predictions_meet_the_calibration(family, median, worst):
    errors, _ = by_family(calibration(family))[family]
    assert errors.median <= median
    assert errors.worst <= worst


def test_timetables_price_the_exchanges_whose_messages_are_known_and_nothing_else():
    rows, _ = read_rows(CALIBRATION)
    named = ("gbphase_float_1ipu_exchange", "gbphase_float_1ipu_compute", "scaleadd_64")
    some = [each for each in rows if each.name in named]
    bound, timed = (
        {each.measurement.name: each.cycles for each in predictions(some, timetables=timetables)[0]}
        for timetables in (False, True)
    )
    changed = {name for name in bound if timed[name] != bound[name]}
    assert changed == {"gbphase_float_1ipu_exchange"}
    # The rim of a box of 45 x 46 points of 4 words, a word a cycle in a perfect order, and what a
    # phase takes beside that and its sync.
    rim = 4 * 2 * (45 + 46 + 2)
    assert timed["gbphase_float_1ipu_exchange"] == rim + 250 - 118


def test_a_product_is_priced_by_the_timetables_of_its_operands_and_partial_sums():
    target = resolve_target("mk2:16")
    case = Product(64, 256, 16, 1, "float16", "float32")
    bound = predict(case, target)
    timed = predict(case, with_timetables(target))
    assert {name for name in bound if timed[name] != bound[name]} == {"exchange"}
    assert 0.5 * bound["exchange"] < timed["exchange"] < 4 * bound["exchange"]


def test_the_exchange_between_chips_has_a_price_of_its_own():
    phases = {each.measurement.name: each for each in calibration("bsp across chips")}
    assert abs(phases["gbphase_half4_16ipu_globExchange"].error) < 0.01
    assert abs(phases["gbphase_half4_16ipu_exchange"].error) < 0.2
    assert abs(phases["gbphase_half4_16ipu_sync"].error) < 0.3


def test_predicted_phases_of_a_stencil_match_except_for_one_sync():
    # One program was seen to take 64 cycles to meet, another 117; no published figure tells why.
    errors = {each.measurement.name: abs(each.error) for each in calibration("bsp")}
    assert errors.pop("gbphase_half4_1ipu_sync") < 0.85
    assert max(errors.values()) < 0.15


def test_only_fitted_constants_differ_when_nothing_is_calibrated():
    for each in calibration("amp", "vector", "triad", "bsp", "stencil"):
        fitted = each.phases.get("fitted", 0)
        assert sum(each.without.values()) == pytest.approx(each.cycles - fitted)
        assert fitted == 0 or each.measurement.family == "vector"
    assert BOW.uncalibrated() == replace(BOW, fitted=replace(BOW.fitted, bracket_cycles=0))


def test_a_rate_rises_with_the_work_and_with_narrower_types():
    def cycles(n: int, dtype: str, partials: str) -> float:
        return predict(Vertex(n, 64, 64, 1, 1, dtype, partials), BOW)["compute"]

    assert cycles(64, "float16", "float16") < cycles(128, "float16", "float16")
    assert cycles(64, "float16", "float16") < cycles(64, "float16", "float32")
    assert cycles(64, "float16", "float32") < cycles(64, "float32", "float32")


def test_a_case_without_a_codelet_is_reported():
    with pytest.raises(Unclear, match="bow: no codelet"):
        predict(Vertex(64, 64, 64, 1, 1, "int32", "int32"), BOW)


def test_small_programs_of_every_kind_are_planned():
    target = resolve_target("mk2:16")
    product = predict(Product(24, 40, 16, 2, "float16", "float32"), target)
    image = Convolution(
        1, 8, 16, 1, (14, 14), (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), "float16", "float32"
    )
    convolution = predict(image, target)
    for found in (product, convolution):
        assert found["compute"] > 0
        assert found["sync"] >= target.exchange.sync_cycles
    with pytest.raises(Unclear, match="no codelet for Convolution.*float8_e4m3fn"):
        predict(replace(image, operand="float8_e4m3fn"), target)


def test_a_sparse_product_costs_less_the_fewer_blocks_there_are():
    def cycles(density: float, *, dynamic: bool = False, block: int = 16) -> float:
        case = SparseProduct(4096, 4096, 256, block, density, dynamic, "float16", "float16")
        return sum(predict(case, BOW).values())

    assert cycles(1 / 16) < cycles(1 / 8) < cycles(1 / 2)
    assert cycles(1 / 8) < cycles(1 / 8, dynamic=True)


def test_an_addition_in_place_starts_later():
    apart = Elementwise("add", 2, 1024, "float32")
    starts = [sum(predict(case, BOW).values()) for case in (apart, replace(apart, in_place=True))]
    assert starts[1] - starts[0] == 6 * (58 - 29)


def test_statistics_are_errors_of_actual_rows():
    found = Statistics.of([0.01, -0.02, 0.5])
    assert (found.rows, found.median, found.p90, found.worst) == (3, 0.02, 0.5, 0.5)
