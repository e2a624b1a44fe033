"""The binder that a machine is given."""

import pytest

from abele.backends.evaluate.binder import Binder
from abele.backends.host.binders import best_binder
from abele.backends.host.fast import FastBinder
from abele.backends.host.fusion import FusedBinder
from abele.backends.host.switch import PLAIN, VARIABLE


def test_the_switch_turns_kernels_off(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("numba")
    monkeypatch.setenv(VARIABLE, PLAIN)
    assert best_binder() is Binder
    assert best_binder(is_watched=True) is Binder
    monkeypatch.setenv(VARIABLE, "narrow")
    assert best_binder() is FusedBinder


def test_observers_see_every_byte():
    pytest.importorskip("numba")
    assert best_binder(is_watched=True) is FastBinder
    assert FastBinder.keeps_all_bytes
