import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from abele.backends.reference import KnownValues
from abele.dialects import nn


def chain(value: SSAValue, length: int) -> SSAValue:
    """A value doubled again and again, modulo 7."""
    seven = nn.ConstantOp(np.array(7, np.int32)).result
    for _ in range(length):
        value = nn.ModOp(nn.AddOp(value, value).result, seven).result
    return value


def test_a_chain_of_any_length_is_known_or_not():
    one = nn.ConstantOp(np.ones((), np.int32)).result
    known = KnownValues(10)
    assert known.array(chain(one, 3000)) == 2**3000 % 7
    (argument,) = Block(arg_types=[nn.tensor((), i32)]).args
    assert known.array(chain(argument, 3000)) is None


def test_large_values_are_not_known():
    small = nn.ConstantOp(np.ones(4, np.int32)).result
    assert KnownValues(4).array(small) is not None
    assert KnownValues(3).array(small) is None


def test_a_caller_says_what_values_are():
    load = nn.LoadOp("w", nn.tensor((), i32)).result
    total = nn.AddOp(load, load).result

    def weight(value: SSAValue) -> np.ndarray | None:
        return np.array(3, np.int32) if value is load else None

    assert KnownValues(10, weight).array(total) == 6
    assert KnownValues(10).array(total) is None
    one = nn.ConstantOp(np.ones((), np.int32)).result
    double = nn.AddOp(one, one).result
    assert KnownValues(10).array(double) == 2
    but_one = KnownValues(10, is_closed=lambda value: value is not one)
    assert but_one.array(double) is None
