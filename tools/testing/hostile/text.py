"""Program texts of every level with damaged tokens, as unfinished edits leave them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ....ir.text_version import with_version
from .case import Case, Damaged
from .models import model_case
from .programs import MODULE, any_program

TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<symbol>@[\w.$-]+|@"[^"\n]*")
    |(?P<value>%[\w.$-]+)
    |(?P<alias>[#!][\w.$-]+)
    |(?P<label>\^[\w.$-]+)
    |(?P<type>(?:tensor|memref|vector)?<[^<>\n]*x(?:f16|f32|bf16|i1|i8|i32|i64|f64|ui8)>)
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
    |(?P<word>[A-Za-z_][\w.]*)
    |(?P<arrow>->|::|=>)
    |(?P<bracket>[()\[\]{}<>])
    |(?P<space>\s+)
    |(?P<other>.)""",
    re.VERBOSE,
)
"""The tokens of MLIR's text, and of the languages of rules and targets closely enough."""

NUMBERS = (
    *("0", "-1", "1", "2", "3", "7", "255", "256", "65535", "65536", "1048576"),
    *("2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("1152921504606846976", "18446744073709551616", "-9223372036854775809", "1" + "0" * 40),
    *("9" * 5000, "0.5", "-0.0", "1e400", "1e-400", "nan", "inf", "0x7FC00000", "0b1", "1.0.0"),
    "0x" + "F" * 5000,
)
"""Numbers at the limits of number formats."""

STRINGS = (
    *('""', '"\\00"', '"[/b]"', '"../../x"', '"/etc/passwd"', '"\\q"', '"{{DATA}}"', '"\\n"'),
    *('"' + "a" * 70_000 + '"', '"\u202e\u0000"', '"y\\00a"', '"%s%n"', '"<script>"'),
)
"""Strings with a special meaning elsewhere: paths, markup, escapes."""

TYPES = (
    *("tensor<0xf32>", "tensor<f32>", "tensor<?xf32>", "tensor<4x-1xf32>", "tensor<*xf32>"),
    *("tensor<4611686018427387904xf32>", "tensor<0x4611686018427387904xf32>", "tensor<4xf64>"),
    *("tensor<4xi64>", "tensor<4xindex>", "tensor<4xcomplex<f32>>", "tensor<4xtensor<4xf32>>"),
    *("tensor<4xi0>", "tensor<4xi1000000>", "tensor<4xbf16>", "tensor<4xf8E4M3FN>", "none"),
    *("tensor<1000000000xf32>", "tensor<" + "1x" * 70 + "f32>", "vector<4xf32>", "memref<4xf32>"),
)
"""Types that no program of this kind has."""

INSERTED = (
    *("(", ")", "[", "]", "{", "}", "<", ">", '"', ",", ":", "=", "->", "@", "%", "#", "!", "^"),
    *("\0", "\ufeff", "// -----\n", "/*", "\\", "{-#", "#-}", "loc(", "dense<", "true", "unit"),
)
"""Text that may be inserted anywhere."""

SPECIAL = {"number": NUMBERS, "string": STRINGS, "type": TYPES}
"""Replacements of tokens by their class, besides other tokens of the same text."""

Tokens = list[tuple[str, str]]
"""Tokens of a text: their class and their text."""


def tokens_of(text: str) -> Tokens:
    """All tokens of a text in order. Joined together, they give the text."""
    return [(each.lastgroup or "other", each.group()) for each in TOKEN.finditer(text)]


def _places(tokens: Tokens) -> list[int]:
    return [place for place, (kind, _) in enumerate(tokens) if kind != "space"]


def _any(tokens: Tokens, random: np.random.Generator) -> int:
    """The index of a random token. First a class of tokens is chosen, because most are brackets."""
    kinds = sorted({kind for kind, _ in tokens} - {"space"})
    kind = kinds[int(random.integers(len(kinds)))]
    places = [place for place, (each, _) in enumerate(tokens) if each == kind]
    return places[int(random.integers(len(places)))]


def _delete(tokens: Tokens, random: np.random.Generator) -> str:
    place = _any(tokens, random)
    _, text = tokens.pop(place)
    return f"delete {_short(text)}"


def _duplicate(tokens: Tokens, random: np.random.Generator) -> str:
    place = _any(tokens, random)
    tokens.insert(place, tokens[place])
    return f"duplicate {_short(tokens[place][1])}"


def _swap(tokens: Tokens, random: np.random.Generator) -> str:
    first = _any(tokens, random)
    same = [place for place, (kind, _) in enumerate(tokens) if kind == tokens[first][0]]
    second = same[int(random.integers(len(same)))]
    tokens[first], tokens[second] = tokens[second], tokens[first]
    return f"swap {_short(tokens[first][1])} and {_short(tokens[second][1])}"


def _replace(tokens: Tokens, random: np.random.Generator) -> str:
    """Replace a token by another token of the same class from the text."""
    place = _any(tokens, random)
    kind, text = tokens[place]
    others = sorted({each for other, each in tokens if other == kind})
    other = others[int(random.integers(len(others)))]
    tokens[place] = (kind, other)
    return f"replace {_short(text)} by {_short(other)}"


def _special(tokens: Tokens, random: np.random.Generator) -> str:
    """Replace a number, string or type by an extreme value."""
    places = [place for place, (kind, _) in enumerate(tokens) if kind in SPECIAL]
    if not places:
        return _replace(tokens, random)
    place = places[int(random.integers(len(places)))]
    kind, text = tokens[place]
    others = SPECIAL[kind]
    other = others[int(random.integers(len(others)))]
    tokens[place] = (kind, other)
    return f"replace {_short(text)} by {_short(other)}"


def _nudge(tokens: Tokens, random: np.random.Generator) -> str:
    """Add a small number to an integer, which leaves the program almost right."""
    places = [
        place
        for place, (kind, text) in enumerate(tokens)
        if kind == "number" and text.lstrip("-").isdigit() and len(text) < 19
    ]
    if not places:
        return _replace(tokens, random)
    place = places[int(random.integers(len(places)))]
    kind, text = tokens[place]
    by = (-8, -4, -2, -1, 1, 2, 4, 8)[int(random.integers(8))]
    tokens[place] = (kind, str(int(text) + by))
    return f"replace {text} by {tokens[place][1]}"


def _insert(tokens: Tokens, random: np.random.Generator) -> str:
    place = _any(tokens, random)
    text = INSERTED[int(random.integers(len(INSERTED)))]
    tokens.insert(place, ("other", text))
    return f"insert {_short(text)}"


def _lines(tokens: Tokens) -> list[tuple[int, int]]:
    """The token ranges of the lines: first token, and the token after the last."""
    ends = [place + 1 for place, (_, text) in enumerate(tokens) if "\n" in text]
    return list(zip([0, *ends], [*ends, len(tokens)]))


def _delete_line(tokens: Tokens, random: np.random.Generator) -> str:
    lines = _lines(tokens)
    begin, end = lines[int(random.integers(len(lines)))]
    text = _joined(tokens[begin:end])
    del tokens[begin:end]
    return f"delete line {_short(text)}"


def _duplicate_line(tokens: Tokens, random: np.random.Generator) -> str:
    lines = _lines(tokens)
    begin, end = lines[int(random.integers(len(lines)))]
    tokens[begin:begin] = tokens[begin:end]
    return f"duplicate line {_short(_joined(tokens[begin:end]))}"


def _move_line(tokens: Tokens, random: np.random.Generator) -> str:
    lines = _lines(tokens)
    begin, end = lines[int(random.integers(len(lines)))]
    line = tokens[begin:end]
    del tokens[begin:end]
    lines = _lines(tokens)
    to, _ = lines[int(random.integers(len(lines)))]
    tokens[to:to] = line
    return f"move line {_short(_joined(line))}"


def _truncate(tokens: Tokens, random: np.random.Generator) -> str:
    place = int(random.integers(len(tokens)))
    del tokens[place:]
    return f"truncate after {place} tokens"


def _nest(tokens: Tokens, random: np.random.Generator) -> str:
    place = _any(tokens, random)
    bracket = "([{<"[int(random.integers(4))]
    count = (20, 200, 5000)[int(random.integers(3))]
    tokens.insert(place, ("other", bracket * count))
    return f"insert {count} times {bracket}"


EDITS: tuple[tuple[int, Callable[[Tokens, np.random.Generator], str]], ...] = (
    (2, _delete),
    (2, _duplicate),
    (3, _swap),
    (5, _replace),
    (5, _special),
    (6, _nudge),
    (1, _insert),
    (3, _delete_line),
    (3, _duplicate_line),
    (3, _move_line),
    (1, _truncate),
    (1, _nest),
)
"""Edits, and how likely they are."""

BYTES = 0.03
"""How often bytes are damaged too, so that the text is not UTF-8."""

LOCATED = 0.15
"""How often a text has locations, as files have. They are most of its tokens."""

EDIT_COUNTS = (1, 1, 1, 2, 3)


def _joined(tokens: Tokens) -> str:
    return "".join(text for _, text in tokens)


def _short(text: str) -> str:
    text = text.strip()
    return ascii(text if len(text) <= 40 else f"{text[:37]}...")


def damage_text(text: str, random: np.random.Generator) -> Damaged:
    """A text after one to three edits of its tokens."""
    tokens = tokens_of(text)
    weights = np.array([weight for weight, _ in EDITS], float)
    done: list[str] = []
    for _ in range(EDIT_COUNTS[int(random.integers(len(EDIT_COUNTS)))]):
        _, edit = EDITS[int(random.choice(len(EDITS), p=weights / weights.sum()))]
        if len(_places(tokens)) > 1:
            done.append(edit(tokens, random))
    data = _joined(tokens).encode("utf-8", "surrogatepass")
    if random.random() < BYTES and data:
        place = int(random.integers(len(data)))
        data = data[:place] + bytes([int(random.integers(128, 256))]) + data[place + 1 :]
        done.append(f"damage byte {place}")
    return Damaged(data, "; ".join(done))


def damaged_text(random: np.random.Generator, level: str) -> Case:
    """A program of a level whose text is damaged."""
    files = any_program(level, random)
    located = random.random() < LOCATED
    text = with_version(files.text) if located else files.program.text
    made = damage_text(text, random)
    return model_case(MODULE, made, random, files.blobs, files.target, is_source=level == "nn")
