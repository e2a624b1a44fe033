"""Compiled kernels write the bytes that the NumPy calls write, superstep by superstep."""

import numpy as np
import pytest
from hypothesis import given, settings
from tile_programs import Case, cases, exchange_module

from abele.backends.codelets import fast
from abele.backends.machine import Machine, Observer
from abele.backends.target import resolve_target

TINY = resolve_target("tiny:16")


class Bytes(Observer):
    """The bytes of all tiles, and the values of all variables, after each superstep."""

    def __init__(self) -> None:
        self.seen: dict[str, np.ndarray] = {}
        self.values: dict[tuple[str, str], np.ndarray] = {}

    def on_superstep(self, op, machine: Machine) -> None:
        step = op.sym_name.data
        self.seen[step] = machine.memory[:, : machine.target.bytes_per_tile].copy()
        self.values.update({(step, name): machine.read(name) for name in machine.variables})


def watched(case: Case, inputs: dict[str, np.ndarray], wanted: bool) -> Bytes:
    """What a run leaves behind; the second run, so that what is kept between runs counts."""
    watch = Bytes()
    machine = Machine(exchange_module(case), TINY, observers=[watch], fast=wanted)
    machine.run({name: np.zeros_like(x) for name, x in inputs.items()})
    machine.run(inputs)
    return watch


def normal(case: Case) -> dict[str, np.ndarray]:
    """Normal values for operands that are floats."""
    rng = np.random.default_rng(case.seed)
    return {
        f"x{i}": rng.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind == "f" else x
        for i, x in enumerate(case.operands())
    }


@settings(max_examples=150, deadline=None)
@given(cases())
def test_kernels_change_no_byte(case: Case):
    inputs = normal(case)
    plain, quick = (watched(case, inputs, wanted).seen for wanted in (False, True))
    assert list(plain) == list(quick)
    for name, expected in plain.items():
        assert (quick[name] == expected).all(), name


@settings(max_examples=100, deadline=None)
@given(cases())
def test_kernels_know_infinities_and_zeros_of_either_sign(case: Case):
    # Where two NaN meet, either may be left.
    inputs, rng = normal(case), np.random.default_rng(case.seed)
    for x in inputs.values():
        if x.dtype.kind == "f":
            which = rng.integers(0, 12, x.shape)
            for at, value in enumerate((0.0, -0.0, np.inf, np.nan)):
                x[which == at] = value
    plain, quick = (watched(case, inputs, wanted).values for wanted in (False, True))
    for name, expected in plain.items():
        actual = quick[name]
        np.testing.assert_array_equal(actual, expected, str(name))
        if expected.dtype.kind == "f":
            there = ~np.isnan(expected)
            assert (np.signbit(actual) == np.signbit(expected))[there].all(), name


def test_without_numba_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fast, "find_spec", lambda name: None)
    assert not fast.wanted()
    assert not fast.wanted(True)


def test_the_switch_turns_kernels_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(fast.SWITCH, "0")
    assert not fast.wanted()
    monkeypatch.setenv(fast.SWITCH, "1")
    assert fast.wanted()
