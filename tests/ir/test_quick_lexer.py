"""The quick lexer returns what xDSL's lexer returns, and fails where it fails."""

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from xdsl.utils.lexer import Input

from abele.ir.quick_lexer import QuickLexer
from abele.ir.upstream import MLIRLexer, MLIRTokenKind, ParseError
from abele.ir.xdsl.string_literals import read_strings_in_linear_time

read_strings_in_linear_time(MLIRLexer)

PIECES = (
    *("func.func", "_a$.9", "0", "12", "0x1F", "0xi32", "1.5", "2.", "1e5", "007", "-", "->", "-1"),
    *("%x", "%0", "%0a", "%-x", "#a", "#-}", "{-#", "{", "}", "!t.t", "^bb0", "@main", '@"a b"'),
    *(
        '"text"',
        '""',
        '"a\\n"',
        '"\\ff"',
        '"é"',
        '"open',
        "...",
        "..",
        ".",
        "//c\n",
        "/",
        "é",
        "\t",
    ),
    *(
        ":",
        ",",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "=",
        "+",
        "*",
        "?",
        "|",
        " ",
        "\n",
        "\r",
        "%",
        "@",
        "~",
    ),
)


def tokens(lexer: MLIRLexer) -> list[tuple[object, ...]]:
    """The kind, text and place of each token, and at the end the message of the error, if any."""
    found: list[tuple[object, ...]] = []
    try:
        while True:
            token = lexer.lex()
            span = token.span
            found.append((token.kind, token.text, span.start, span.end, type(span), lexer.pos))
            if token.kind is MLIRTokenKind.EOF:
                return found
    except ParseError as error:
        return [*found, (error.msg, error.span.start, error.span.end)]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("a 1x 0x 0X1 12.5e3 1..2")
@example("#-} {-# {- #} #-a")
def test_it_returns_the_tokens_of_the_other_lexer(text: str):
    assert tokens(QuickLexer(Input(text, "t"))) == tokens(MLIRLexer(Input(text, "t")))


@given(st.text(max_size=30))
def test_it_agrees_on_any_text(text: str):
    assert tokens(QuickLexer(Input(text, "t"))) == tokens(MLIRLexer(Input(text, "t")))


@pytest.mark.parametrize("piece", PIECES)
def test_it_agrees_on_each_piece(piece: str):
    assert tokens(QuickLexer(Input(piece, "t"))) == tokens(MLIRLexer(Input(piece, "t")))
