"""Inputs in their largest shapes, and the lengths that follow from the shapes that are given."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from abele.dialects import nn
from abele.dialects.host import (
    ArgumentSize,
    HostTexts,
    LengthInput,
    argument_sizes,
    length_inputs,
    set_argument_sizes,
    set_host_texts,
)
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp
from abele.tools.driver.arrays import Tensor, checked
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
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


def text_module(texts: HostTexts) -> ModuleOp:
    """A module that returns its input, three integers, as "y"."""
    module = parse_module(
        """builtin.module {
          func.func @main(%x: tensor<3xi32>) -> tensor<3xi32>
              attributes {arg_names = ["x"], result_names = ["y"]} {
            func.return %x : tensor<3xi32>
          }
        }""",
        new_context(),
    )
    set_host_texts(module, texts)
    return module


def test_strings_are_places_in_a_table():
    found = signature(text_module(HostTexts(("b", "a", ""), ("x",), ("y",))))
    for given in (["a", "é", ""], np.array(["a", "é", ""], object)):
        (places,) = checked({"x": given}, found.inputs).values()
        assert places.tolist() == [1, -1, 2]
    told = found.told({"y": np.array([2, 0, 1], np.int32)})
    assert told["y"].tolist() == ["", "b", "a"]
    assert found.computed(told)["y"].tolist() == [2, 0, 1]
    with pytest.raises(InputError, match=r"output 'y' \(str\[3\]\): integers outside 0..2"):
        found.told({"y": np.array([0, 3, 0], np.int32)})


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (HostTexts(("a",), ("z",)), "need an input or a result 'z' of i32"),
        (HostTexts(columns={"y": ("a", "b")}), "need a result 'y' with 2"),
        (HostTexts(columns={"z": ("a", "b", "c")}), "need a result 'z' with 3"),
    ],
)
def test_strings_of_what_is_not_there_are_refused(texts: HostTexts, message: str):
    with pytest.raises(InputError, match=message):
        signature(text_module(texts))
