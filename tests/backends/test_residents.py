"""What stays on the tiles is what lies at equal places."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.residents import overlapping

RECTANGLES = st.lists(
    st.tuples(*[st.integers(0, 6)] * 4).map(
        lambda r: (min(r[:2]), max(r[:2]) + 1, min(r[2:]), max(r[2:]) + 1)
    ),
    max_size=6,
)


@given(RECTANGLES, RECTANGLES)
def test_rectangles_overlap_that_share_a_byte_of_a_tile(
    some: list[tuple[int, int, int, int]], others: list[tuple[int, int, int, int]]
):
    def cells(rectangle: tuple[int, int, int, int]) -> set[tuple[int, int]]:
        first, last, low, high = rectangle
        return {(tile, byte) for tile in range(first, last) for byte in range(low, high)}

    taken = set[tuple[int, int]]().union(*map(cells, others))
    arrays = (np.array(each, np.int64).reshape(-1, 4) for each in (some, others))
    assert overlapping(*arrays).tolist() == [bool(cells(each) & taken) for each in some]
