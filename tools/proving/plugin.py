"""The part of the pytest plug-in that proves rules: `pytest --rules FILE.rw --prove`.

A test `is_proved` of each rule passes if the rule is proved, fails if it is refuted, and is skipped
if it is not decided. Then fewer programs test a rule that is proved: the matcher and how far
rounding moves results are still tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ...ir.support.errors import InputError
from ..testing.plugin import RuleCollector, RuleItem, RulesFile

if TYPE_CHECKING:
    from ...ir.rules.bound_rule import BoundRule
    from .verdicts import Verdict

VERDICTS = pytest.StashKey[dict[str, "Verdict"]]()
"""The verdicts of this process, by the id of the rule's tests."""
NAME = "is_proved"
LISTED, SIZES = 2, 5
"""A rule that is proved at some sizes needs one of so many programs; one that is proved for all
sizes, one of so many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --prove."""
    group = parser.getgroup("abele", "property tests of compiler passes")
    group.addoption(
        "--prove",
        action="store_true",
        default=False,
        help="prove each rule of --rules; a rule that is proved needs fewer programs",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Look for rules and the solver. Raises UsageError if one is missing."""
    if not config.getoption("--prove"):
        return
    from .solver import z3  # noqa: PLC0415

    if not config.getoption("--rules"):
        raise pytest.UsageError("--prove: no rules; name a file of rules with --rules")
    try:
        _ = z3()
    except InputError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_abele_rule_tests(collector: RuleCollector) -> Sequence[pytest.Item]:
    """The test that proves a rule."""
    if not collector.config.getoption("--prove"):
        return []
    return [ProofItem.from_parent(collector, name=NAME, rule=collector.rule)]


def pytest_abele_rule_examples(item: RuleItem, examples: int) -> int | None:
    """Fewer programs for a rule that is proved, if they test its meaning."""
    assert item.parent is not None
    verdict = item.config.stash.setdefault(VERDICTS, {}).get(item.parent.nodeid)
    if item.name != "keeps_the_meaning" or verdict is None or not verdict.proved:
        return None
    return examples // (LISTED if verdict.kind == "listed shapes" else SIZES)


class RuleRefuted(AssertionError):
    """Raised if a rule is wrong, with a program that shows it."""


class ProofItem(pytest.Item):
    """The test that proves a rule."""

    def __init__(self, *, rule: BoundRule, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.rule = rule

    def runtest(self) -> None:
        """Prove the rule."""
        from .rules import prove  # noqa: PLC0415

        file = self.getparent(RulesFile)
        assert file is not None
        assert self.parent is not None
        verdict = prove(self.rule, file.loaded[0])
        self.config.stash.setdefault(VERDICTS, {})[self.parent.nodeid] = verdict
        self.add_report_section("call", "verdict", verdict.text)
        if verdict.kind == "refuted":
            raise RuleRefuted("\n\n".join(filter(None, (verdict.text, verdict.example))))
        if not verdict.proved:
            pytest.skip(verdict.text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The program that shows what is wrong, without frames of the kit."""
        if isinstance(excinfo.value, RuleRefuted | InputError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The line on which the rule is written."""
        return self.path, self.rule.source.line - 1, f"rule {self.rule.name}: {self.name}"
