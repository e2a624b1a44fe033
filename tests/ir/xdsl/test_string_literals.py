import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.ir.upstream import Context, ParseError, Parser
from abele.ir.xdsl.string_literals import EXPRESSION, LITERAL, read_strings_in_linear_time

XDSLS = re.compile(r'"(?:[^"\\\n\v\f]+|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')
"""xDSL's own expression."""


@given(st.text('"\\ntA0g\n\v é', max_size=12).map(lambda text: f'"{text}'))
def test_the_expression_accepts_what_xdsls_accepts(text: str):
    some, other = LITERAL.match(text), XDSLS.match(text)
    assert (some and some.group()) == (other and other.group())


@pytest.mark.parametrize("text", ['"' + "a" * 100_000, '"' + "\\n" * 50_000, '"' + "a" * 99 + "\n"])
def test_an_open_string_is_refused_at_once(text: str):
    with pytest.raises(InputError, match="before closing string literal"):
        parse_module(text, AbeleContext())
    with pytest.raises(ParseError):
        Parser(Context(), text)


def test_a_lexer_without_the_expression_is_refused():
    with pytest.raises(AttributeError, match=f"no {EXPRESSION}"):
        read_strings_in_linear_time(object)
