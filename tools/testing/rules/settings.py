"""The settings and the report of a check of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ....ir.rules import RuleSet
from ....ir.upstream import ModulePass
from ..generators.build import Operators
from ..generators.sketch import DATA, Data
from ..search.report import Report
from ..search.settings import Budget, BudgetOptions

Property: TypeAlias = Literal["keeps_the_meaning", "fires_only_where_it_fits"]
"""The first is tested on programs that the rule matches, the second on near-misses."""

PROPERTIES: tuple[Property, ...] = ("keeps_the_meaning", "fires_only_where_it_fits")


@dataclass
class RuleReport(Report):
    """The counts of a check of rules.

    Attributes:
        misses: number of near-miss programs, by the change that makes them miss.
        spared: number of programs that need not run, because the rule is proved.
    """

    misses: Counter[str] = field(default_factory=Counter[str])
    spared: int = 0


class RuleOptions(BudgetOptions, total=False):
    """The keywords of check_rule and check_rules: the fields of RuleSettings."""

    rules: RuleSet | None
    operators: Operators | None
    lowered_by: Sequence[ModulePass]
    properties: Sequence[Property]
    data: Sequence[Data]
    report: RuleReport | None


@dataclass(frozen=True, kw_only=True)
class RuleSettings(Budget):
    """The budget and the subject of a check of a rule.

    Attributes:
        rules: the set that the rule belongs to. A lowering rule is applied together with all others
            of its set, and abele's own passes lower the remaining operations.
        operators: the operators to generate programs from; abele's own if None.
        lowered_by: passes that give a meaning to operations of a user's dialect. If a program has
            such operations, its expected results are those of the program after these passes and
            after the lowering rules of its set.
        properties: the properties to test. The budget's examples are for each of them.
        data: the kinds of values in the programs.
        report: the report to fill in; a new one if None.
    """

    rules: RuleSet | None = None
    operators: Operators | None = None
    lowered_by: Sequence[ModulePass] = ()
    properties: Sequence[Property] = PROPERTIES
    data: Sequence[Data] = DATA
    report: RuleReport | None = None
