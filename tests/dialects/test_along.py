import pytest

from abele.dialects.along import Along
from abele.dialects.structured import Body


def test_only_a_scan_may_leave_out_an_element():
    assert Along("max", exclusive=True).identity == float("-inf")
    with pytest.raises(ValueError, match="an exclusive sort; only a scan"):
        Along("sort", exclusive=True)


def test_what_no_body_computes_along_a_dimension_is_refused():
    with pytest.raises(ValueError, match="'pick' along a dimension; need one of sum, max"):
        Along("pick")


def test_a_body_merges_points_or_computes_along_them():
    with pytest.raises(ValueError, match="combiner sum and sort along; need one"):
        Body("identity", "sum", along=Along("sort"))
