"""Rules under test: programs made from a rule's own left side, and those that it all but fits.

    pytest --rules my_rules.rw

    def test_mine(check_rules):         # a fixture of the pytest plug-in
        check_rules("my_rules.rw")

A rule has to fire wherever its text says that it fits, keep the meaning of the program, and fire
nowhere else.
"""

from .check import PROPERTIES, RuleReport, check_rule, check_rules, rules_of
from .faults import NeverFired, RuleFailed, RuleWrong
from .watch import watching_rules

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
