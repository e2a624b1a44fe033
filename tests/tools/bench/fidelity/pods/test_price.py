"""Prices of updates on pods, of models that compile at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from abele.backends.target import resolve_target
from abele.tools.bench.fidelity.pods import price
from abele.tools.bench.fidelity.pods.rows import Row
from abele.tools.bench.fidelity.pods.stage import Stage
from abele.tools.bench.fidelity.pods.step import Step, step_of_stage
from abele.tools.bench.fidelity.pods.sums import sum_cycles
from abele.tools.bench.fidelity.units import Unclear

FOUR = "tiny:64,links.chips=4,links.topology=ladder"
IMAGES = Row("resnet50-x", "resnet50", resolve_target(FOUR), 8, 10, 4, 1.0)
BERT = Row("bert-x", "bert", resolve_target(FOUR), 4, 10, 2, 1.0)


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The steps that are asked for; those of up to 6 samples fit."""
    asked: list[object] = []

    def step(function: object, *arguments: object) -> Step:
        asked.append(arguments[:-1])
        size = arguments[1] if function is price.step_of_images else arguments[0].batch  # type: ignore[attr-defined]
        assert isinstance(size, int)
        return Step(size <= 6, 100 * size + 30, 30, 40 * size, 5 * size, 7)

    monkeypatch.setattr(price, "_step", step)
    monkeypatch.setattr(price, "_sums", lambda *_: 1000)
    return asked


def test_images_of_micro_batches_and_one_update_and_one_sum(steps: list[object]):
    found = price.price_row(IMAGES)
    assert steps == [("resnet50", 8), ("resnet50", 6)]
    assert (found.micro_batch, found.sample) == (6, 100.0)
    assert found.cycles == 100 * 80 + 30 + 1000
    assert found.left_out == {"host": 5 * 80}


def test_a_pipeline_takes_its_slowest_stage_in_every_turn_and_fills_and_flushes(
    monkeypatch: pytest.MonkeyPatch,
):
    def step(_: object, stage: Stage, __: str) -> Step:
        return Step(True, 1000 * stage.feed_forwards + 30, 30, 300, 0, 7)

    monkeypatch.setattr(price, "_step", step)
    monkeypatch.setitem(price.PRICES, "bert", (BERT.stages, price.PRICES["bert"][1]))
    found = price.price_row(BERT)
    # Two stages forward and two backward: 10 + 4 - 1 turns.
    assert found.samples == 4000 * 13
    assert found.left_out["the forward pass, computed again"] == 300 * 13
    # The stages of a replica are the chips of a row.
    seconds = 13 * (2 * 4 * 512 * 1024 / 58.4e9 + 1458e-9)
    assert found.left_out["between stages"] == pytest.approx(seconds * 1.325e9)


def test_a_step_that_never_fits_is_unclear():
    with pytest.raises(Unclear, match="no micro-batch of 80, 60, 40, 20 fits tiny:16"):
        price.price_row(replace(IMAGES, micro_batch=80))


@pytest.mark.parametrize("row", [BERT, replace(IMAGES, replicas=2)])
def test_a_replica_of_other_chips_than_its_steps_are_made_for_is_unclear(row: Row):
    with pytest.raises(Unclear, match=r"2 chips a replica; .* is priced for [18]"):
        price.price_row(row)


def test_sums_grow_with_elements_and_with_replicas():
    few = sum_cycles(2, 1, 5_000, "tiny:32,links.chips=2,links.topology=ladder")
    many = sum_cycles(2, 1, 20_000, "tiny:32,links.chips=2,links.topology=ladder")
    assert few < many < 4 * few
    assert sum_cycles(4, 1, 20_000, FOUR) > many
    # Two stages sum their gradients at once.
    assert sum_cycles(2, 2, 20_000, FOUR) < 2 * sum_cycles(4, 1, 20_000, FOUR)


@pytest.mark.large
def test_a_stage_trains_attentions_and_feed_forwards_in_turns():
    small = Stage(2, 1, 2, 4, 8, 2, 16)
    assert small.kinds == "afa"
    assert replace(small, attentions=1, feed_forwards=2).kinds == "faf"
    found = step_of_stage(small, "tiny:4")
    attention, feed_forward, first = 4 * (64 + 8) + 16, 2 * 128 + 16 + 8 + 16, 32
    assert found.weights == 2 * attention + feed_forward + first
    assert found.fits
    less = step_of_stage(replace(small, attentions=1), "tiny:4")
    assert less.samples < found.samples
