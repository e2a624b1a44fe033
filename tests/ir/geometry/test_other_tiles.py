"""Layouts on other tiles of the same chips."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.fabrics.traffic import Carried
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, canonical
from abele.ir.geometry.other_tiles import on_other_tiles
from abele.ir.geometry.overlap import overlap
from abele.ir.geometry.space import AccessMap, AxisMap

OWN = 6
"""Tiles of a chip on which the given layouts lie."""


def crossings(one: Layout, other: Layout, chip_tiles: int) -> int:
    """The elements that a copy from one layout to another one moves between chips."""
    flows = Carried(overlap(one, other), 1).flows()
    across = flows.source // chip_tiles != flows.destination // chip_tiles
    return int(flows.bytes[across].sum())


def layout_of(cuts: list[tuple[int, int, int]], first: int, apart: int, copies: int = 1) -> Layout:
    """Axes of (size, parts on a chip, chips), of which chips hold as many copies."""
    grid = tuple(Cut(n, parts * chips, chips=chips) for n, parts, chips in cuts)
    axes = tuple(AxisMap(n, ((d + 1, 1),)) for d, (n, _, _) in enumerate(cuts))
    return canonical(
        Layout((Cut(copies, copies, chips=copies), *grid), AccessMap(axes), first, apart)
    )


@st.composite
def layouts(draw: st.DrawFn, aside: int) -> Layout:
    """A layout on the first tiles of one chip or of several, in equal parts."""
    across, left = draw(st.sampled_from(((1,), (2,), (4,), (2, 2), (3, 1), (1, 2)))), OWN
    cuts: list[tuple[int, int, int]] = []
    for chips in across:
        parts = draw(st.integers(1, left))
        left //= parts
        cuts.append((parts * chips * draw(st.integers(1, 5)), parts, chips))
    several = max(across) > 1
    size = OWN + aside
    first = draw(st.integers(0, 2)) * size
    return layout_of(cuts, first, draw(st.integers(1, 2)) * size if several else 0)


@given(st.data(), st.integers(1, 5), st.sampled_from((1, 2, 4, 8)))
def test_each_chip_keeps_what_it_has(data: st.DataObject, aside: int, itemsize: int):
    given_ = data.draw(layouts(aside))
    size = OWN + aside
    found = on_other_tiles(given_, itemsize, size, OWN, aside)
    assert found.is_partition
    assert found.shape == given_.shape or not given_.apart
    assert all(at % size >= OWN for at in found.tiles.of(np.arange(found.cells)))
    assert set(found.tiles.used_chips(size)) <= set(given_.tiles.used_chips(size))
    if given_.apart:
        assert crossings(found, given_, size) == crossings(given_, found, size) == 0


def test_shares_of_two_sizes_are_kept_where_parts_allow():
    # 7 rows on 2 chips in 4 parts: 2 2 | 2 1, so that the first chip has 4.
    given_ = layout_of([(7, 2, 2), (3, 1, 1)], 0, 8)
    found = on_other_tiles(given_, 4, 8, 6, 2)
    assert [cut.parts for cut in found.grid][:1] == [4]
    assert crossings(given_, found, 8) == 0


def test_what_all_chips_hold_lies_on_the_first_one():
    given_ = layout_of([(64, 3, 1)], 8, 8, copies=2)
    found = on_other_tiles(given_, 4, 8, 6, 2)
    assert (found.replicas, str(found.tiles)) == (1, "14..15")


def test_shares_of_which_several_chips_have_copies_stay_on_their_chips():
    # Chips 0 and 1 hold the first half, chips 2 and 3 the second one.
    grid = (Cut(4, 4, chips=2), Cut(2, 2, chips=2))
    access = AccessMap((AxisMap(4, ((0, 1),)),))
    found = on_other_tiles(Layout(grid, access, apart=8), 4, 8, 6, 2)
    assert found.is_partition
    assert found.replicas == 2
    assert found.tiles.used_chips(8).tolist() == [0, 1, 2, 3]


def test_one_chip_gets_linear_order():
    found = on_other_tiles(layout_of([(64, 2, 1), (4, 3, 1)], 8, 0), 4, 8, 6, 2)
    assert str(found.tiles) == "14..15"
    assert found.shape == (256,)
