"""Which reduction dimensions may be cut into parts that need padding."""

from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.passes.plans.padding import can_pad


def _reduction(function: str, combiner: str, axis: AxisMap, n: int) -> Structure:
    dims = (Dim("k", n, "reduction"),)
    return Structure(Space(dims, (AccessMap((axis,)),), (AccessMap(()),)), Body(function, combiner))


def test_padding_must_not_change_the_result():
    whole = AxisMap(5, ((0, 1),))
    assert can_pad(_reduction("identity", "sum", whole, 5), 0)
    assert can_pad(_reduction("square", "sum", whole, 5), 0)
    # exp(0) is 1, and 1 is no zero to add.
    assert not can_pad(_reduction("exp", "sum", whole, 5), 0)
    assert not can_pad(_reduction("abs", "max", whole, 5), 0)


def test_padding_must_not_reach_elements_that_exist():
    part_of_a_larger_axis = AxisMap(9, ((0, 1),))
    assert not can_pad(_reduction("identity", "sum", part_of_a_larger_axis, 5), 0)
