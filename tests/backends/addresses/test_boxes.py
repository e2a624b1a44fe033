import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from abele.backends.addresses import boxes
from abele.backends.addresses.boxes import Boxes, meetings

RANGE = st.tuples(st.integers(0, 6), st.integers(0, 3))


def some_boxes(draw: st.DrawFn) -> Boxes:
    spans = draw(st.lists(st.tuples(RANGE, RANGE, RANGE), max_size=12))
    table = np.array(spans, np.int64).reshape(-1, 3, 2)
    low = table[:, :, 0].T
    return Boxes(low, low + table[:, :, 1].T)


@st.composite
def pairs_of_boxes(draw: st.DrawFn) -> tuple[Boxes, Boxes]:
    return some_boxes(draw), some_boxes(draw)


@settings(max_examples=60)
@given(pairs_of_boxes(), st.sampled_from([1, 5, 1 << 20]))
def test_exactly_the_boxes_that_share_a_point_meet(both: tuple[Boxes, Boxes], most: int):
    left, right = both
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "MOST_PAIRS", most)
        found = [(i, j) for ii, jj in meetings(left, right) for i, j in zip(ii, jj, strict=True)]

    def points(each: Boxes, i: int) -> set[tuple[int, ...]]:
        spans = [range(a, b) for a, b in zip(each.low[:, i], each.high[:, i], strict=True)]
        return {(x, y, z) for x in spans[0] for y in spans[1] for z in spans[2]}

    wanted = [
        (i, j)
        for i in range(len(left))
        for j in range(len(right))
        if points(left, i) & points(right, j)
    ]
    assert sorted(found) == wanted


def test_many_boxes_that_lie_apart_need_few_candidates():
    """Each of 20,000 variables has bytes of its own at one time, or a time of its own."""
    n = 20_000
    at, one = np.arange(n), np.zeros(n, np.int64)
    by_time = Boxes(np.stack((at, one, one)), np.stack((at + 1, one + 8, one + 4)))
    by_bytes = Boxes(np.stack((one, at, one)), np.stack((one + n, at + 1, one + 4)))
    for each in (by_time, by_bytes):
        counts = np.stack([boxes._candidates(each, each, axis) for axis in range(boxes.AXES)])
        assert counts.min(axis=0).sum() == n
        found = sum(len(i) for i, _ in meetings(each, each))
        assert found == n
