"""Scans and sorts agree with their second definition, on special numbers of every dtype."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tile_programs import Case

from abele.backends.reference import evaluate_structure, within
from abele.dialects.abele import Plan
from abele.dialects.along import SCANS, Along
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.ir.support.number_kinds import is_floating

from . import definitions
from .definitions import as_integer
from .test_definitions import DTYPES, numbers
from .test_numerics import run

INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)


def structure(along: Along, shape: tuple[int, ...], axis: int) -> Structure:
    dims = tuple(Dim(f"d{i}", n, "whole" if i == axis else "parallel") for i, n in enumerate(shape))
    every = AccessMap(tuple(AxisMap(n, ((i, 1),)) for i, n in enumerate(shape)))
    return Structure(Space(dims, (every,), (every,)), Body("identity", along=along))


def computed(along: Along, values: np.ndarray) -> np.ndarray:
    """A sequence along the rows of a matrix, of which each tile has one."""
    result = INT32 if along.name == "sort_indices" else values.dtype
    plan = Plan((len(values), 1))
    case = Case(structure(along, values.shape, 1), plan, (values.dtype, result), len(values), 0)
    return run(case, [values])


def rows(dtype: np.dtype[Any]) -> np.ndarray:
    """Special and ordinary numbers in three orders, each of them twice."""
    twice = np.concatenate([numbers(dtype)] * 2)
    return np.stack([np.random.default_rng(seed).permutation(twice) for seed in range(3)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_sort_agrees_with_its_second_definition_to_the_bit(dtype: np.dtype[Any]):
    values = rows(dtype)
    for reverse in (False, True):
        indices = computed(Along("sort_indices", reverse), values)
        found = computed(Along("sort", reverse), values)
        for row, at, put in zip(values, indices, found, strict=True):
            order = definitions.in_order(row.astype(object).tolist(), reverse=reverse)
            assert at.tolist() == order
            assert put.tobytes() == row[order].tobytes()


MERGES: dict[str, Callable[[int, int], int]] = {
    "sum": lambda x, y: x + y,
    "prod": lambda x, y: x * y,
    "max": max,
    "min": min,
}


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "iu"], ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_of_integers_agrees_with_its_second_definition(name: str, dtype: np.dtype[Any]):
    values, limits = rows(dtype), np.iinfo(dtype)
    first = {"sum": 0, "prod": 1, "max": int(limits.min), "min": int(limits.max)}[name]
    for reverse, exclusive in product((False, True), repeat=2):
        found = computed(Along(name, reverse, exclusive), values)
        step = -1 if reverse else 1
        for row, got in zip(values.tolist(), found.tolist(), strict=True):
            exact = definitions.scanned(row[::step], MERGES[name], first if exclusive else None)
            assert got[::step] == [as_integer(each, dtype) for each in exact]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if is_floating(d)], ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_of_floats_is_within_its_bound(name: str, dtype: np.dtype[Any]):
    some = np.random.default_rng(1).normal(size=(3, 40)).astype(dtype)
    for values in (some, rows(dtype)):
        for reverse, exclusive in product((False, True), repeat=2):
            along = Along(name, reverse, exclusive)
            found = computed(along, values)
            known = structure(along, values.shape, 1)
            exact, bound = evaluate_structure(known, [values], dtype, values.shape)
            assert within(found, exact, bound) <= 1


def test_the_bound_of_a_running_sum_grows_with_its_terms():
    values = np.ones((1, 5), np.float32)
    _, bound = evaluate_structure(structure(Along("sum"), (1, 5), 1), [values], FLOAT32, (1, 5))
    assert bound[0, 0] == 0
    assert (np.diff(bound[0]) > 0).all()
    assert bound[0, 4] < 6 * 5 * 2.0**-24


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (1, 1)])
def test_a_dimension_may_have_no_element_or_one(shape: tuple[int, int]):
    values = np.ones(shape, np.float32)
    for along in (Along("sum"), Along("sort"), Along("prod", exclusive=True)):
        exact, _ = evaluate_structure(structure(along, shape, 1), [values], FLOAT32, shape)
        np.testing.assert_array_equal(exact, np.ones(shape))
