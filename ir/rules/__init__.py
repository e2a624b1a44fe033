"""The rule language: laws of rewriting, checked before they run."""

from .library import function, guard, op_class
from .rule_set import RuleSet, parse_rule_set, read_rule_set, rules_pass
from .vocabulary import Vocabulary

__all__ = [
    "RuleSet",
    "Vocabulary",
    "function",
    "guard",
    "op_class",
    "parse_rule_set",
    "read_rule_set",
    "rules_pass",
]
