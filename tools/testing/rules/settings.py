"""The settings of a check of rules, and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ....ir.rules import RuleSet
from ..generators.build import Operators
from ..generators.sketch import DATA, Data
from ..search.report import Report
from ..search.settings import Budget, BudgetOptions

Property: TypeAlias = Literal["keeps_the_meaning", "fires_only_where_it_fits"]
"""What to test: the first on programs that the rule matches, the second on near-misses."""

PROPERTIES: tuple[Property, ...] = ("keeps_the_meaning", "fires_only_where_it_fits")


@dataclass
class RuleReport(Report):
    """What a check of rules has looked at.

    misses: number of near-miss programs, by what was changed in them.
    """

    misses: Counter[str] = field(default_factory=Counter[str])


class RuleOptions(BudgetOptions, total=False):
    """The keywords of check_rule and check_rules: the fields of RuleSettings."""

    rules: RuleSet | None
    operators: Operators | None
    properties: Sequence[Property]
    data: Sequence[Data]
    report: RuleReport | None


@dataclass(frozen=True, kw_only=True)
class RuleSettings(Budget):
    """The budget of a check of a rule, and what to test.

    rules: the set that the rule belongs to. A lower is applied together with all others of its set,
    and abele's own passes lower what they leave.
    operators: the operators of a context with the rule's dialects; abele's own if None.
    properties: which properties to test; examples counts the programs for each.
    data: the kinds of values in the programs.
    report: the report to fill in; a new one if None.
    """

    rules: RuleSet | None = None
    operators: Operators | None = None
    properties: Sequence[Property] = PROPERTIES
    data: Sequence[Data] = DATA
    report: RuleReport | None = None
