"""A cache of its own for each test."""

from pathlib import Path

import onnx
import pytest
from some_models import products

from abele.backends.host.load import has_kernels
from abele.backends.host.switch import is_wanted
from abele.backends.host.tasks import NEEDS
from abele.ir.support.private_folder import intrusion
from abele.tools.driver.cache import store


@pytest.fixture(scope="session", autouse=True)
def kernels_of_all_tasks() -> None:
    """Load kernels from the cache of the host: compiling them for each folder takes a minute."""
    if is_wanted():
        assert all(map(has_kernels, NEEDS))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs, which is empty. The working folder has the model net.onnx."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    monkeypatch.setattr(store, "warned", [])
    intrusion.cache_clear()
    onnx.save(products(), "net.onnx")
    return tmp_path / "cache" / "programs"
