"""xDSL's lexer, with one regular expression for the tokens of which most text consists.

Lexing took half of the time to parse a program. Whatever the expression does not match, such as a
comment, a number with a fraction or a string with escapes, is left to xDSL's own lexer, and so are
errors.
"""

from __future__ import annotations

import re
from typing import Any

from .upstream import MLIRLexer, MLIRToken, MLIRTokenKind, Span, StringLiteral, Token

_SUFFIX = r"(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"

_TOKEN = re.compile(
    r"[ \t\n]*(?:"
    r"([a-zA-Z_][a-zA-Z0-9_$.]*)"
    r"|([,:()=\[\]<>}*+?|]|->|\{(?!-\#))"
    r"|([0-9]+(?![0-9.xX]))"
    r'|("[^"\\\n\v\f]*")'
    rf"|(%{_SUFFIX})"
    r"|(@[a-zA-Z_][a-zA-Z0-9_$.]*)"
    rf"|(\#(?!-\}}){_SUFFIX})"
    rf"|(!{_SUFFIX})"
    rf"|(\^{_SUFFIX})"
    r")"
)

_KINDS = (
    None,
    MLIRTokenKind.BARE_IDENT,
    None,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.STRING_LIT,
    MLIRTokenKind.PERCENT_IDENT,
    MLIRTokenKind.AT_IDENT,
    MLIRTokenKind.HASH_IDENT,
    MLIRTokenKind.EXCLAMATION_IDENT,
    MLIRTokenKind.CARET_IDENT,
)
"""The kind of token of each group of the expression; None if its text decides."""

_PUNCTUATION = {each.value: each for each in MLIRTokenKind if isinstance(each.value, str)}
_STRING = 4


class _Token(Token[MLIRTokenKind, str]):
    """A token that knows its text, which the parser compares with many others."""

    # Without this, a token's own text would be hidden by xDSL's property.
    text: Any = ""


class QuickLexer(MLIRLexer):
    """Returns the tokens that xDSL's lexer returns."""

    def lex(self) -> MLIRToken:
        """The next token."""
        found = _TOKEN.match(self.input.content, self.pos)
        if found is None:
            return super().lex()
        group = found.lastindex or 0
        text = found[group]
        begin, self.pos = found.span(group)
        span = (StringLiteral if group == _STRING else Span)(begin, self.pos, self.input)
        token = object.__new__(_Token)
        token.__dict__.update(kind=_KINDS[group] or _PUNCTUATION[text], span=span, text=text)
        return token
