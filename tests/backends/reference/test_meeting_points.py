from itertools import product

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from abele.backends.reference.meeting_points import meeting_points
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space, identity_map


@st.composite
def spaces(draw: st.DrawFn) -> tuple[Space, list[np.ndarray]]:
    """Spaces of four dimensions with one or two relations, and the indices that they compare."""
    sizes = [draw(st.integers(1, 4)) for _ in range(4)]
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(sizes))
    relations: list[Relation] = []
    maps: list[AccessMap] = []
    arrays: list[np.ndarray] = []
    for i in range(draw(st.integers(1, 2))):
        named = draw(st.lists(st.integers(0, 3), max_size=2, unique=True))
        terms = tuple((d, draw(st.integers(1, 3))) for d in named)
        axis = AxisMap(draw(st.integers(1, 6)), terms, draw(st.integers(-1, 1)), outside="fill")
        relations.append(Relation(axis, i))
        read = tuple(draw(st.lists(st.integers(0, 3), max_size=2, unique=True)))
        maps.append(identity_map(read, tuple(sizes[d] for d in read)))
        seed = draw(st.integers(0, 999))
        random, n = np.random.default_rng(seed), axis.size
        arrays.append(random.integers(-n, n, maps[-1].shape))
    return Space(dims, tuple(maps), (AccessMap(()),), tuple(relations)), arrays


@settings(max_examples=80)
@given(spaces())
def test_the_meeting_points_are_those_at_which_every_relation_holds(case):
    space, arrays = case
    found = meeting_points(space, arrays)
    listed = sorted(found.at)
    points = set()
    for number in range(found.count):
        for free in product(*(range(space.dims[d].size) for d in found.free)):
            at = {d: int(found.at[d][number]) for d in listed} | dict(
                zip(found.free, free, strict=True)
            )
            points.add(tuple(at[d] for d in range(4)))
    assert len(points) == found.count * np.prod([space.dims[d].size for d in found.free])
    expected = set()
    for at in product(*(range(n) for n in space.sizes)):
        holds = True
        for relation, access, array in zip(space.relations, space.operands, arrays, strict=True):
            reached = relation.axis.offset + sum(c * at[d] for d, c in relation.axis.terms)
            wanted = array[tuple(sum(c * at[d] for d, c in a.terms) for a in access.axes)]
            wanted += relation.axis.size if wanted < 0 else 0
            holds &= 0 <= reached < relation.axis.size and reached == wanted
        if holds:
            expected.add(at)
    assert points == expected
