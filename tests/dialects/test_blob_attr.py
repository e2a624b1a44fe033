from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from abele.dialects import nn
from abele.dialects.abele import Abele
from abele.dialects.blob_attr import BlobAttr
from abele.dialects.dtypes import ELEMENTS, numpy_dtype
from abele.ir.blob import Blob
from abele.ir.context import AbeleContext
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp
from abele.tools.driver.context import new_context
from abele.tools.testing.generators.sketch import Data
from abele.tools.testing.generators.values import values_of


def context() -> AbeleContext:
    made = AbeleContext()
    made.load_dialect(Abele)
    return made


def test_a_blob_is_printed_as_its_digest_and_found_again():
    here = context()
    attribute = BlobAttr(here.blobs.add(np.arange(1000)))
    text = str(attribute)
    assert text == f'#abele.blob<"{attribute.data.digest}">'
    again = Parser(here, text).parse_attribute()
    assert again == attribute
    assert again.array is attribute.array


def test_an_unknown_digest_is_named():
    with pytest.raises(ParseError, match='unknown blob "abc": the context has 0 blobs'):
        Parser(context(), '#abele.blob<"abc">').parse_attribute()


def test_a_context_without_blobs_says_so():
    plain = Context()
    plain.load_dialect(Abele)
    with pytest.raises(ParseError, match='unknown blob "abc": the context has no blob store'):
        Parser(plain, '#abele.blob<"abc">').parse_attribute()


def numbers_of(array: np.ndarray[Any, Any]) -> str:
    module = ModuleOp([nn.ConstantOp(array)])
    return print_module(module, locations=False, numbers=array.size)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("data", ["integers", "zeros", "special"])
def test_numbers_read_as_the_same_bits(element: Attribute, data: Data):
    array = values_of((2, 3), numpy_dtype(element), 5, data)
    module = ModuleOp([nn.ConstantOp(array)])
    here = new_context()
    here.blobs.add(array)
    again = parse_module(print_module(module, locations=False, numbers=6), here)
    found = next(op for op in again.walk() if isinstance(op, nn.ConstantOp)).value.array
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


def test_small_arrays_are_printed_as_numbers_if_asked_for():
    assert "<[1.0, -0.0, 1.0e-45, -inf] : tensor<4xf32>>" in numbers_of(
        np.array([1.0, -0.0, 1e-45, -np.inf], np.float32)
    )
    assert "<[true, false] : tensor<2xi1>>" in numbers_of(np.array([True, False]))
    other = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert f'<"{Blob(other).digest}">' in numbers_of(other)
    assert "[" not in print_module(ModuleOp([nn.ConstantOp(np.ones(3))]), locations=False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1, 2] : tensor<3xf32>", "2 numbers of type tensor<3xf32>"),
        ("[1] : tensor<?xf32>", "1 numbers of type"),
        ("[1] : f32", "numbers of type f32; need a tensor"),
        ("[1.5] : tensor<1xi32>", "1.5 is no i32"),
        ("[300] : tensor<1xi8>", "300 is no i8"),
        ("[-1] : tensor<1xui8>", "-1 is no ui8"),
        ("[123456789012345678901] : tensor<1xi64>", "123456789012345678901 is no i64"),
        ("[1] : tensor<1xindex>", "element type index"),
    ],
)
def test_numbers_that_do_not_fit_their_type_are_refused(text: str, problem: str):
    with pytest.raises(ParseError, match=problem):
        Parser(new_context(), f"#abele.blob<{text}>").parse_attribute()
