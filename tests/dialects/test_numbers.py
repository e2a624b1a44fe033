import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.parser import Parser

from abele.dialects.numbers import number_text, parse_number

from ..strategies import context


@given(st.floats())
@example(1e30)
@example(float("-inf"))
@example(-0.0)
def test_every_number_reads_back_as_it_was(value: float):
    found = parse_number(Parser(context(), number_text(value)))
    assert found == value or (found != found and value != value)
    if value == value:
        assert struct.pack("d", found) == struct.pack("d", value)


@pytest.mark.parametrize(("text", "value"), [("3", 3.0), ("-3", -3.0), ("- inf", -float("inf"))])
def test_integers_and_spaces_are_read(text: str, value: float):
    assert parse_number(Parser(context(), text)) == value
