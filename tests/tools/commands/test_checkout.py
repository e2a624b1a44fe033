"""What the wheel leaves out is refused with one line that says where it is."""

import sys

import pytest

from abele.ir.errors import InputError
from abele.tools.commands.bench import PROGRAMS
from abele.tools.commands.checkout import from_checkout


def test_every_benchmark_is_there_in_a_checkout():
    for name, program in PROGRAMS.items():
        assert callable(program.load(name)), name


@pytest.mark.parametrize("missing", ["abele.tools.workshop", "abele.tools.workshop.kit"])
def test_what_the_wheel_leaves_out_is_in_a_checkout(missing: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "abele.tools.workshop.kit", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match="the wheel leaves it out; need a checkout") as raised:
        from_checkout("..workshop.kit", "bench kit")
    assert str(raised.value).startswith("bench kit measures")


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "abele.tools.bench.measure", raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match="needs onnxruntime, which is not installed: pip install"):
        from_checkout("..bench.measure", "bench light")
