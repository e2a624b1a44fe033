from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from built_steps import values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from abele.passes.stablehlo_to_nn.windows_at_indices import (
    Windows,
    gathered,
    scattered,
    sliced_at,
    updated_at,
)

Array = NDArray[Any]

MERGED = {
    "last": lambda old, new: new,
    "sum": lambda old, new: old + new,
    "prod": lambda old, new: old * new,
    "max": max,
    "min": min,
}


@dataclass(frozen=True)
class Case:
    """Windows of a tensor, the shape of their indices, and that of all windows."""

    windows: Windows
    indices: tuple[int, ...]
    updates: tuple[int, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any windows: batch axes, missing axes, axes without an index, components in any order."""
    rank = draw(st.integers(1, 3))
    shape = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    roles = draw(st.lists(st.sampled_from("bmpp"), min_size=rank, max_size=rank))
    sizes = [
        1 if role in "bm" else draw(st.integers(1, n)) for role, n in zip(roles, shape, strict=True)
    ]
    batching = tuple(a for a in range(rank) if roles[a] == "b")
    placed = tuple(a for a in range(rank) if roles[a] == "p")
    may_start = [a for a in range(rank) if roles[a] != "b"]
    starts = tuple(draw(st.lists(st.sampled_from(may_start), unique=True))) if may_start else ()
    batch = [shape[a] for a in batching] + draw(st.lists(st.integers(1, 3), max_size=1))
    order = draw(st.permutations(range(len(batch))))
    batch = [batch[i] for i in order]
    along = draw(st.integers(0, len(batch)))
    if len(starts) == 1 and draw(st.booleans()):
        along, indices = len(batch), tuple(batch)
    else:
        indices = (*batch[:along], len(starts), *batch[along:])
    of_indices = [d for d in range(len(indices)) if d != along]
    batch_axes = tuple(of_indices[order.index(i)] for i in range(len(batching)))
    count = len(batch) + len(placed)
    at = tuple(sorted(draw(st.permutations(range(count)))[: len(placed)]))
    whole, left = [0] * count, iter(batch)
    own = dict(zip(at, placed, strict=True))
    for d in range(count):
        whole[d] = sizes[own[d]] if d in own else next(left)
    windows = Windows(tuple(shape), tuple(sizes), placed, at, starts, along, batching, batch_axes)
    return Case(windows, indices, tuple(whole))


def places(case: Case, indices: Array, *, clamps: bool) -> dict[tuple[int, ...], Any]:
    """By index of all windows, the index in the tensor, or None if a window does not lie inside.

    It follows the words of the specification, one element at a time.
    """
    windows, found = case.windows, {}
    for where in product(*map(range, case.updates)):
        batch = [i for d, i in enumerate(where) if d not in windows.at]
        index = dict(zip([d for d in range(len(case.indices)) if d != windows.along], batch))
        start = [0] * len(windows.shape)
        for component, axis in enumerate(windows.starts):
            full = tuple(index.get(d, component) for d in range(len(case.indices)))
            start[axis] = int(indices[full])
        limits = [n - m for n, m in zip(windows.shape, windows.sizes, strict=True)]
        if clamps:
            start = [min(max(s, 0), limit) for s, limit in zip(start, limits, strict=True)]
        inside = all(0 <= s <= limit for s, limit in zip(start, limits, strict=True))
        for axis, d in zip(windows.batching, windows.batch_axes, strict=True):
            start[axis] = index[d]
        for axis, d in zip(windows.placed, windows.at, strict=True):
            start[axis] += where[d]
        found[where] = tuple(start) if inside else None
    return found


def indices_of(data: st.DataObject, case: Case) -> Array:
    """Indices of a case, some of them outside of the tensor."""
    dtype = data.draw(st.sampled_from([np.int32, np.int64, np.int8, np.uint8, np.uint32]))
    low = 0 if np.dtype(dtype).kind == "u" else -2
    count = int(np.prod(case.indices))
    drawn = data.draw(st.lists(st.integers(low, 5), min_size=count, max_size=count))
    return np.array(drawn, dtype).reshape(case.indices)


@settings(max_examples=150, deadline=None)
@given(cases(), st.data())
def test_gathered_windows_are_what_the_specification_says(case: Case, data: st.DataObject) -> None:
    operand = np.arange(np.prod(case.windows.shape), dtype=np.int32).reshape(case.windows.shape)
    indices = indices_of(data, case)
    known = indices if data.draw(st.booleans()) else None
    found = values_of(lambda new, x, i: gathered(new, x, i, case.windows, known), operand, indices)
    want = np.zeros(case.updates, np.int32)
    for where, place in places(case, indices, clamps=True).items():
        want[where] = operand[place]
    np.testing.assert_array_equal(found, want)


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from(sorted(MERGED)), st.data())
def test_scattered_windows_are_what_xla_does(case: Case, how: str, data: st.DataObject) -> None:
    operand = np.arange(np.prod(case.windows.shape), dtype=np.int32).reshape(case.windows.shape)
    updates = np.arange(np.prod(case.updates), dtype=np.int32).reshape(case.updates) % 5 - 2
    indices = indices_of(data, case)
    known = indices if data.draw(st.booleans()) else None
    found = values_of(
        lambda new, x, i, u: scattered(new, x, i, u, case.windows, how, known),
        operand,
        indices,
        updates,
    )
    want = operand.copy()
    # Updates follow one another in row-major order of the batch, then of the window.
    for where, place in places(case, indices, clamps=False).items():
        if place is not None and how != "last":
            want[place] = MERGED[how](want[place], updates[where])
    if how == "last":
        names = [d for d in range(len(case.updates)) if d not in case.windows.at]
        order = sorted(
            places(case, indices, clamps=False).items(), key=lambda e: [e[0][d] for d in names]
        )
        for where, place in order:
            if place is not None:
                want[place] = updates[where]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("how", ["sum", "prod", "max", "min", "last"])
def test_truth_values_are_merged_as_truth_values(how: str) -> None:
    operand, updates = np.array([True, False, True, False]), np.array([True, True, False, False])
    indices = np.array([[0], [1], [2], [9]], np.int32)
    windows = Windows((4,), (1,), (), (), (0,), 1)
    found = values_of(
        lambda new, x, i, u: scattered(new, x, i, u, windows, how), operand, indices, updates
    )
    want = {
        "sum": [True, True, True, False],
        "max": [True, True, True, False],
        "prod": [True, False, False, False],
        "min": [True, False, False, False],
        "last": [True, True, False, False],
    }
    np.testing.assert_array_equal(found, want[how])


def test_an_update_that_is_left_out_keeps_the_sign_of_zero() -> None:
    operand, indices = np.array([-0.0, 1.0], np.float32), np.array([[7]], np.int32)
    windows = Windows((2,), (1,), (), (), (0,), 1)
    found = values_of(
        lambda new, x, i, u: scattered(new, x, i, u, windows, "sum"),
        operand,
        indices,
        np.array([5.0], np.float32),
    )
    assert np.signbit(found[0])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_boxes_that_begin_at_indices_are_read_and_replaced(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    sizes = tuple(data.draw(st.integers(1, n)) for n in shape)
    first = [data.draw(st.integers(-3, 7)) for _ in shape]
    now = [data.draw(st.booleans()) for _ in shape]
    operand = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    update = -1 - np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    at = [min(max(s, 0), n - m) for s, n, m in zip(first, shape, sizes, strict=True)]
    box = tuple(slice(s, s + m) for s, m in zip(at, sizes, strict=True))
    want = operand.copy()
    want[box] = update

    def build(new: Any, x: Any, u: Any, *given: Any) -> Any:
        starts = [s if known else v for s, known, v in zip(first, now, given, strict=True)]
        return [sliced_at(new, x, starts, sizes), updated_at(new, x, u, starts)]

    given_starts = [np.array(s, np.int32) for s in first]
    read, replaced = values_of(build, operand, update, *given_starts)
    np.testing.assert_array_equal(read, operand[box])
    np.testing.assert_array_equal(replaced, want)
