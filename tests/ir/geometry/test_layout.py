"""Properties of layouts that neither blocks nor overlaps show."""

import pytest

from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.space import AccessMap, AxisMap


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("offset", [-1, 1])
def test_a_layout_that_leaves_an_element_out_is_no_partition(parts: int, offset: int):
    shifted = AxisMap(9, ((0, 1),), offset, outside="fill")
    assert not Layout((Cut(9, parts),), AccessMap((shifted,))).is_partition


def test_a_layout_of_every_element_is_a_partition():
    assert Layout((Cut(9, 3),), AccessMap((AxisMap(9, ((0, 1),)),))).is_partition
