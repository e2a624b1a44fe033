import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.space import (
    AccessMap,
    AxisMap,
    Dim,
    Space,
    can_split_unevenly,
    identity_map,
    split_reduction,
)


def dot(n: int, m: int) -> Space:
    """Row sums of an [m, n] matrix."""
    dims = (Dim("m", m), Dim("k", n, "reduction"))
    return Space(dims, (identity_map((0, 1), (m, n)),), (identity_map((0,), (m,)),))


@pytest.mark.parametrize(
    ("outside", "expected"),
    [
        ("fill", [-1, -1, 0, 1, 2, -1]),
        ("edge", [0, 0, 0, 1, 2, 2]),
        ("reflect", [2, 1, 0, 1, 2, 1]),
        ("wrap", [1, 2, 0, 1, 2, 0]),
    ],
)
def test_indices_outside_a_tensor_follow_their_rule(outside: str, expected: list[int]):
    axis = AxisMap(3, ((0, 1),), outside=outside)  # pyright: ignore
    assert axis.resolve(np.arange(-2, 4)).tolist() == expected


@pytest.mark.parametrize("outside", ["none", "fill", "edge", "reflect", "wrap"])
def test_an_axis_of_no_elements_has_no_index(outside: str):
    axis = AxisMap(0, ((0, 1),), offset=-1, outside=outside)
    assert axis.resolve(np.arange(-2, 4)).tolist() == [-1] * 6


def test_exact_division_skips_numerators_that_it_does_not_divide():
    exact = AxisMap(3, ((0, 1),), divisor=2, division="exact", outside="fill")
    floored = AxisMap(3, ((0, 1),), divisor=2, outside="fill")
    assert exact.resolve(np.arange(6)).tolist() == [0, -1, 1, -1, 2, -1]
    assert floored.resolve(np.arange(6)).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_space_rejects_indices_without_a_rule():
    with pytest.raises(ValueError, match=r"operand 0, axis 0: reaches indices -1\.\.2 of 4"):
        Space(
            (Dim("y", 4),),
            (AccessMap((AxisMap(4, ((0, 1),), -1),)),),
            (identity_map((0,), (4,)),),
        )


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 3))
def test_splitting_a_reduction_leaves_every_element_in_one_partial(n: int, parts: int, m: int):
    block = -(-n // parts)
    if parts > n or (parts - 1) * block >= n:
        with pytest.raises(ValueError, match="parts"):
            split_reduction(dot(n, m), 1, parts, 0.0)
        return
    space = split_reduction(dot(n, m), 1, parts, 0.0)
    assert space.sizes == (m, block, parts)
    assert space.results[0].shape == (parts, m)
    axis = space.operands[0].axes[1]
    points = [sum(c * p[d - 1] for d, c in axis.terms) for p in np.ndindex(block, parts)]
    index = axis.resolve(np.array(points))
    assert sorted(index[index >= 0].tolist()) == list(range(n))


def test_a_reduction_is_split_twice_into_dimensions_with_names_of_their_own():
    space = split_reduction(split_reduction(dot(8, 2), 1, 2, 0.0), 1, 2, 0.0)
    assert [dim.name for dim in space.dims] == ["m", "k", "kp", "kpp"]
    assert space.sizes == (2, 2, 2, 2)


def test_a_window_cannot_be_split_unevenly():
    dims = (Dim("y", 5), Dim("k", 3, "reduction"))
    window = AccessMap((AxisMap(7, ((0, 1), (1, 1))),))
    space = Space(dims, (window,), (identity_map((0,), (5,)),))
    assert not can_split_unevenly(space, 1)
    with pytest.raises(ValueError, match="2 parts do not divide 3"):
        split_reduction(space, 1, 2, 0.0)
