"""The transpose of a random operator, exactly: <A x, g> = <x, A^T g> on integers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.reference import structure_value
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.ir.geometry.transpose import transposed


@st.composite
def axis_maps(draw: st.DrawFn, dims: tuple[Dim, ...]) -> AxisMap:
    terms = tuple(
        (d, draw(st.sampled_from([-3, -2, -1, 1, 1, 1, 2, 3])))
        for d in range(len(dims))
        if draw(st.booleans())
    )
    return AxisMap(
        draw(st.integers(1, 6)),
        terms,
        draw(st.integers(-4, 6)),
        draw(st.sampled_from([1, 1, 1, 2, 3])),
        draw(st.sampled_from(["exact", "floor"])),
        draw(st.sampled_from(["fill", "fill", "edge", "reflect", "wrap"])),
    )


@st.composite
def operators(draw: st.DrawFn) -> Space:
    """Spaces of a product of two operands, with all rules for indices outside."""
    dims = tuple(
        Dim(f"d{i}", draw(st.integers(1, 4)), draw(st.sampled_from(["parallel", "reduction"])))
        for i in range(draw(st.integers(1, 4)))
    )
    operand = AccessMap(tuple(draw(st.lists(axis_maps(dims), min_size=1, max_size=3))))
    other = AccessMap(tuple(draw(st.lists(axis_maps(dims), max_size=2))))
    kept = [d for d, dim in enumerate(dims) if dim.kind == "parallel"]
    result = AccessMap(tuple(AxisMap(dims[d].size, ((d, 1),)) for d in draw(st.permutations(kept))))
    return Space(dims, (operand, other), (result,))


def value(space: Space, function: str, arrays: list[np.ndarray]) -> np.ndarray:
    combiner = "sum" if space.of_kind("reduction") else None
    structure = Structure(space, Body(function, combiner))
    return structure_value(structure, arrays, np.dtype(np.float64), space.results[0].shape)


def transpose_of(space: Space, gradient: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The gradient of the first operand, by the parts of the transpose."""
    total = np.zeros(space.operands[0].shape)
    for part in transposed(space, space.operands[0], (space.results[0], space.operands[1])):
        repeated = np.broadcast_to(gradient, (*part.repeats, *gradient.shape))
        box = value(part.space, "mul", [repeated, other])
        place = tuple(
            slice(start, start + n) for start, n in zip(part.starts, box.shape, strict=True)
        )
        total[place] += box
    return total


def integers(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


@settings(max_examples=100, deadline=None)
@given(operators(), st.integers(0, 100))
def test_the_transpose_of_any_operator_is_its_transpose(space: Space, seed: int):
    x, other = (integers(seed + i, each.shape) for i, each in enumerate(space.operands))
    result = value(space, "mul", [x, other])
    gradient = integers(seed + 7, result.shape)
    back = transpose_of(space, gradient, other)
    assert back.shape == x.shape
    assert (result * gradient).sum() == (x * back).sum()
