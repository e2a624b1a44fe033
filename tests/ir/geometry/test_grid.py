import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.grid import Cut, shape_classes


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    size, grain = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    return Cut(size, draw(st.integers(1, -(-size // grain))), grain)


@given(cuts())
def test_parts_cover_a_dimension_evenly_in_grains(cut: Cut):
    edges = cut.edges()
    sizes = np.diff(edges)
    assert edges[0] == 0
    assert edges[-1] == cut.size
    assert (sizes > 0).all()
    assert np.ptp(sizes) <= 2 * cut.grain - 1
    assert (edges[:-1] % cut.grain == 0).all()
    assert sizes.max() == cut.largest


@given(cuts())
def test_runs_list_the_parts_in_few_groups_of_one_size(cut: Cut):
    runs = cut.runs()
    assert len(runs) <= 3
    sizes = [run.size for run in runs for _ in range(run.count)]
    assert sizes == np.diff(cut.edges()).tolist()
    for run in runs:
        assert cut.edges()[run.first] == run.start


def test_cells_fall_into_few_shape_classes():
    assert len(shape_classes((Cut(55, 4), Cut(96, 6), Cut(7, 7)))) == 2


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="a dimension of -3 elements; need 0 or more"):
        Cut(-3)


def test_a_cut_rejects_more_parts_than_elements():
    with pytest.raises(ValueError, match=r"9 parts of 8 elements in grains of 1; need 1\.\.8"):
        Cut(8, 9)
