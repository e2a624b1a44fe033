import pytest

from abele.tools.testing.search import shrink


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are made small for 0.2 s, not for a minute. Forked processes inherit it."""
    monkeypatch.setattr(shrink, "SHRINKING", 0.2)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch, hasty: None) -> None:
    """Failures are made as small as they get, even on a slow machine."""
    monkeypatch.setattr(shrink, "SHRINKING", 60.0)
