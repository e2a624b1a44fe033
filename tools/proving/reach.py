"""Which rules proofs can reach: those of nn, and of operations that have a meaning as those do."""

from __future__ import annotations

import re

from xdsl.ir import Operation

from ...ir.rules.bound_rule import BoundRule
from ...ir.rules.vocabulary import Vocabulary
from ..testing.rules.rule_check import is_about_onnx
from .steps import READABLE

OWN = "nn."
NAMED = re.compile(r"\b(\w+(?:\.\w+)+)\b")
"""The names of operations in the text of a rule, and other words with a point between them."""


def beyond(rule: BoundRule, vocabulary: Vocabulary) -> str:
    """The name of an operation of a rule that no proof can read; "" if there is none.

    A pattern of several operations counts if none of them can be read.
    """
    groups = [pattern.classes for pattern in rule.variants[0].walk()]
    made = rule.text.partition("=>")[2]
    groups += [frozenset((vocabulary.ops[n],)) for n in NAMED.findall(made) if n in vocabulary.ops]
    for classes in groups:
        if classes and not any(map(_is_readable, classes)):
            return min(each.name for each in classes)
    return ""


def has_programs(rule: BoundRule) -> bool:
    """Whether the testing kit can make programs for a rule that is not of nn alone."""
    return is_about_onnx(rule) or any(map(_is_readable, rule.roots))


def _is_readable(cls: type[Operation]) -> bool:
    return cls.name.startswith(OWN) or issubclass(cls, READABLE)
