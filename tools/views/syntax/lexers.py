"""Pygments lexers, which documents and terminals use. Pygments finds them by their entry points."""

from __future__ import annotations

from pygments.lexer import RegexLexer
from pygments.token import string_to_tokentype

from .languages import MLIR, RULES, Language


def _tokens(language: Language) -> dict[str, list[tuple[str, object]]]:
    return {"root": [(each.pattern, string_to_tokentype(each.token)) for each in language.words]}


class MlirLexer(RegexLexer):
    """Highlights IR of every level."""

    name = MLIR.name
    aliases = list(MLIR.aliases)
    filenames = [f"*{MLIR.suffix}"]
    tokens = _tokens(MLIR)


class RulesLexer(RegexLexer):
    """Highlights files of rules."""

    name = RULES.name
    aliases = list(RULES.aliases)
    filenames = [f"*{RULES.suffix}"]
    tokens = _tokens(RULES)
