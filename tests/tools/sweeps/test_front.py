import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.tools.sweeps.front import unbeaten

POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)


@given(POINTS)
def test_a_point_is_on_the_front_if_no_other_is_as_good_and_better_in_one(
    points: list[tuple[int, int]],
):
    values = np.array(points, np.float64).reshape(len(points), 2)
    expected = [
        not any(x <= a and y <= b and (x, y) != (a, b) for x, y in points) for a, b in points
    ]
    assert unbeaten(values).tolist() == expected
