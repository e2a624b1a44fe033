import hypothesis.strategies as st
import numpy as np
import pytest
from block_sparse import densified
from hypothesis import given

from abele.ir.geometry.block_lists import BlockLists, Tier, from_front
from abele.ir.support.errors import InputError


@st.composite
def problems(draw):
    """Buckets for a number of blocks, and a list of blocks that may or may not fit."""
    bands, parts = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 3]))
    shape = bands * draw(st.integers(1, 3)), parts * draw(st.integers(1, 3))
    lists = BlockLists.planned(
        shape, (bands, parts), draw(st.integers(0, 40)), draw(st.sampled_from([0.0, 0.3, 1.0]))
    )
    rng, count = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(0, 40))
    rows, columns = (rng.integers(-n, n, count) for n in shape)
    return lists, rng.integers(1, 99, (count, 1, 2)), rows, columns


@given(problems())
def test_buckets_hold_each_block_once_or_the_capacity_in_the_message_has_room(problem):
    lists, *blocks = problem
    try:
        tiers = lists.encode(*blocks)
    except InputError as error:
        capacity = int(str(error).split("need capacity ")[1].split()[0])
        buckets = lists.bands, lists.parts
        larger = BlockLists.planned(lists.shape, buckets, capacity, lists.oversize)
        held = larger.decode(larger.encode(*blocks))
    else:
        held = lists.decode(tiers)
    assert sorted(held[0][:, 0, 0]) == sorted(blocks[0][:, 0, 0])
    np.testing.assert_array_equal(densified(*held, lists.shape), densified(*blocks, lists.shape))


@given(problems())
def test_each_block_is_in_its_bucket_or_spills(problem):
    lists, values, rows, columns = problem
    if len(rows) > lists.room:
        return
    # In one place, they fill one bucket, and nothing spills.
    rows[:], columns[:] = lists.shape[0] - 1, lists.shape[1] - 1
    (_, first, _), *spilled = lists.encode(values, rows, columns)
    held = first < lists.shape[0] // lists.bands
    assert held[-1, -1].sum() == held.sum() == len(rows)
    assert all((each[1] == lists.shape[0]).all() for each in spilled)


def test_blocks_without_room_in_their_bucket_spill():
    lists = BlockLists((4, 4), 2, 2, 2, 3)
    assert lists.tiers == (Tier(2, 2, 2), Tier(1, 1, 3))
    ones = np.ones((5, 1, 1))
    (_, rows, _), (_, spilled, across) = lists.encode(ones, np.full(5, 3), np.full(5, 1))
    np.testing.assert_array_equal(rows, [[[2, 2], [2, 2]], [[1, 1], [2, 2]]])
    np.testing.assert_array_equal(spilled, [[[3, 3, 3]]])
    np.testing.assert_array_equal(across, [[[1, 1, 1]]])


@pytest.mark.parametrize("buckets", [(1, 1), (16, 8), (64, 4), (256, 1)])
def test_random_patterns_of_the_capacity_fit(buckets):
    lists = BlockLists.planned((256, 256), buckets, 4096, 0.3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        at = rng.choice(1 << 16, 4096, replace=False)
        lists.encode(np.zeros((4096, 1, 1), np.int8), at // 256, at % 256)
    rows, columns = lists.sample(rng)
    assert abs(len(rows) - 4096) <= lists.bands * lists.parts
    lists.encode(np.zeros((len(rows), 1, 1)), rows, columns)


def test_one_bucket_has_no_room_for_what_cannot_spill():
    assert BlockLists.planned((8, 8), (1, 1), 10, 0.0).tiers == (Tier(1, 1, 10),)
    assert BlockLists.planned((8, 8), (2, 2), 0, 0.3).most == 0


@pytest.mark.parametrize(
    ("values", "rows", "columns", "message"),
    [
        ((2, 1, 1), [0, 4], [0, 0], "row 4 of block 1; the matrix has 4 rows of blocks"),
        ((2, 1, 1), [0, 0], [-5, 0], "column -5 of block 0; the matrix has 4 columns of blocks"),
        ((2, 1, 1), [0], [0], r"rows \[1\] and columns \[1\]; need a row and a column for each"),
        (
            (4, 1, 1),
            [0, 0, 3, 1],
            [0, 0, 0, 1],
            r"4 blocks does not fit: bucket \[0, 0\] has 3 blocks and room for 1, and 2 blocks "
            r"spill, with room for 1; need capacity \d+ with buckets \[2, 2\]",
        ),
    ],
)
def test_a_pattern_that_does_not_fit_is_refused(values, rows, columns, message):
    lists = BlockLists((4, 4), 2, 2, 1, 1)
    with pytest.raises(InputError, match=message):
        lists.encode(np.zeros(values), np.array(rows), np.array(columns))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_an_index_of_any_type_is_compared_as_it_is(dtype):
    most = np.iinfo(dtype).max
    with pytest.raises(InputError, match=f"row {most} of block 1; the matrix has 100 rows"):
        from_front(np.array([99, most], dtype), 100, "row")
    np.testing.assert_array_equal(from_front(np.array([0, 99], dtype), 1000, "row"), [0, 99])
