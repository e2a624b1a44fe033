"""From a file to rules that have passed every check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..context import AbeleContext
from .check import check_rules
from .rule_set import RuleSet, read_rule_set
from .vocabulary import Vocabulary


def load_rules(path: Path, context: AbeleContext) -> RuleSet:
    """The rules of a .rw file, about the operations that a context knows, tried on small programs.

    Raises InputError for all that is wrong with them; what check_rules only remarks becomes their
    warnings.
    """
    rules = read_rule_set(path, Vocabulary(context))
    return replace(rules, warnings=tuple(map(str, check_rules(rules))))
