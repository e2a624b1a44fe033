"""What kernels are compiled for."""

import pytest

from abele.backends.host import processor as home
from abele.backends.host.processor import FEATURES, NAME, Processor, processor
from abele.ir.errors import InputError

pytest.importorskip("llvmlite")

OLD = Processor("x86_64", "haswell", "+avx2,+fma,+f16c,-avx512f")


@pytest.fixture(autouse=True)
def _old_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (NAME, FEATURES):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(home, "host", lambda: OLD)
    home._processor.cache_clear()


def test_it_is_that_of_the_host():
    assert processor() == OLD
    assert OLD.has("avx2", "fma")
    assert not OLD.has("avx2", "avx512f")
    assert OLD.missing == ""


def test_what_kernels_do_without_is_taken_away():
    wide = Processor("x86_64", "znver4", "+avx2,+avx512f,+avx512bw,+fma,-avx512er")
    assert wide.without("avx512").features == "+avx2,-avx512f,-avx512bw,+fma,-avx512er"


@pytest.mark.parametrize(
    ("family", "features", "missing"),
    [
        ("x86_64", "+avx2,+fma", "the processor has no f16c"),
        ("x86_64", "+avx", "the processor has no avx2 and no fma and no f16c"),
        ("aarch64", "", ""),
        ("riscv64", "+v", "kernels have not been tried on riscv64"),
    ],
)
def test_a_processor_that_kernels_cannot_run_on_says_why(family: str, features: str, missing: str):
    assert Processor(family, "any", features).missing == missing


def test_settings_of_numba_name_another_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(NAME, "ivybridge")
    monkeypatch.setenv(FEATURES, "+f16c")
    assert processor() == Processor("x86_64", "ivybridge", "+f16c")
    assert processor().settings == {NAME: "ivybridge", FEATURES: "+f16c"}
    monkeypatch.delenv(FEATURES)
    assert processor().features == OLD.features
    monkeypatch.setenv(NAME, "generic")
    assert processor().features == ""


def test_what_the_host_cannot_execute_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(FEATURES, "+avx2,+avx512f,-avx512bw")
    with pytest.raises(InputError, match="^NUMBA_CPU_FEATURES: .* has no avx512f; .* unset"):
        processor()
