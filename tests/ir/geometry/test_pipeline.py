"""Schedules of pipelines, compared with published counts and with every cycle written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.pipeline import SCHEDULES, Pipeline, interleaving_interval


def mirrored(forward: int) -> tuple[int, ...]:
    """The chips of a step of training: each backward stage is on the chip of its forward stage."""
    return (*range(forward), *reversed(range(forward)))


@pytest.mark.parametrize("forward", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    ("schedule", "factor"), [("grouped", 2), ("interleaved", 1), ("sequential", 0)]
)
def test_stashes_are_as_deep_as_published(forward: int, schedule: str, factor: int):
    # Source: popart, pipeline_fifo_inserter.cc: 2 (e - s), e - s and 0 for forward stage s of 0..e.
    pipeline = Pipeline.of(schedule, mirrored(forward))
    last = forward - 1
    depths = [pipeline.slots(s, 2 * last + 1 - s) for s in range(forward)]
    assert depths == [factor * (last - s) for s in range(forward)]


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8, 10])
def test_a_grouped_pipeline_fills_and_flushes_as_published(stages: int):
    # Source: popart, pipelining.md: fill P - 1 cycles, main G - (P - 1), flush P - 1.
    pipeline = Pipeline.of("grouped", range(stages))
    assert pipeline.interval == 1
    assert pipeline.overlap == stages
    assert (pipeline.fill, pipeline.main(20), pipeline.flush) == (
        stages - 1,
        20 - (stages - 1),
        stages - 1,
    )


def test_a_sequential_pipeline_neither_fills_nor_flushes():
    pipeline = Pipeline.of("sequential", mirrored(3))
    assert (pipeline.fill, pipeline.main(20), pipeline.flush) == (0, 20, 0)


def test_an_interleaved_step_of_training_works_on_half_as_many_micro_batches_as_stages():
    assert Pipeline.of("interleaved", mirrored(4)).overlap == 4


def test_stages_with_chips_of_their_own_interleave_in_every_cycle():
    assert interleaving_interval(range(4)) == 1


def test_a_head_on_the_chip_of_the_embedding_takes_turns_with_it():
    # BERT: the stages [embedding, layers, layers, layers, head] on chips [0, 1, 2, 3, 0].
    assert interleaving_interval([0, 1, 2, 3, 0]) == 3
    assert interleaving_interval([0, 1, 2, 3, 0, 0, 3, 2, 1, 0]) == 6


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_an_interleaving_interval_is_the_least_with_which_no_chip_works_twice(chips: list[int]):
    def works_twice(interval: int) -> bool:
        cycles = [
            [chips[s] for s in range(len(chips)) if s % interval == cycle]
            for cycle in range(interval)
        ]
        return any(len(set(cycle)) < len(cycle) for cycle in cycles)

    found = interleaving_interval(chips)
    assert not works_twice(found)
    assert all(works_twice(shorter) for shorter in range(1, found))


@given(st.integers(1, 7), st.sampled_from(SCHEDULES), st.integers(0, 8))
def test_a_stash_holds_what_waits_and_no_more(forward: int, schedule: str, further: int):
    pipeline = Pipeline.of(schedule, mirrored(forward))
    count = pipeline.overlap + further
    for made in range(pipeline.stages):
        for read in range(made + 1, pipeline.stages):
            waiting = [
                sum(
                    made + i * pipeline.interval < cycle <= read + i * pipeline.interval
                    for i in range(count)
                )
                for cycle in range(pipeline.stages + count * pipeline.interval)
            ]
            # The latest value waits outside the stash.
            assert pipeline.slots(made, read) == max(waiting) - 1


@given(st.integers(1, 7), st.sampled_from(SCHEDULES), st.integers(0, 8))
def test_each_stage_works_on_each_micro_batch_once(forward: int, schedule: str, further: int):
    pipeline = Pipeline.of(schedule, mirrored(forward))
    count = pipeline.overlap + further
    rows = pipeline.fill + pipeline.main(count) + pipeline.flush
    for stage in range(pipeline.stages):
        assert sum(pipeline.works(stage, row, count) for row in range(-2, rows + 2)) == count
