"""The transpose of a random operator, exactly: <A x, g> = <x, A^T g> on integers."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.reference import structure_value
from abele.dialects.structured import Body, Structure
from abele.dialects.verify_structure import verify_structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space
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
    pad = draw(st.sampled_from([0.0, 0.0, 2.0]))
    other = AccessMap(tuple(draw(st.lists(axis_maps(dims), max_size=2))), pad)
    kept = [d for d, dim in enumerate(dims) if dim.kind == "parallel"]
    result = AccessMap(tuple(AxisMap(dims[d].size, ((d, 1),)) for d in draw(st.permutations(kept))))
    return Space(dims, (operand, other), (result,))


@st.composite
def lookups(draw: st.DrawFn) -> Space:
    """Spaces of a product of two operands at points that meet relations."""
    space = draw(operators())
    count = draw(st.integers(1, 2))
    axes = [replace(draw(axis_maps(space.dims)), outside="fill") for _ in range(count)]
    indices = [
        AccessMap(tuple(draw(st.lists(axis_maps(space.dims), max_size=2)))) for _ in range(count)
    ]
    relations = tuple(Relation(axis, 2 + i) for i, axis in enumerate(axes))
    return replace(space, operands=(*space.operands, *indices), relations=relations)


def value(space: Space, function: str, arrays: list[np.ndarray]) -> np.ndarray:
    combiner = "sum" if space.of_kind("reduction") or space.relations else None
    structure = Structure(space, Body(function, combiner))
    verify_structure(structure)
    return structure_value(structure, arrays, np.dtype(np.float64), space.results[0].shape)


def transpose_of(space: Space, gradient: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """The gradient of the first operand, by the parts of the transpose."""
    total = np.zeros(space.operands[0].shape)
    for part in transposed(space, space.operands[0], (space.results[0], *space.operands[1:])):
        repeated = np.broadcast_to(gradient, (*part.repeats, *gradient.shape))
        box = value(part.space, "mul", [repeated, *others])
        place = tuple(
            slice(start, start + n) for start, n in zip(part.starts, box.shape, strict=True)
        )
        total[place] += box
    return total


def integers(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


def indices(seed: int, shape: tuple[int, ...], size: int) -> np.ndarray:
    """Legal indices of an axis; half of them count from its end."""
    return np.random.default_rng(seed).integers(-size, size, shape).astype(np.int32)


def check_transpose(space: Space, seed: int) -> None:
    """<A x, g> = <x, A^T g>, which is exact on integers."""
    x, other = (integers(seed + i, each.shape) for i, each in enumerate(space.operands[:2]))
    named = [
        indices(seed + i, space.operands[i].shape, relation.axis.size)
        for i, relation in enumerate(space.relations, 2)
    ]
    result = value(space, "mul", [x, other, *named])
    gradient = integers(seed + 7, result.shape)
    back = transpose_of(space, gradient, [other, *named])
    assert back.shape == x.shape
    assert (result * gradient).sum() == (x * back).sum()


@settings(max_examples=100, deadline=None)
@given(operators(), st.integers(0, 100))
def test_the_transpose_of_any_operator_is_its_transpose(space: Space, seed: int):
    check_transpose(space, seed)


@settings(max_examples=100, deadline=None)
@given(lookups(), st.integers(0, 100))
def test_the_transpose_of_a_lookup_is_a_lookup_by_the_same_relations(space: Space, seed: int):
    check_transpose(space, seed)
