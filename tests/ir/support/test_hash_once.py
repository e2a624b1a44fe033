import os
import pickle
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass, replace

import pytest

from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.ir.support.hash_once import hash_once


class Counted:
    def __init__(self, value: int):
        self.value, self.asked = value, 0

    def __hash__(self) -> int:
        self.asked += 1
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counted) and other.value == self.value


@hash_once
@dataclass(frozen=True)
class Pair:
    one: Counted
    other: str = "a"


def test_a_hash_is_computed_once():
    pair = Pair(Counted(1))
    assert len({hash(pair) for _ in range(3)}) == 1
    assert pair.one.asked == 1


def test_equal_values_have_equal_hashes_and_others_their_own():
    pair = Pair(Counted(1))
    hash(pair)
    assert hash(Pair(Counted(1))) == hash(pair)
    changed = replace(pair, other="b")
    assert changed != pair
    assert hash(changed) == hash(Pair(Counted(1), "b"))


class Compared(Counted):
    __hash__ = Counted.__hash__

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Compared)
        self.compared = getattr(self, "compared", 0) + 1
        return other.value == self.value


def test_values_that_were_found_equal_are_not_compared_again():
    one, other, third = (Pair(Compared(1)) for _ in range(3))
    assert all(one == other for _ in range(3))
    assert other == one
    assert other == third
    assert third == one
    assert [getattr(each.one, "compared", 0) for each in (one, other, third)] == [1, 1, 0]


def test_values_with_different_hashes_are_not_compared():
    one, other = Pair(Compared(1)), Pair(Compared(2))
    assert hash(one) != hash(other)
    assert one != other
    assert not hasattr(one.one, "compared")


def test_a_value_differs_from_one_of_another_class():
    assert Pair(Counted(1)) != 1
    assert Pair(Counted(1)) != AXIS


AXIS = AxisMap(6, ((0, 1),), outside="fill")
SPACE = Space((Dim("i", 6),), (AccessMap((AXIS,)),), (AccessMap((AxisMap(6, ((0, 1),)),)),))
VALUES = (
    SPACE,
    Layout((Cut(6, 2),), AccessMap((AXIS,))),
    Structure(SPACE, Body("relu")),
    Plan((2,), method="amp"),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_hash_is_not_pickled(value: object):
    hash(value)
    assert value == replace(value)
    for copied in (deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert copied == value
        assert hash(copied) == hash(value)
    code = (
        "import pickle, sys\n"
        "value = pickle.loads(sys.stdin.buffer.read())\n"
        "again = type(value)(**{name: getattr(value, name) for name in value.__match_args__})\n"
        "sys.exit(hash(value) != hash(again))"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(value),
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
        )
