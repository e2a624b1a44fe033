"""Parses the text of a rule file, with one message if it cannot be read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn, cast

from lark import (
    Lark,
    Token,
    Transformer,
    UnexpectedCharacters,
    UnexpectedInput,
    UnexpectedToken,
)
from lark import v_args as _v_args  # pyright: ignore[reportUnknownVariableType]
from lark.exceptions import VisitError
from lark.lexer import PatternStr
from lark.tree import Meta

from ..support.brackets import too_deep
from ..support.errors import InputError
from ..support.limits import INTEGER_BITS, NESTED_BRACKETS
from .kept_parser import kept_parser
from .syntax import (
    Build,
    Call,
    Class,
    Constant,
    Declaration,
    Declared,
    Expression,
    Field,
    Let,
    Listed,
    LiteralValue,
    Name,
    Nested,
    NewShaped,
    Operator,
    Pattern,
    Place,
    Property,
    Reference,
    Rest,
    Rule,
    RuleFile,
    Setting,
    Shaped,
    Size,
    TypeName,
    TypeOf,
    Variable,
)

TEXT = "<rules>"
"""The file name shown for rules that come from no file."""


ESCAPES = r"\", \\, \/, \b, \f, \n, \r, \t or \u and 4 digits"

LONGEST = 160
"""The longest part of a line that a message shows, in characters."""


def parse_rules(text: str, path: str = TEXT) -> RuleFile:
    """The syntax of rules. Raises InputError with file, line, column and a caret."""
    return cast(RuleFile, _parsed("start", text, path, 1))


def parse_pattern(text: str, path: str = TEXT, line: int = 1) -> Pattern:
    """The syntax of one pattern. Raises InputError.

    Args:
        line: where it starts in its file.
    """
    return cast(Pattern, _parsed("pattern", text, path, line))


def parse_guards(text: str, path: str = TEXT, line: int = 1) -> tuple[Expression, ...]:
    """The conditions after a `where`, without that word.

    Args:
        line: as in parse_pattern.
    """
    return cast("tuple[Expression, ...]", _parsed("guards", text, path, line))


def refusal(place: Place, message: str, text: str, first_line: int = 1) -> InputError:
    """An error at a place of a text, with the line and a caret.

    Args:
        first_line: number of the text's first line in its file.
    """
    lines = text.split("\n")
    at = place.line - first_line
    source = lines[at].rstrip().replace("\t", " ") if 0 <= at < len(lines) else ""
    start = max(place.column - 1, 0)
    # Of a long line, the part around the place is shown.
    first = 0 if len(source) <= LONGEST else max(start - LONGEST // 2, 0)
    source = source[first : first + LONGEST]
    marks = max(min(place.end - place.column, LONGEST - (start - first)), 1)
    caret = " " * (start - first) + "^" + "~" * (marks - 1)
    return InputError(f"{place}: {message}\n{source}\n{caret}")


_with_meta = cast("Callable[[type[_Builder]], type[_Builder]]", _v_args(meta=True))
"""Passes the place of a node to the methods of a transformer."""


@cache
def _parser() -> Lark:
    grammar = files("abele.ir.rules").joinpath("grammar.lark").read_text(encoding="utf-8")
    return kept_parser(grammar)


def _parsed(start: str, text: str, path: str, line: int) -> object:
    deep = too_deep(text)
    if deep is None:
        prefixes = re.search(rf"(?:\bnot\s+|-\s*){{{NESTED_BRACKETS.most + 1},}}", text)
        deep = None if prefixes is None else prefixes.start()
    if deep is not None:
        nested = NESTED_BRACKETS.refusal("nested too deeply")
        raise refusal(_place(text, deep, path, line), nested, text, line)
    try:
        tree = _parser().parse(text, start=start)
        return _Builder(text, path, line).transform(tree)
    except UnexpectedInput as error:
        raise _unexpected(error, text, path, line) from None
    except VisitError as error:
        raise error.orig_exc from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be read") from None


def _place(text: str, position: int, path: str, line: int) -> Place:
    """The place of one letter of a text.

    Args:
        line: number of the text's first line in its file.
    """
    row, column = text.count("\n", 0, position), position - text.rfind("\n", 0, position)
    return Place(path, row + line, column, column + 1)


_WORDS = {
    "ARROW": "'=>'",
    "COLON": "':'",
    "COMMA": "','",
    "COMPARE": "a comparison",
    "DOT": "'.'",
    "EQUAL": "'='",
    "LBRACE": "'{'",
    "LPAR": "'('",
    "LSQB": "'['",
    "NAME": "a name",
    "OP": "an operation",
    "PLUS": "'+'",
    "RBRACE": "'}'",
    "RPAR": "')'",
    "RSQB": "']'",
    "SEMICOLON": "';'",
    "TIMES": "'*'",
    "__ANON_0": "'=>'",
}
"""Names of the grammar's terminals in messages. All other terminals are shown as they are."""


def _unexpected(error: UnexpectedInput, text: str, path: str, line: int) -> InputError:
    wanted: set[str] = set()
    if isinstance(error, UnexpectedToken):
        wanted = set(error.accepts or error.expected)
        found = "the end" if error.token.type == "$END" else f"'{error.token}'"
    elif isinstance(error, UnexpectedCharacters):
        wanted = set(cast("set[str]", error.allowed or ()))
        letter = text[error.pos_in_stream]
        found = f"'{letter}'" if letter.isprintable() else f"U+{ord(letter):04X}"
    else:
        found = "the end"
    row, column = error.line, error.column
    if found == "the end":
        lines = text.rstrip().split("\n")
        row, column = len(lines), len(lines[-1]) + 1
    names = sorted(_word(each) for each in wanted if each != "$END")
    need = f"; need {' or '.join(names)}" if 0 < len(names) <= 6 else ""
    length = len(found) - 2 if found.startswith("'") else 1
    place = Place(path, row + line - 1, column, column + max(length, 1))
    hint = _hint(error, wanted, text)
    if hint:
        need = f"; {hint}"
    return refusal(place, f"{found} is not expected here{need}", text, line)


_NUMBERS = (
    "a number cannot be an operand; write an attribute, as in nn.op(x) {name = 1}, "
    "or an nn.constant"
)

_HINTS: dict[tuple[str, str], str] = {
    ("if", "WHERE"): "need 'where' before the conditions",
    ("if", "COMMA"): "need 'where' before the conditions",
    ("when", "WHERE"): "need 'where' before the conditions",
    ("<", "LSQB"): "a tensor of f32 is written f32[4, 6]",
    ("#", "OP"): _NUMBERS,
    ("-", "OP"): _NUMBERS,
}
"""Hints for common mistakes, by the text found and a terminal expected there; # is any number."""


def _hint(error: UnexpectedInput, wanted: set[str], text: str) -> str:
    at = error.pos_in_stream
    if at is None or at >= len(text):
        return ""
    word = re.match(r"\w+|.", text[at:])
    found = "" if word is None else word[0]
    found = "#" if found[:1].isdigit() else found
    return next(
        (hint for (each, one), hint in _HINTS.items() if each == found and one in wanted), ""
    )


def _word(terminal: str) -> str:
    known = {each.name: each.pattern for each in _parser().terminals}
    if terminal in _WORDS and terminal != "__ANON_0":
        return _WORDS[terminal]
    pattern = known.get(terminal)
    return f"'{pattern.value}'" if isinstance(pattern, PatternStr) else terminal.lower()


@_with_meta
class _Builder(Transformer[Token, object]):
    """Turns lark's tree into the syntax."""

    def __init__(self, text: str, path: str, line: int) -> None:
        super().__init__()
        self._text, self._path, self._line = text, path, line
        self._lines = text.split("\n")

    def _at(self, meta: Meta | Token) -> Place:
        if isinstance(meta, Meta) and meta.empty:
            return Place(self._path, self._line, 1, 2)
        assert meta.line is not None
        assert meta.column is not None
        same = meta.end_line == meta.line and meta.end_column is not None
        end = cast(int, meta.end_column) if same else len(self._lines[meta.line - 1]) + 1
        return Place(self._path, meta.line + self._line - 1, meta.column, max(end, meta.column + 1))

    def _refuse(self, place: Place, message: str) -> NoReturn:
        raise refusal(place, message, self._text, self._line)

    # Literals

    def _integer(self, token: Token) -> int:
        # A decimal digit holds more than three bits.
        bits = 3 * len(token)
        value = int(token) if bits <= INTEGER_BITS.most else 0
        if bits > INTEGER_BITS.most or value.bit_length() > INTEGER_BITS.most:
            what = f"an integer of {len(token):,} digits"
            self._refuse(self._at(token), INTEGER_BITS.refusal(what))
        return value

    def _number(self, token: Token) -> int | float:
        if token.type == "INTEGER":
            return self._integer(token)
        value = float(token)
        if math.isinf(value):
            self._refuse(self._at(token), "too large for a float of 64 bits")
        return value

    def _string(self, token: Token) -> str:
        try:
            return cast(str, json.loads(token, strict=False))
        except json.JSONDecodeError as error:
            escape = error.pos - 1 if error.msg.startswith("Invalid \\u") else error.pos
            wrong = str(token)[escape : escape + 2]
            self._refuse(self._at(token), f"no escape {wrong}; need {ESCAPES}")

    # The left side

    def pattern(self, meta: Meta, c: list[Any]) -> Pattern:
        """A head, operands, fields, a name, types."""
        head, *middle, fields, name, types = c
        operands = tuple(each for each in middle if each is not None)
        known = tuple(each for each in fields or () if isinstance(each, Field))
        others = fields is not None and len(known) < len(fields)
        where = self._at(meta)
        return Pattern(where, head, operands, known, str(name or ""), types or (), others)

    def op_head(self, meta: Meta, c: list[Token]) -> tuple[str, ...]:
        """Names of operations."""
        return tuple(map(str, c))

    def class_head(self, meta: Meta, c: list[Token]) -> tuple[str, ...]:
        """The name of a class."""
        return (str(c[0]),)

    def nested(self, meta: Meta, c: list[Any]) -> Nested:
        """An operation whose result is an operand."""
        return Nested(self._at(meta), c[0], None if c[1] is None else self._integer(c[1]))

    def variable(self, meta: Meta, c: list[Any]) -> Variable:
        """An operand by name."""
        return Variable(self._at(c[0]), str(c[0]), c[1])

    def rest(self, meta: Meta, c: list[Token]) -> Rest:
        """All other operands."""
        return Rest(self._at(meta), str(c[0]))

    def fields(self, meta: Meta, c: list[Any]) -> tuple[Field | None, ...]:
        """The attributes; None stands for any others."""
        return tuple(c)

    def others(self, meta: Meta, c: list[Any]) -> None:
        """Any other attributes."""

    def field(self, meta: Meta, c: list[Any]) -> Field:
        """One attribute."""
        value = Name(self._at(c[1]), str(c[1])) if isinstance(c[1], Token) else _literal(c[1])
        note = c[0].type == "STRING"
        name = self._string(c[0]) if note else str(c[0])
        return Field(self._at(c[0]), name, value, note)

    def types(self, meta: Meta, c: list[Any]) -> tuple[Any, ...]:
        """The types of the results."""
        return tuple(c)

    def type_name(self, meta: Meta, c: list[Token]) -> TypeName:
        """A type by name."""
        return TypeName(self._at(meta), str(c[0]))

    def shaped(self, meta: Meta, c: list[Any]) -> Shaped:
        """A tensor type."""
        return Shaped(self._at(meta), str(c[0]), tuple(d for d in c[1:] if d is not None))

    def any_shaped(self, meta: Meta, c: list[Any]) -> Shaped:
        """A tensor type with any elements."""
        return Shaped(self._at(meta), "", tuple(d for d in c if d is not None))

    def dim_name(self, meta: Meta, c: list[Token]) -> Size:
        """A dimension by name."""
        return Size(self._at(meta), str(c[0]))

    def dim_size(self, meta: Meta, c: list[Token]) -> Size:
        """A dimension by size."""
        return Size(self._at(meta), self._integer(c[0]))

    def dim_rest(self, meta: Meta, c: list[Token | None]) -> Rest:
        """All other dimensions."""
        return Rest(self._at(meta), str(c[0] or ""))

    # The right side

    def lets(self, meta: Meta, c: list[Let]) -> tuple[Let, ...]:
        """Named operations."""
        return tuple(c)

    def let(self, meta: Meta, c: list[Any]) -> Let:
        """A named operation."""
        return Let(self._at(c[0]), str(c[0]), c[1])

    def one(self, meta: Meta, c: list[Any]) -> tuple[Any, ...]:
        """One result."""
        return (c[0],)

    def many(self, meta: Meta, c: list[Any]) -> tuple[Any, ...]:
        """Several results."""
        return tuple(c)

    def erase(self, meta: Meta, c: list[Any]) -> tuple[Any, ...]:
        """No result."""
        return ()

    def reference(self, meta: Meta, c: list[Any]) -> Reference:
        """A value by name."""
        index = None if c[1] is None else self._integer(c[1])
        return Reference(self._at(meta), str(c[0]), index)

    def build(self, meta: Meta, c: list[Any]) -> Build:
        """A new operation."""
        head, *middle, settings, like, types = c
        operands = tuple(each for each in middle if each is not None)
        return Build(self._at(meta), head, operands, settings or (), str(like or ""), types or ())

    def new_op(self, meta: Meta, c: list[Token]) -> str:
        """The name of an operation."""
        return str(c[0])

    same_op = new_op

    def settings(self, meta: Meta, c: list[Any]) -> tuple[Setting, ...]:
        """Attributes of a new operation."""
        return tuple(each for each in c if each is not None)

    def setting(self, meta: Meta, c: list[Any]) -> Setting:
        """An attribute of a new operation."""
        return Setting(self._at(c[0]), str(c[0]), c[1])

    newtypes = types

    def type_of(self, meta: Meta, c: list[Token]) -> TypeOf:
        """The type of a value."""
        return TypeOf(self._at(meta), str(c[0]))

    def new_shaped(self, meta: Meta, c: list[Any]) -> NewShaped:
        """The type of a new tensor."""
        return NewShaped(self._at(meta), str(c[0]), tuple(s for s in c[1:] if s is not None))

    def size(self, meta: Meta, c: list[Any]) -> object:
        """A size of a new tensor."""
        return c[0]

    size_rest = rest

    # Expressions

    def guards(self, meta: Meta, c: list[Any]) -> tuple[Any, ...]:
        """The conditions."""
        return tuple(c)

    def any(self, meta: Meta, c: list[Any]) -> Any:
        """A disjunction."""
        return c[0] if len(c) == 1 else Operator(self._at(meta), "or", tuple(c))

    def all(self, meta: Meta, c: list[Any]) -> Any:
        """A conjunction."""
        return c[0] if len(c) == 1 else Operator(self._at(meta), "and", tuple(c))

    def negated(self, meta: Meta, c: list[Any]) -> Operator:
        """A negation."""
        return Operator(self._at(meta), "not", (c[0],))

    def minus(self, meta: Meta, c: list[Any]) -> Expression:
        """An expression with a minus sign."""
        if isinstance(c[0], Constant) and isinstance(c[0].value, int | float):
            return Constant(self._at(meta), -c[0].value)
        return Operator(self._at(meta), "neg", (c[0],))

    def comparison(self, meta: Meta, c: list[Any]) -> Any:
        """A comparison of two numbers."""
        return c[0] if c[1] is None else Operator(self._at(meta), str(c[1]), (c[0], c[2]))

    def sum(self, meta: Meta, c: list[Any]) -> Any:
        """A sum or product, which associates to the left."""
        left = c[0]
        # Each term is nested in the sum of all terms up to it.
        if len(c) // 2 > 4 * NESTED_BRACKETS.most:
            what = f"{len(c) // 2 + 1:,} terms count as {len(c) // 8:,} brackets"
            self._refuse(self._at(meta), NESTED_BRACKETS.refusal(what))
        for symbol, right in zip(c[1::2], c[2::2], strict=True):
            left = Operator(self._at(meta), str(symbol), (left, right))
        return left

    product = sum

    def name(self, meta: Meta, c: list[Token]) -> Name:
        """A name."""
        return Name(self._at(meta), str(c[0]))

    def property(self, meta: Meta, c: list[Token]) -> Property:
        """An attribute of an operation."""
        return Property(self._at(meta), str(c[0]), str(c[1]))

    def call(self, meta: Meta, c: list[Any]) -> Call:
        """A guard or function."""
        return Call(self._at(meta), str(c[0]), tuple(a for a in c[1:] if a is not None))

    def listed(self, meta: Meta, c: list[Any]) -> Listed:
        """A list."""
        return Listed(self._at(meta), tuple(i for i in c if i is not None))

    def number(self, meta: Meta, c: list[Token]) -> Constant:
        """A number."""
        return Constant(self._at(meta), self._number(c[0]))

    def negative(self, meta: Meta, c: list[Token]) -> Constant:
        """A negative number."""
        return Constant(self._at(meta), -self._number(c[0]))

    def string(self, meta: Meta, c: list[Token]) -> Constant:
        """A string."""
        return Constant(self._at(meta), self._string(c[0]))

    def true(self, meta: Meta, c: list[Any]) -> Constant:
        """True."""
        return Constant(self._at(meta), True)

    def false(self, meta: Meta, c: list[Any]) -> Constant:
        """False."""
        return Constant(self._at(meta), False)

    def none(self, meta: Meta, c: list[Any]) -> Constant:
        """The literal none."""
        return Constant(self._at(meta), None)

    def literals(self, meta: Meta, c: list[Any]) -> Listed:
        """A list of literals."""
        return Listed(self._at(meta), tuple(i for i in c if i is not None))

    # Rules and declarations

    def class_(self, meta: Meta, c: list[Any]) -> Class:
        """A name for several operations."""
        name, *members = c
        known = tuple(each for each in members if each is not None)
        return Class(self._at(name), str(name), known or None)

    def op(self, meta: Meta, c: list[Token]) -> tuple[str, Place]:
        """An operation of a class."""
        return str(c[0]), self._at(meta)

    def kind(self, meta: Meta, c: list[Token]) -> str:
        """The kind of a rule."""
        return str(c[0])

    def modifier(self, meta: Meta, c: list[Any]) -> tuple[str, Token | None, Place]:
        """@commutative or @priority(2)"""
        return str(c[0]), c[1], self._at(meta)

    def rule(self, meta: Meta, c: list[Any]) -> Rule:
        """A rule."""
        *modifiers, kind, name, pattern, lets, results, guards = c
        priority, commutative = 0, False
        for word, value, place in modifiers:
            if word == "priority" and value is not None:
                priority = self._integer(value)
            elif word == "commutative" and value is None:
                commutative = True
            else:
                self._refuse(place, f"@{word}: need @commutative or @priority(NUMBER)")
        return Rule(
            self._at(name),
            kind,
            str(name),
            priority,
            commutative,
            pattern,
            lets,
            results,
            guards or (),
            self._document(self._at(meta).line - self._line),
        )

    def _document(self, row: int) -> str:
        """The comment that ends just above a row. Rows count from 0."""
        lines: list[str] = []
        while row > 0 and self._lines[row - 1].strip().startswith("//"):
            row -= 1
            lines.append(self._lines[row].strip().removeprefix("//").strip())
        return " ".join(reversed(lines))

    def parameter(self, meta: Meta, c: list[Token | None]) -> str:
        """The kind of a parameter. Its name, if it has one, is for the reader only."""
        return str(c[0] if c[1] is None else c[1])

    def guard(self, meta: Meta, c: list[Any]) -> Declaration:
        """A guard written in Python."""
        name, *kinds = c
        return Declaration(self._at(name), str(name), tuple(k for k in kinds if k), "")

    def function(self, meta: Meta, c: list[Any]) -> Declaration:
        """A function written in Python."""
        name, *kinds, result = c
        return Declaration(self._at(name), str(name), tuple(k for k in kinds if k), str(result))

    def takes(self, meta: Meta, c: list[Token]) -> Declared:
        """The level that the pass of the rules takes."""
        return Declared(self._at(c[0]), "takes", str(c[0]))

    def leaves(self, meta: Meta, c: list[Token]) -> Declared:
        """The level that the pass of the rules leaves."""
        return Declared(self._at(c[0]), "leaves", str(c[0]))

    def rounds(self, meta: Meta, c: list[Token]) -> Declared:
        """That the pass of the rules may give up precision."""
        return Declared(self._at(meta), "rounds", "")

    def start(self, meta: Meta, c: list[Any]) -> RuleFile:
        """The whole file."""
        return RuleFile(
            self._path,
            self._text,
            tuple(each for each in c if isinstance(each, Class)),
            tuple(each for each in c if isinstance(each, Declaration)),
            tuple(each for each in c if isinstance(each, Rule)),
            tuple(each for each in c if isinstance(each, Declared)),
        )


def _literal(value: Constant | Listed) -> LiteralValue:
    if isinstance(value, Listed):
        return tuple(_literal(cast("Constant | Listed", item)) for item in value.items)
    return value.value
