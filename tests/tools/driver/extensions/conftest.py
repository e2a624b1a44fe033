from collections.abc import Generator
from pathlib import Path

import pytest
from some_extensions import RELU, SOFT

from abele.ir.user_entries import remove_entries
from abele.tools.driver.extensions import registration


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """Whatever a test loads is taken back; reproducers go to the test's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registration, "REGISTERED", {})
    yield
    for part in registration.REGISTERED.values():
        remove_entries(part.owner)


@pytest.fixture
def soft(tmp_path: Path) -> Path:
    path = tmp_path / "soft.py"
    path.write_text(SOFT)
    return path


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    path = tmp_path / "relu.mlir"
    path.write_text(RELU)
    return path
