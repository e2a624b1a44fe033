"""Compiled calls of vertex sets read replicas once, but only while these are equal."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from abele.backends.codelets.calls import run_calls
from abele.backends.codelets.numerics import Placed
from abele.backends.codelets.stamps import History
from abele.backends.host.calls import KernelCall
from abele.backends.host.copies import HostScratch
from abele.backends.host.vertices import BoundVertices, bind_vertices
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Stage, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

pytest.importorskip("numba")

RNG = np.random.default_rng(0)


def tiles(array: np.ndarray, parts: int) -> Placed:
    """Rows of an array, cut among tiles."""
    return Placed(array.reshape(parts, -1).view(np.uint8), 0, array.dtype)


def with_replicas(
    bias: np.ndarray, m: int, equal: Collection[int] = ()
) -> tuple[BoundVertices, History, np.ndarray]:
    """x + bias on tiles that have a row and a bias each, x being zero."""
    parts = len(bias)
    access = identity_map((0, 1), (parts, m))
    once = AccessMap((AxisMap(1), AxisMap(m, ((1, 1),))))
    structure = Structure(
        Space((Dim("n", parts), Dim("m", m)), (access, once), (access,)), Body("add")
    )
    x, result = np.zeros((parts, m), np.float32), np.zeros((parts, m), np.float32)
    history = History([np.array([i]) for i in range(2)], [False, False])
    operands = [
        replace(tiles(a, parts), stamp=stamp)
        for a, stamp in zip((x, bias), history.stamps, strict=True)
    ]
    bound = bind_vertices(
        structure, Plan((parts, 1)), operands, tiles(result, parts), HostScratch(), equal=equal
    )
    return bound, history, result


def test_an_operand_that_is_equal_on_all_tiles_is_read_on_the_first():
    bias = RNG.normal(size=(6, 20)).astype(np.float32)
    bound, history, result = with_replicas(bias, 20)
    assert bound.read_once == set()
    history.stamps[1].write(True)
    # The replicas differ, which shows which of them is read.
    run_calls(bound.calls)
    np.testing.assert_array_equal(result, np.broadcast_to(bias[0], result.shape))
    history.stamps[1].write(False)
    run_calls(bound.calls)
    np.testing.assert_array_equal(result, bias)


def test_an_operand_that_is_always_equal_is_read_on_the_first_tile_whatever_is_known():
    bias = RNG.normal(size=(6, 20)).astype(np.float32)
    bound, history, result = with_replicas(bias, 20, equal=[1])
    assert bound.read_once == {1}
    history.stamps[1].write(False)
    run_calls(bound.calls)
    np.testing.assert_array_equal(result, np.broadcast_to(bias[0], result.shape))


def test_an_operand_that_the_result_is_written_over_is_read_on_each_tile():
    # More rows than are read before any is written.
    n, m = 40, 20
    access = identity_map((0, 1), (n, m))
    once = AccessMap((AxisMap(1), AxisMap(m, ((1, 1),))))
    structure = Structure(Space((Dim("n", n), Dim("m", m)), (access, once), (access,)), Body("add"))
    x, bias = (RNG.normal(size=shape).astype(np.float32) for shape in ((n, m), (1, m)))
    held = np.repeat(bias, n, axis=0)
    (stamp,) = History([np.array([0])], [False]).stamps
    stamp.write(True)
    there = replace(tiles(held, n), stamp=stamp)
    bound = bind_vertices(
        structure, Plan((n, 1)), [tiles(x, n), there], there, HostScratch(), equal=[1]
    )
    assert bound.read_once == set()
    run_calls(bound.calls)
    np.testing.assert_array_equal(held, x + bias)


def test_a_chain_rounds_half_to_even_and_keeps_the_sign_of_zero():
    special = [0.5, 1.5, 2.5, -0.5, -0.2, 8388609.0, 4194304.5, 1e30, np.inf, -np.inf, np.nan]
    x = np.array([*special, *RNG.normal(size=26)], np.float32).reshape(1, -1)
    result = np.empty_like(x)
    access = identity_map((0, 1), x.shape)
    space = Space((Dim("n", 1), Dim("m", x.shape[1])), (access,), (access,))
    body = Body("scale", None, (1.0,), then=(Stage("round"),))
    bound = bind_vertices(
        Structure(space, body), Plan((1, 1)), [tiles(x, 1)], tiles(result, 1), HostScratch()
    )
    run_calls(bound.calls)
    assert result.tobytes() == np.rint(x).tobytes()


def test_values_that_later_stages_read_stay_in_registers():
    """Hard swish of x, less its square, over one more than the square of x."""
    x = RNG.normal(size=(1, 37)).astype(np.float32) * 4
    result = np.empty_like(x)
    access = identity_map((0, 1), x.shape)
    space = Space((Dim("n", 1), Dim("m", x.shape[1])), (access,), (access,))
    stages = (
        Stage("shift", (3.0,)),
        Stage("clip", (0.0, 6.0)),
        Stage("mul", reads=(0, 2)),
        Stage("square"),
        Stage("sub", reads=(3, 4)),
        Stage("square", reads=(0,)),
        Stage("shift", (1.0,)),
        Stage("div", reads=(5, 7)),
        Stage("add", reads=(8, 8)),
    )
    bound = bind_vertices(
        Structure(space, Body("identity", then=stages)),
        Plan((1, 1)),
        [tiles(x, 1)],
        tiles(result, 1),
        HostScratch(),
    )
    run_calls(bound.calls)
    assert any(isinstance(call, KernelCall) for call, _ in bound.calls)
    one, three, six = map(np.float32, (1, 3, 6))
    swish = x * np.minimum(np.maximum(x + three, 0), six)
    expected = (swish - swish * swish) / (x * x + one)
    assert result.tobytes() == (expected + expected).tobytes()
