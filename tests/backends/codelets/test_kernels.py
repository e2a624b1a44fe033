"""Compiled kernels write the bytes that the NumPy calls write, superstep by superstep."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tile_programs import Case, cases, exchange_module

from abele.backends.codelets import fast
from abele.backends.machine import Machine, Observer
from abele.backends.target import resolve_target

TINY = resolve_target("tiny:16")
FLOATS = [np.dtype(np.float32), np.dtype(np.float16)]


class Bytes(Observer):
    """The bytes of all tiles after each superstep."""

    def __init__(self) -> None:
        self.seen: dict[str, np.ndarray] = {}

    def on_superstep(self, op, machine: Machine) -> None:
        self.seen[op.sym_name.data] = machine.memory[:, : machine.target.bytes_per_tile].copy()


def bytes_of(case: Case, inputs: dict[str, np.ndarray], wanted: bool) -> dict[str, np.ndarray]:
    """What a run leaves in memory; the second run, so that what is kept between runs counts."""
    watch = Bytes()
    machine = Machine(exchange_module(case), TINY, observers=[watch], fast=wanted)
    machine.run({name: np.zeros_like(x) for name, x in inputs.items()})
    machine.run(inputs)
    return watch.seen


def values(case: Case, special: bool) -> dict[str, np.ndarray]:
    """Normal values; special: zeros of either sign, infinities and NaN among them."""
    rng = np.random.default_rng(case.seed)
    found = {}
    for i, x in enumerate(case.operands()):
        if x.dtype.kind == "f":
            x = rng.standard_normal(x.shape).astype(x.dtype)
            if special:
                which = rng.integers(0, 12, x.shape)
                for at, value in enumerate((0.0, -0.0, np.inf, np.nan)):
                    x[which == at] = value
        found[f"x{i}"] = x
    return found


@settings(max_examples=150, deadline=None)
@given(cases(), st.booleans())
def test_kernels_change_no_byte(case: Case, special: bool):
    inputs = values(case, special)
    plain, quick = (bytes_of(case, inputs, wanted) for wanted in (False, True))
    assert list(plain) == list(quick)
    for name, expected in plain.items():
        assert (quick[name] == expected).all(), name


def test_without_numba_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fast, "find_spec", lambda name: None)
    assert not fast.wanted()
    assert not fast.wanted(True)


def test_the_switch_turns_kernels_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(fast.SWITCH, "0")
    assert not fast.wanted()
    monkeypatch.setenv(fast.SWITCH, "1")
    assert fast.wanted()
