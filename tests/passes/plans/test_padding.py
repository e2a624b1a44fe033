"""Which reduction dimensions may be cut into parts that need padding."""

from xdsl.parser import Parser

from abele.dialects.abele import SpaceAttr
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.passes.plans.padding import can_pad

from ...some_tensors import context


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


def _scattered(data: str) -> Structure:
    """A sum over rows whose numbers an operand holds. data: the axes of the other operand."""
    text = (
        f"#abele.space<[p = 3, r = 5 reduction] {data}, (r) of [5] -> (p) of [3] "
        "where operand 1 is (p) of [3]>"
    )
    space = Parser(context(), text).parse_attribute()
    assert isinstance(space, SpaceAttr)
    return Structure(space.data, Body("identity", "sum"))


def test_padded_indices_must_not_add_what_other_operands_hold():
    # The padding of operand 0 adds 0 to an element, whatever index there is.
    assert can_pad(_scattered("(r) of [5]"), 1)
    # The indices of padding name element 0, to which operand 0 would be added again.
    assert not can_pad(_scattered("(0) of [1]"), 1)
