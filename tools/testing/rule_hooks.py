"""What other plug-ins may add to the tests of a rule file: hooks of pytest.

A proof of a rule is such a plug-in. It stands above the kit, because it runs programs with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .plugin import RuleCollector, RuleItem


@pytest.hookspec
def pytest_abele_rule_tests(collector: RuleCollector) -> Sequence[pytest.Item]:  # pyright: ignore[reportReturnType]
    """Further tests of a rule, which run before the others."""


@pytest.hookspec(firstresult=True)
def pytest_abele_rule_examples(item: RuleItem, examples: int) -> int | None:
    """The number of programs that are enough for a test, if it is known to need fewer.

    Args:
        examples: the number without this hook.
    """
