"""What other plug-ins may add to the tests of a rule file: hooks of pytest.

A proof of a rule is such a plug-in. It stands above the kit, because it runs programs with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest


@pytest.hookspec
def pytest_abele_rule_tests(collector: pytest.Collector) -> Sequence[pytest.Item]:  # pyright: ignore[reportReturnType]
    """Further tests of a rule, which run before the others."""


@pytest.hookspec(firstresult=True)
def pytest_abele_rule_examples(item: pytest.Item, examples: int) -> int | None:
    """The number of programs that are enough for a test, if it is known to need fewer.

    Args:
        examples: the number without this hook.
    """
