"""The binder that a machine is given."""

import pytest

from abele.backends.evaluate.binder import Binder
from abele.backends.host import switch
from abele.backends.host.binders import best_binder
from abele.backends.host.fast import FastBinder
from abele.backends.host.fusion import FusedBinder


def test_without_numba_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(switch, "find_spec", lambda name: None)
    assert best_binder() is Binder
    assert best_binder(is_watched=True) is Binder


def test_the_switch_turns_kernels_off(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("numba")
    monkeypatch.setenv(switch.SWITCH, "0")
    assert best_binder() is Binder
    monkeypatch.setenv(switch.SWITCH, "1")
    assert best_binder() is FusedBinder


def test_observers_see_every_byte():
    pytest.importorskip("numba")
    assert best_binder(is_watched=True) is FastBinder
    assert FastBinder.keeps_all_bytes
