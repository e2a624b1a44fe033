"""Spreading a tensor over the tiles that need it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.ir.geometry.layout import canonical, raw_layout
from abele.ir.geometry.overlap import overlap
from abele.ir.geometry.space import Dim, identity_map
from abele.ir.geometry.spread import spread

from .strategies import TILES, cuttings, shapes


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_every_element_has_one_owner_among_the_tiles_that_need_the_tensor(data: st.DataObject):
    wanted = canonical(data.draw(shapes.flatmap(cuttings)).layout())
    found = spread(wanted)
    if found is None:
        return
    assert found.is_partition
    assert found.replicas == 1
    assert (found.shape, found.cells) == (wanted.shape, wanted.cells)
    assert found.tiles.spans == wanted.tiles.spans
    if wanted.cells <= TILES:
        overlap(found, wanted)


def product(order: tuple[int, ...], split: tuple[int, ...] = (4, 2, 6)):
    """The layouts that a product of rows, depth and columns wants its operands in."""
    dims = Dim("m", 48), Dim("k", 24, "reduction"), Dim("n", 96)
    each = identity_map((0, 1), (48, 24)), identity_map((1, 2), (24, 96))
    return [canonical(raw_layout(dims, access, split, order)) for access in each]


def test_spreading_divides_a_tensor_among_the_tiles_of_its_replicas():
    for wanted, copies in zip(product((1, 0, 2)), (6, 4), strict=True):
        shared = overlap(spread(wanted), wanted)
        assert wanted.replicas == copies
        assert np.all(shared.local * copies == shared.wanted)


def test_spreading_uses_the_same_cells_in_any_order_of_dimensions():
    for wanted in product((0, 1, 2)):
        found = spread(wanted)
        assert found.cells == wanted.cells
        assert found.block_elements * wanted.replicas == wanted.block_elements


def test_a_layout_without_copies_stays():
    (lhs, _) = product((1, 0, 2), (4, 2, 1))
    assert spread(lhs) is lhs


def test_spreading_also_splits_an_axis_that_the_plan_does_not():
    _, rhs = product((0, 2, 1), (4, 1, 96))
    found = spread(rhs)
    assert found.block_elements * 4 * 96 == 24 * 96


def test_too_few_elements_are_not_spread():
    dims = Dim("m", 48), Dim("n", 2)
    access = identity_map((1,), (2,))
    assert spread(canonical(raw_layout(dims, access, (48, 2), (1, 0)))) is None
