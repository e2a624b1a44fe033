"""Rules under test: programs made from a rule's own left side, and those that it all but fits.

    pytest --rules my_rules.rw

    def test_mine(check_rules):         # a fixture of the pytest plug-in
        check_rules("my_rules.rw")

A rule has to fire wherever its text says that it fits, keep the meaning of the program, and fire
nowhere else.

Names are loaded when they are asked for: checks of passes count what rules do, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .check import PROPERTIES, RuleReport, check_rule, check_rules, rules_of
    from .faults import NeverFired, RuleFailed, RuleWrong
    from .watch import watching_rules

_HOME = {
    "PROPERTIES": "check",
    "RuleReport": "check",
    "check_rule": "check",
    "check_rules": "check",
    "rules_of": "check",
    "NeverFired": "faults",
    "RuleFailed": "faults",
    "RuleWrong": "faults",
    "watching_rules": "watch",
}
"""The file of this folder that each name is defined in."""

__all__ = [
    "PROPERTIES",
    "NeverFired",
    "RuleFailed",
    "RuleReport",
    "RuleWrong",
    "check_rule",
    "check_rules",
    "rules_of",
    "watching_rules",
]


def __getattr__(name: str) -> object:
    """A name of the folder, loaded now."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
