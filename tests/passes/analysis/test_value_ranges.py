"""Ranges of integers hold all numbers that a program computes, and are found in little time."""

import numpy as np
import pytest

from abele.backends.reference import run_reference
from abele.ir.text import parse_module
from abele.passes.analysis.value_ranges import never_zero, range_of
from abele.tools.driver.context import new_context

TYPE = "tensor<4xi32>"
TWO = f"({TYPE}, {TYPE}) -> {TYPE}"
GIVEN = (
    f"%i = nn.iota start -2 steps [3] : {TYPE}",
    f"%five = nn.iota start 5 steps [0] : {TYPE}",
    f"%none = nn.iota start 0 steps [0] : {TYPE}",
    f"%large = nn.iota start 2000000000 steps [0] : {TYPE}",
)


def returned(lines, type_=TYPE):
    """The value %r of a program, and the numbers that it has in a run."""
    body = "\n".join([*GIVEN, *lines])
    text = f"func.func @main(%x: {TYPE}) -> {type_} {{\n{body}\nfunc.return %r : {type_}\n}}"
    module = parse_module(text, new_context())
    x = np.array([-7, 0, 1, 2**31 - 1], np.int32)
    (found,) = run_reference(module, {"arg0": x}).outputs.values()
    (main,) = module.ops
    return main.body.block.last_op.operands[0], found


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([f"%r = nn.add %i, %five : {TWO}"], (3, 12)),
        ([f"%r = nn.mul %i, %i : {TWO}"], (-14, 49)),
        ([f"%r = nn.sub %five, %i : {TWO}"], (-2, 7)),
        ([f"%r = nn.max %x, %five : {TWO}"], (5, 2**31 - 1)),
        ([f"%m = nn.max %x, %i : {TWO}", f"%r = nn.min %m, %five : {TWO}"], (-2, 5)),
        ([f"%r = nn.add %large, %large : {TWO}"], None),
        ([f"%r = nn.add %x, %five : {TWO}"], None),
        ([f"%r = nn.div %five, %five : {TWO}"], None),
    ],
)
def test_a_range_holds_all_numbers(lines, expected):
    value, found = returned(lines)
    assert range_of(value) == expected
    if expected is not None:
        assert expected[0] <= found.min()
        assert found.max() <= expected[1]


def test_a_narrower_type_that_does_not_hold_a_range_has_none():
    for line, expected in (("%five", (5, 5)), ("%large", None)):
        value, _ = returned([f"%r = nn.cast {line} : ({TYPE}) -> tensor<4xi8>"], "tensor<4xi8>")
        assert range_of(value) == expected


def test_values_that_are_no_results_may_be_known():
    value, _ = returned([f"%r = nn.add %x, %five : {TWO}"])
    argument = value.op.operands[0]
    assert range_of(value, {argument: (0, 3)}) == (5, 8)


def test_values_that_are_read_many_times_are_looked_at_once():
    # A hundred to the power of eight ways lead to the first value.
    empty, lines = "tensor<0xi32>", ["%e0 = nn.iota start 0 steps [1] : tensor<0xi32>"]
    for i in range(8):
        given = ", ".join([f"%e{i}"] * 100)
        types = ", ".join([empty] * 100)
        lines.append(f"%e{i + 1} = nn.concat {given} axis 0 : ({types}) -> {empty}")
    lines[-1] = lines[-1].replace("%e8", "%r")
    value, _ = returned(lines, empty)
    assert range_of(value) is None


@pytest.mark.parametrize(
    ("tested", "kept", "instead", "expected"),
    [
        ("%x", "%x", "%five", True),
        ("%x", "%x", "%none", False),
        ("%i", "%x", "%five", False),
    ],
)
def test_the_guard_of_a_division_is_never_zero(tested, kept, instead, expected):
    value, found = returned(
        [
            f"%z = nn.equal {tested}, %none : ({TYPE}, {TYPE}) -> tensor<4xi1>",
            f"%r = nn.select %z, {instead}, {kept} : (tensor<4xi1>, {TYPE}, {TYPE}) -> {TYPE}",
        ]
    )
    assert never_zero(value) is expected
    assert not expected or found.all()
