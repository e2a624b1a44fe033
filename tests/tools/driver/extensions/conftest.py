from collections.abc import Generator
from pathlib import Path

import pytest
from some_extensions import RELU, SOFT, loads_taken_back


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None]:
    """Whatever a test loads is taken back; reproducers go to the test's folder."""
    monkeypatch.chdir(tmp_path)
    with loads_taken_back():
        yield


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
