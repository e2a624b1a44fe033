"""Inputs in their largest shapes, and the lengths that follow from the shapes that are given."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from abele.dialects import nn
from abele.dialects.host import (
    ArgumentSize,
    LengthInput,
    argument_sizes,
    length_inputs,
    set_argument_sizes,
)
from abele.ir.errors import InputError
from abele.ir.upstream import ModuleOp
from abele.tools.driver.arrays import Tensor
from abele.tools.driver.signature import Signature

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
SIGNATURE = Signature(
    (
        Tensor("key", (2, 8), F32, (1,)),
        Tensor("mask", (11,), F32, (0,)),
        Tensor("x", (3,), F32),
        Tensor("past", (), I32),
        Tensor("new", (), I32),
    ),
    (),
    (),
    (LengthInput("past", 0, 8), LengthInput("new", 1, 2)),
    (
        ArgumentSize("mask", 0, 1, ("past", "new")),
        ArgumentSize("key", 1, 0, ("past",)),
    ),
)


def zeros(**sizes: tuple[int, ...]) -> dict[str, object]:
    return {name: np.ones(shape, np.float32) for name, shape in sizes.items()}


def test_lengths_follow_from_shapes_also_of_sums():
    found = SIGNATURE.padded(zeros(key=(2, 5), mask=(8,), x=(3,)))
    assert int(np.asarray(found["past"])) == 5
    assert int(np.asarray(found["new"])) == 2
    key = np.asarray(found["key"])
    assert key.shape == (2, 8)
    assert key[:, :5].all()
    assert np.asarray(found["mask"]).shape == (11,)
    assert np.asarray(found["x"]).shape == (3,)


def test_arrays_in_their_largest_shapes_need_not_be_full():
    given = {**zeros(key=(2, 8), mask=(11,)), "past": np.int32(3), "new": 1}
    found = SIGNATURE.padded(given)
    assert int(np.asarray(found["past"])) == 3
    assert int(np.asarray(SIGNATURE.padded(zeros(key=(2, 8)))["past"])) == 8


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            {**zeros(key=(2, 5)), "past": 4},
            r"'key' .*axis 1 has 5 elements; need 4, because past is 4: the run gives",
        ),
        (
            {**zeros(key=(2, 5), mask=(9,)), "new": 2},
            r"'mask' .*axis 0 has 9 elements; need 8, because past is 5: input 'key'.*; new is 2: ",
        ),
        (zeros(key=(2, 5), mask=(10,)), r"'mask' .*10 elements, so that new is 4; need 1\.\.2"),
        (zeros(mask=(4,)), r"4 elements, the sum of past and new; give one of them as an input"),
    ],
)
def test_shapes_that_contradict_each_other_are_refused(given: dict[str, object], match: str):
    with pytest.raises(InputError, match=match):
        SIGNATURE.padded(given)


def test_an_array_that_has_no_room_is_refused():
    match = r"'key' \(float32\[2, 8\]\): got float32\[2, 9\]; axis 1 has room for 8"
    with pytest.raises(InputError, match=match):
        SIGNATURE.padded(zeros(key=(2, 9)))


def test_a_signature_takes_smaller_shapes_along_open_axes_only():
    own = {"key": (2, 5), "mask": (8,), "x": (3,)}
    assert SIGNATURE.takes(own)
    assert SIGNATURE.takes({**own, "past": ()})
    assert not SIGNATURE.takes({**own, "x": (2,)})
    assert not SIGNATURE.takes({**own, "key": (1, 5)})
    assert not SIGNATURE.takes({**own, "y": ()})
    assert not SIGNATURE.takes({"key": (2, 5)})
    assert {name: int(np.asarray(n)) for name, n in SIGNATURE.first_lengths().items()} == {
        "past": 8,
        "new": 2,
    }


def test_a_module_keeps_lengths_and_sizes():
    module = ModuleOp([])
    set_argument_sizes(module, SIGNATURE.lengths, SIGNATURE.argument_sizes)
    assert length_inputs(module) == SIGNATURE.lengths
    assert argument_sizes(module) == SIGNATURE.argument_sizes


@pytest.mark.parametrize("entry", [nn.integers([1]), StringAttr("x"), ArrayAttr([StringAttr("x")])])
def test_attributes_that_are_no_sizes_are_refused(entry: object):
    module = ModuleOp([])
    module.attributes["abele.lengths"] = ArrayAttr([entry])  # pyright: ignore
    module.attributes["abele.argument_sizes"] = ArrayAttr([entry])  # pyright: ignore
    with pytest.raises(InputError, match=r'abele.lengths: .*; need \["input", least, most\]'):
        length_inputs(module)
    match = r'abele.argument_sizes: .*; need \["input", axis, offset, "length", \.\.\.\]'
    with pytest.raises(InputError, match=match):
        argument_sizes(module)
