"""Loads the rules of a file and checks them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..context import AbeleContext
from ..support.errors import InputError, one_line
from .lint import lint_rules
from .rule_set import RuleSet, read_rule_set
from .vocabulary import Vocabulary


def load_rules(path: Path, context: AbeleContext) -> RuleSet:
    """The rules of a .rw file, bound to the operations of a context and tried on small programs.

    Raises InputError for mistakes. Remarks of lint_rules become warnings of the rule set.
    """
    try:
        rules = read_rule_set(path, Vocabulary(context))
        return replace(rules, warnings=tuple(map(str, lint_rules(rules))))
    except InputError:
        raise
    except (ArithmeticError, LookupError, RecursionError, ValueError) as error:
        # Without this, the module that the rules are loaded for would be blamed.
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from error
