"""From a file to rules that have passed every check."""

from __future__ import annotations

from pathlib import Path

from ..context import AbeleContext
from .rule_set import RuleSet, read_rule_set
from .vocabulary import Vocabulary


def load_rules(path: Path, context: AbeleContext) -> RuleSet:
    """The rules of a .rw file, about the operations that a context knows. Raises InputError."""
    return read_rule_set(path, Vocabulary(context))
