"""Tests of rewrite rules, on programs made from a rule's left side and on near-misses of it.

    pytest --rules my_rules.rw

    def test_mine(check_rules):         # a fixture of the pytest plug-in
        check_rules("my_rules.rw")

A rule must fire wherever its text says that it matches, keep the meaning of the program, and fire
nowhere else.

Each name is loaded on first use, so that the pytest plug-in loads only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .failures import NeverFired, RuleFailed, RuleWrong
    from .rule_check import check_rule, check_rule_on, check_rules, lowering_passes, rules_of
    from .settings import PROPERTIES, RuleReport

_HOME = {
    "PROPERTIES": "settings",
    "RuleReport": "settings",
    "check_rule": "rule_check",
    "check_rule_on": "rule_check",
    "check_rules": "rule_check",
    "lowering_passes": "rule_check",
    "rules_of": "rule_check",
    "NeverFired": "failures",
    "RuleFailed": "failures",
    "RuleWrong": "failures",
}
"""The file of this folder that defines each name."""

__all__ = [
    "PROPERTIES",
    "NeverFired",
    "RuleFailed",
    "RuleReport",
    "RuleWrong",
    "check_rule",
    "check_rule_on",
    "check_rules",
    "lowering_passes",
    "rules_of",
]


def __getattr__(name: str) -> object:
    """Load a name of this folder."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
