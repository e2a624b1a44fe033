"""The rule language: rewrite rules that are checked before they run."""

from .library import function, guard, means, once_a_pass, op_class
from .python_rule import PythonRule, bind_python_rules, rewrite
from .rule_set import RuleSet, RulesPass, parse_rule_set, read_rule_set, rules_pass
from .vocabulary import Vocabulary

__all__ = [
    "PythonRule",
    "RuleSet",
    "RulesPass",
    "Vocabulary",
    "bind_python_rules",
    "function",
    "guard",
    "means",
    "once_a_pass",
    "op_class",
    "parse_rule_set",
    "read_rule_set",
    "rewrite",
    "rules_pass",
]
