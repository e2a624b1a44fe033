from itertools import product
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.reference.gather import boxes, fill_value, gathered, whole_box
from abele.ir.geometry.space import AccessMap, AxisMap

SIZES = st.sampled_from([1, 2, 3, 5])


@st.composite
def axis_maps(draw, rank: int):
    named = draw(st.lists(st.integers(0, rank - 1), max_size=2, unique=True))
    coefficients = st.sampled_from([-2, -1, 1, 2, 3])
    return AxisMap(
        draw(SIZES),
        tuple((d, draw(coefficients)) for d in named),
        draw(st.integers(-3, 5)),
        draw(st.sampled_from([1, 1, 2, 3])),
        draw(st.sampled_from(["exact", "floor"])),
        draw(st.sampled_from(["fill", "edge", "reflect", "wrap"])),
    )


@st.composite
def readings(draw):
    sizes = tuple(draw(st.lists(SIZES, min_size=1, max_size=4)))
    axes = tuple(draw(st.lists(axis_maps(len(sizes)), max_size=3)))
    starts = tuple(draw(st.integers(0, n - 1)) for n in sizes)
    box = tuple((a, draw(st.integers(a + 1, n))) for a, n in zip(starts, sizes, strict=True))
    return AccessMap(axes, draw(st.sampled_from([0.0, -7.0, float("-inf")]))), box


def one_index(axis: AxisMap, point: tuple[int, ...]) -> int | None:
    """The definition, in whole numbers, one point at a time."""
    numerator = axis.offset + sum(a * point[d] for d, a in axis.terms)
    index, rest = divmod(numerator, axis.divisor)
    if rest and axis.division == "exact":
        return None
    n = axis.size
    if axis.outside == "fill":
        return index if 0 <= index < n else None
    if axis.outside == "edge":
        return min(max(index, 0), n - 1)
    if axis.outside == "wrap":
        return index % n
    while not 0 <= index < n:
        index = 0 if n == 1 else -index if index < 0 else 2 * (n - 1) - index
    return index


@given(readings())
def test_gathering_reads_the_elements_of_the_map_point_by_point(reading):
    access, box = reading
    tensor = np.arange(prod(access.shape), dtype=np.float64).reshape(access.shape) + 10
    got = gathered(tensor, access, box)
    full = np.broadcast_to(got, [b - a for a, b in box])
    for point in product(*(range(a, b) for a, b in box)):
        at = [one_index(axis, point) for axis in access.axes]
        need = access.fill if None in at else tensor[tuple(at)]
        assert full[tuple(p - a for p, (a, _) in zip(point, box, strict=True))] == need
    for d in range(len(box)):
        if d not in access.dims():
            assert got.shape[d] == 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 50))
def test_boxes_cover_every_point_once_and_are_small(sizes, elements):
    seen = np.zeros(sizes, int)
    for box in boxes(sizes, [list(range(len(sizes)))], elements):
        assert prod(b - a for a, b in box) <= elements
        seen[tuple(slice(*pair) for pair in box)] += 1
    assert (seen == 1).all()


def test_a_space_without_points_has_no_box():
    assert list(boxes([3, 0], [[0, 1]], 10)) == []


def test_a_tensor_without_elements_reads_as_fill():
    access = AccessMap((AxisMap(0, ((0, 1),), outside="fill"),), 4.0)
    assert gathered(np.zeros(0), access, whole_box([3])).tolist() == [4.0] * 3


def test_an_infinite_fill_is_the_largest_a_dtype_holds():
    assert fill_value(float("-inf"), np.dtype(np.int8)) == -128
    assert fill_value(float("inf"), np.dtype(np.uint16)) == 65535
    assert fill_value(float("-inf"), np.dtype(bool)) is False
    assert fill_value(float("-inf"), np.dtype(np.float16)) == float("-inf")
