"""Comparison of numbers that distinguishes 0.0 from -0.0."""

import math
from dataclasses import replace

from abele.dialects.structured import Body, Stage
from abele.ir.geometry.space import AccessMap, AxisMap
from abele.ir.support.same_number import same_number, same_numbers

AXES = (AxisMap(3, ((0, 1),), outside="fill"),)


def test_equal_numbers_with_different_signs_are_different():
    assert same_numbers((0.0, 1.0, -0.0), (0.0, 1.0, -0.0))
    assert not same_numbers((0.0,), (-0.0,))
    assert not same_numbers((1.0,), (2.0,))
    assert not same_numbers((1.0,), (1.0, 1.0))
    assert same_number(math.nan, math.nan)
    assert same_number(1, 1.0)


def test_maps_bodies_and_stages_that_differ_in_the_sign_of_a_zero_are_different():
    for one, other in (
        (AccessMap(AXES, 0.0), AccessMap(AXES, -0.0)),
        (Body("scale", None, (0.0,)), Body("scale", None, (-0.0,))),
        (Stage("scale", (0.0,)), Stage("scale", (-0.0,))),
    ):
        assert one != other
        assert one == replace(one)
        assert hash(one) == hash(replace(one))
        assert one != "another thing"
