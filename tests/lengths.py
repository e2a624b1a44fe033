"""Two lengths of one test: a short one for `make test`, and the whole one for `make bench`."""

from typing import Any

import pytest


def large(*values: object, **how: Any) -> Any:
    """Parameters of a case that `make bench` runs, and `make test` leaves out."""
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.large], **how)


def lengths(short: int, *longer: int) -> list[Any]:
    """How many examples a test takes: a few in `make test`, and more in `make bench`."""
    return [short, *map(large, longer)]
