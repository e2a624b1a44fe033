"""The words of abele's languages: one table each, for Pygments and for TextMate.

The patterns mean the same to Python's `re` and to Oniguruma, which TextMate grammars use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A kind of word.

    Attributes:
        pattern: matched at the start of the remaining text.
        token: for Pygments.
        scope: for TextMate; "" for words that editors leave plain.
    """

    pattern: str
    token: str
    scope: str = ""


@dataclass(frozen=True)
class Language:
    """A language.

    Attributes:
        words: the first match counts.
        suffix: of its files.
    """

    name: str
    aliases: tuple[str, ...]
    suffix: str
    words: tuple[Word, ...]


TEXT = Word(r'"(?:\\.|[^"\\\n])*"', "String.Double", "string.quoted.double")
NEWLINE = Word(r"\n", "Text.Whitespace")
BLANKS = Word(r"[ \t\r]+", "Text.Whitespace")
ELEMENT_TYPE = r"(?:[su]?i[0-9]+|bf16|tf32|f[0-9]+(?:E[0-9]+M[0-9]+\w*)?|index)\b"

MLIR = Language(
    "MLIR",
    ("mlir", "abele-mlir"),
    ".mlir",
    (
        Word(r"//[^\n]*", "Comment.Single", "comment.line.double-slash"),
        TEXT,
        Word(r'@(?:[\w.$-]+|"(?:\\.|[^"\\\n])*")', "Name.Function", "entity.name.function"),
        Word(r"%[\w.$-]+(?:[:#][0-9]+)?", "Name.Variable", "variable.other"),
        Word(r"\^[\w.$-]+", "Name.Label", "entity.name.label"),
        Word(r"#[A-Za-z_][\w.$-]*", "Name.Attribute", "entity.other.attribute-name"),
        Word(r"![A-Za-z_][\w.$-]*", "Keyword.Type", "storage.type"),
        # 4x8x of tensor<4x8xf32>.
        Word(r"(?:(?:[0-9]+|\?)x)+(?=[a-z])", "Number.Integer", "constant.numeric"),
        Word(ELEMENT_TYPE, "Keyword.Type", "storage.type"),
        Word(r"(?:tensor|memref|vector|tuple|complex)\b", "Keyword.Type", "storage.type"),
        Word(r"(?:true|false|unit|none)\b", "Keyword.Constant", "constant.language"),
        Word(r"[A-Za-z_][\w$]*(?:\.[\w$-]+)+", "Name.Builtin", "support.function"),
        Word(r"0x[0-9A-Fa-f]+\b", "Number.Hex", "constant.numeric"),
        Word(
            r"[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)",
            "Number.Float",
            "constant.numeric",
        ),
        Word(r"[0-9]+", "Number.Integer", "constant.numeric"),
        # A word with a dash, such as host-name, is one word.
        Word(r"[A-Za-z_][\w$]*(?:-[A-Za-z_][\w$]*)*", "Name"),
        Word(r"->|::|==|>=|\.\.\.|[-+*/=?|&.]", "Operator", "keyword.operator"),
        Word(r"[(){}\[\]<>,:;]", "Punctuation"),
        NEWLINE,
        BLANKS,
    ),
)

RULES = Language(
    "abele rules",
    ("rw", "abele-rules"),
    ".rw",
    (
        # After an expression, // is a division.
        Word(r"^[ \t]*//[^\n]*", "Comment.Single", "comment.line.double-slash"),
        TEXT,
        Word(r"@[A-Za-z_]\w*", "Name.Decorator", "entity.name.function.decorator"),
        Word(
            r"(?:rule|lower|guard|function|class|takes|leaves|rounds)\b",
            "Keyword.Declaration",
            "keyword.declaration",
        ),
        Word(r"(?:where|let|as|like|erase|type)\b", "Keyword", "keyword.control"),
        Word(r"(?:and|or|not)\b", "Operator.Word", "keyword.operator.word"),
        Word(r"(?:true|false|none)\b", "Keyword.Constant", "constant.language"),
        Word(ELEMENT_TYPE, "Keyword.Type", "storage.type"),
        Word(r"[a-z_][a-z_0-9]*\.[a-zA-Z_][\w.]*", "Name.Builtin", "support.function"),
        Word(r"\.\.\.", "Operator", "keyword.operator"),
        Word(r"[A-Za-z_]\w*(?=\()", "Name.Function", "entity.name.function"),
        Word(r"[A-Za-z_]\w*", "Name.Variable", "variable.other"),
        Word(
            r"[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)",
            "Number.Float",
            "constant.numeric",
        ),
        Word(r"[0-9]+", "Number.Integer", "constant.numeric"),
        Word(r"=>|->|==|!=|<=|>=|//|[-+*/%<>=|#?.]", "Operator", "keyword.operator"),
        Word(r"[(){}\[\],:;]", "Punctuation"),
        NEWLINE,
        BLANKS,
    ),
)

LANGUAGES: Mapping[str, Language] = {each.suffix: each for each in (MLIR, RULES)}
"""The languages by the suffix of their files."""
