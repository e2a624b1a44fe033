"""Combiners of several values: the codelets, and the bounds of the reference, by definition."""

import math

import numpy as np
import pytest

from abele.backends.codelets.numerics import Placed, run_vertices
from abele.backends.reference import evaluate_structure, worst_of
from abele.dialects.abele import Plan
from abele.dialects.combiners import MEMBERS, TUPLE_COMBINERS, Extreme
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Position, Space

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
INF, NAN = math.inf, math.nan
ROWS = [
    [1.0, 3.0, 3.0, -2.0, 0.5],
    [0.0, -0.0, 0.0, -0.0, 0.0],
    [-INF, -INF, -INF, -INF, -INF],
    [2.0, NAN, 5.0, NAN, 1.0],
    [INF, 1.0, INF, -INF, 0.0],
    [7.5, 7.25, 7.5, 7.0, 7.125],
]


def structure(body: Body, columns: int, rows: int = len(ROWS)) -> Structure:
    """Rows whose columns are merged; members have one operand each."""
    dims = (Dim("m", rows), Dim("k", columns, "reduction"))
    m = AxisMap(rows, ((0, 1),))
    k = AxisMap(columns, ((1, 1),) if columns > 1 else ())
    own = (AccessMap((m, k)),) * body.function_arity
    left = (AccessMap((m,)),) * (len(body.member_kinds) if body.resumes else 0)
    results = (AccessMap((m,)),) * body.result_count
    positions = (Position(AccessMap((k,))),) * body.position_count
    return Structure(Space(dims, (*own, *left), results, (), positions), body)


def placed(array: np.ndarray) -> Placed:
    memory = np.ascontiguousarray(array).reshape(1, -1).view(np.uint8)
    return Placed(memory, 0, array.dtype)


def computed(body: Body, *operands: np.ndarray, element=F32) -> list[np.ndarray]:
    """The results of the codelet, each within the bound of the reference."""
    rows, columns = len(operands[0]), operands[0].shape[-1]
    given = structure(body, columns, rows)
    kinds = body.result_kinds
    results = [np.zeros(rows, I32 if kind == "index" else element) for kind in kinds]
    plan = Plan((1, 1))
    run_vertices(given, plan, [placed(each) for each in operands], *map(placed, results))
    for i, made in enumerate(results):
        value, bound = evaluate_structure(given, operands, made.dtype, made.shape, result=i)
        assert worst_of(made, value, bound).ratio <= 1
    return results


def defined(kind: Extreme, row: list[float]) -> tuple[float, int]:
    """The extreme of a row of Python's numbers, and where it is."""
    if kind.nan_wins and any(math.isnan(x) for x in row):
        best, places = NAN, [i for i, x in enumerate(row) if math.isnan(x)]
    else:
        numbers = [-INF if math.isnan(x) else x for x in row]
        best = max(numbers) if kind.largest else min(numbers)
        places = [i for i, x in enumerate(numbers) if x == best]
    return best, places[-1 if kind.last else 0]


EXTREMES = [each for each in TUPLE_COMBINERS.values() if isinstance(each, Extreme)]


@pytest.mark.parametrize("kind", EXTREMES, ids=lambda kind: kind.name)
def test_an_extreme_follows_the_rules_for_ties_and_nan(kind: Extreme):
    x = np.array(ROWS, np.float32)
    values, index = computed(Body("identity", kind.name), x)
    for row, value, place in zip(ROWS, values, index, strict=True):
        best, where = defined(kind, row)
        np.testing.assert_equal(float(value), best)
        assert place == where


def test_integers_have_extremes_too():
    x = np.array([[3, -5, 3], [-(2**31), -(2**31), -(2**31)]], np.int32)
    for kind in EXTREMES:
        values, index = computed(Body("identity", kind.name), x, element=I32)
        assert [int(v) for v in values] == [defined(kind, row)[0] for row in x.tolist()]
        assert [int(i) for i in index] == [defined(kind, row)[1] for row in x.tolist()]


@pytest.mark.parametrize("combiner", TUPLE_COMBINERS)
@pytest.mark.parametrize("parts", [(1, 4), (2, 3), (2, 2, 1)])
def test_members_of_parts_merge_to_those_of_the_whole(combiner: str, parts: tuple[int, ...]):
    x = np.random.default_rng(1).standard_normal((6, 5)).round(1).astype(np.float32)
    whole = computed(Body("identity", combiner), x)
    cuts = np.split(x, np.cumsum(parts)[:-1], axis=1)
    lifted = [computed(Body("identity", combiner, unfinished=True), part) for part in cuts]
    if isinstance(TUPLE_COMBINERS[combiner], Extreme):
        # A real part reads its position in the whole axis.
        for members, first in zip(lifted, np.cumsum((0, *parts)), strict=False):
            members[1] += np.int32(first)
    members = [np.stack(each, axis=1) for each in zip(*lifted, strict=True)]
    merged = computed(Body(MEMBERS, combiner), *members)
    rest = [np.stack(each, axis=1) for each in zip(*lifted[1:], strict=True)]
    resumed = computed(Body(MEMBERS, combiner, resumes=True), *rest, *lifted[0])
    for expected, found, again in zip(whole, merged, resumed, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(again, expected, rtol=1e-5, atol=1e-7)


def test_a_variance_of_close_numbers_keeps_its_digits():
    x = (1e4 + np.random.default_rng(2).standard_normal((3, 1000))).astype(np.float32)
    _, variance = computed(Body("identity", "moments"), x)
    np.testing.assert_allclose(variance, x.astype(float).var(1), rtol=1e-4)


def test_a_bound_is_exceeded_by_a_wrong_result():
    x = np.random.default_rng(4).standard_normal((1, 64)).astype(np.float32)
    for combiner, change in (("moments", 1e-4), ("exp_sum", 1e-3), ("argmax", 1)):
        given = structure(Body("identity", combiner), 64, 1)
        value, bound = evaluate_structure(given, [x], F32, (1,), result=1)
        assert worst_of((value * (1 + change) + change).astype(F32), value, bound).ratio > 1
