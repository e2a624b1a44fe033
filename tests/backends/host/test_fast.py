"""Compiled calls write the bytes that the NumPy calls write, superstep by superstep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_programs import Case, cases, exchange_module

from abele.backends.codelets.stamps import History
from abele.backends.evaluate.binder import Binder
from abele.backends.host.fast import FastBinder
from abele.backends.machine import Machine, Observer
from abele.backends.target import resolve_target
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

TINY = resolve_target("tiny:16")
LARGE = resolve_target("tiny:16,memory.bytes_per_tile=32000000")
LARGE_POINTS = 700_000

BINDERS = Binder, FastBinder

pytest.importorskip("numba")
pytestmark = pytest.mark.each_form


class Bytes(Observer):
    """The bytes of all tiles after each superstep."""

    def __init__(self) -> None:
        self.seen: dict[str, np.ndarray] = {}

    def on_superstep(self, op, machine: Machine) -> None:
        self.seen[op.sym_name.data] = machine.memory[:, : machine.target.bytes_per_tile].copy()


class Values(Observer):
    """The values of all variables after each superstep."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], np.ndarray] = {}

    def on_superstep(self, op, machine: Machine) -> None:
        step = op.sym_name.data
        self.seen.update({(step, name): machine.read(name) for name in machine.variables})


def watched(
    watch, case: Case, inputs: dict[str, np.ndarray], binder: type[Binder], target=TINY
) -> dict:
    """What a run leaves behind; the second run, so that what is kept between runs counts."""
    machine = Machine(exchange_module(case), target, observers=[watch], binder=binder)
    machine.run({name: np.zeros_like(x) for name, x in inputs.items()})
    machine.run(inputs)
    return watch.seen


def normal(case: Case) -> dict[str, np.ndarray]:
    """Normal values for operands that are floats."""
    rng = np.random.default_rng(case.seed)
    return {
        f"x{i}": rng.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind == "f" else x
        for i, x in enumerate(case.operands())
    }


@settings(max_examples=50, deadline=None)
@given(cases())
def test_kernels_change_no_byte(case: Case):
    inputs = normal(case)
    plain, quick = (watched(Bytes(), case, inputs, each) for each in BINDERS)
    assert list(plain) == list(quick)
    for name, expected in plain.items():
        assert (quick[name] == expected).all(), name


@settings(max_examples=40, deadline=None)
@given(cases())
def test_kernels_know_infinities_and_zeros_of_either_sign(case: Case):
    # Where two NaN meet, either may be left.
    inputs, rng = normal(case), np.random.default_rng(case.seed)
    for x in inputs.values():
        if x.dtype.kind == "f":
            which = rng.integers(0, 12, x.shape)
            for at, value in enumerate((0.0, -0.0, np.inf, np.nan)):
                x[which == at] = value
    plain, quick = (watched(Values(), case, inputs, each) for each in BINDERS)
    for name, expected in plain.items():
        actual = quick[name]
        np.testing.assert_array_equal(actual, expected, str(name))
        if expected.dtype.kind == "f":
            there = ~np.isnan(expected)
            assert (np.signbit(actual) == np.signbit(expected))[there].all(), name


@st.composite
def large_sums(draw: st.DrawFn) -> Structure:
    """Sums, of products or not, whose sizes are those of vectors, panels and blocks and beyond.

    o and c may be in either operand, g is in both; windows have steps; any order of axes.
    """
    g, o = draw(st.sampled_from([1, 1, 5])), draw(st.sampled_from([1, 3, 13, 70]))
    y, x = draw(st.sampled_from([1, 4, 9])), draw(st.sampled_from([1, 2, 7, 16, 35, 200]))
    # All blocks may be on one tile, which has to hold them.
    c = draw(st.sampled_from([n for n in (1, 2, 19, 90) if g * o * y * x * n <= LARGE_POINTS]))
    k = draw(st.sampled_from([1, 3]))
    stride = draw(st.integers(1, 2))
    dims = (
        *(Dim("g", g), Dim("o", o), Dim("y", y), Dim("x", x)),
        *(Dim("c", c, "reduction"), Dim("k", k, "reduction")),
    )

    def order(axes: list[AxisMap]) -> AccessMap:
        return AccessMap(tuple(draw(st.permutations(axes))))

    def plain(d: int) -> AxisMap:
        return AxisMap(dims[d].size, ((d, 1),))

    window = AxisMap((x - 1) * stride + k, ((3, stride), (5, 1)))
    image = order([plain(0), plain(4), plain(2), window])
    names = list(draw(st.permutations((0, 1, 2, 3))))
    result = identity_map(tuple(names), tuple(dims[d].size for d in names))
    if draw(st.integers(0, 2)) == 0:
        body = Body("identity", draw(st.sampled_from(["sum", "max", "min", "prod"])))
        image = AccessMap((*image.axes, plain(1)))
        return Structure(Space(dims, (image,), (result,)), body)
    weights = order([plain(0), plain(1), plain(4), plain(5)])
    operands = (image, weights) if draw(st.booleans()) else (weights, image)
    return Structure(Space(dims, operands, (result,)), Body("mul", "sum"))


@settings(max_examples=12, deadline=None)
@given(cases(large_sums(), ("float32", "float32", "float16")))
def test_kernels_change_no_byte_of_large_sums(case: Case):
    inputs = normal(case)
    plain, quick = (watched(Values(), case, inputs, each, LARGE) for each in BINDERS)
    for name, expected in plain.items():
        assert quick[name].tobytes() == expected.tobytes(), name


@settings(max_examples=12, deadline=None)
@given(cases(large_sums(), ("float32", "float32", "float16")))
def test_packed_weights_change_no_byte_without_kernels(case: Case):
    inputs = normal(case)
    plain = watched(Values(), case, inputs, Binder, LARGE)
    with pytest.MonkeyPatch.context() as patch:
        # As if all variables held their values from one run to the next, which these do not.
        patch.setattr(
            "abele.backends.machine.History",
            lambda over, states: History(over, [True] * len(states)),
        )
        kept = watched(Values(), case, inputs, Binder, LARGE)
    for name, expected in plain.items():
        assert kept[name].tobytes() == expected.tobytes(), name
