"""Rates of products whose pattern changes, beside published ones."""

import pytest

from abele.tools.workshop import changing_patterns as bench


def test_each_row_has_two_predictions_and_their_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(bench, "RATES", ((256, 16, 16, 5.3),))
    monkeypatch.setattr(bench, "SPEED_UPS", ())
    bench.changing_patterns([64], "bow")
    shown = capsys.readouterr().out
    assert "256" in shown
    assert "1/16" in shown
    assert "5.3" in shown
    assert shown.count("%") == 4


def test_more_blocks_of_a_matrix_take_longer_and_at_a_higher_rate():
    target = bench.named_target("bow")
    few, many = (bench._rates(512, share, 16, "float16", [64], target) for share in (1 / 16, 1 / 4))
    assert all(one < other < 4 * one for one, other in zip(few, many, strict=True))
