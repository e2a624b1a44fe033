import numpy as np
import pytest
from some_structures import pointwise

from abele.backends.codelets.numerics import Placed, run_vertices
from abele.backends.reference import (
    evaluate_structure,
    merged,
    parts,
    structure_value,
    within,
)
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Stage, Structure, extras_of
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

CHAINS = [
    (Stage("add"), Stage("relu")),
    (Stage("scale", (0.3,)), Stage("sub", at=1), Stage("tanh")),
    (Stage("div"), Stage("exp"), Stage("log")),
    (Stage("square"), Stage("add"), Stage("sqrt")),
    (Stage("neg"), Stage("sigmoid"), Stage("mul"), Stage("shift", (-0.7,))),
    (Stage("abs"), Stage("leaky_relu", (-3.0,)), Stage("min"), Stage("clip", (-0.5, 6.0))),
]


def chained_product(stages: tuple[Stage, ...], k: int = 30) -> Structure:
    """[9, k] by [k, 8], then stages with extras of 8, [9, 1], 8, ... elements."""
    dims = (Dim("m", 9), Dim("n", 8), Dim("k", k, "reduction"))
    maps = [identity_map((0, 2), (9, k)), identity_map((2, 1), (k, 8))]
    kinds = (identity_map((1,), (8,)), AccessMap((AxisMap(9, ((0, 1),)), AxisMap(1))))
    maps += [kinds[i % 2] for i in range(extras_of(stages))]
    space = Space(dims, tuple(maps), (identity_map((0, 1), (9, 8)),))
    return Structure(space, Body("mul", "sum", (), stages))


def normal_operands(structure: Structure, dtype: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape).astype(dtype) for a in structure.space.operands]


def on_one_tile(structure: Structure, operands: list[np.ndarray], dtype: str) -> np.ndarray:
    """What the codelets make of it."""
    result = np.zeros(structure.space.results[0].shape, dtype)

    def placed(array: np.ndarray) -> Placed:
        return Placed(array.reshape(1, -1).view(np.uint8), 0, array.dtype)

    plan = Plan((1,) * len(structure.space.dims))
    run_vertices(structure, plan, list(map(placed, operands)), placed(result))
    return result


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("stages", CHAINS)
def test_a_chain_stays_within_its_bound_and_a_wrong_stage_does_not(stages, dtype):
    structure = chained_product(stages)
    wrong = chained_product((*stages[:-1], Stage("shift", (0.01,)), stages[-1]))
    for seed in range(20):
        operands = normal_operands(structure, dtype, seed)
        actual = on_one_tile(structure, operands, dtype)
        value, bound = evaluate_structure(structure, operands, actual.dtype, actual.shape)
        assert within(actual, value, bound) <= 1
        value, bound = evaluate_structure(wrong, operands, actual.dtype, actual.shape)
        assert within(actual, value, bound) > 1


@pytest.mark.parametrize("stages", CHAINS)
def test_the_bound_of_a_chain_is_of_the_size_of_its_errors(stages):
    structure = chained_product(stages)
    operands = normal_operands(structure, "float32", 3)
    f32 = np.dtype(np.float32)
    value, bound = evaluate_structure(structure, operands, f32, (9, 8))
    actual = on_one_tile(structure, operands, "float32")
    rough = np.isfinite(value) & np.isfinite(bound) & (bound > 0)
    assert rough.any()
    # Sums of 30 products seldom reach a tenth of their worst case; stages add little to that.
    assert np.median(np.abs(actual[rough] - value[rough]) / bound[rough]) > 0.002
    np.testing.assert_array_equal(value, structure_value(structure, operands, f32, (9, 8)))


@pytest.mark.parametrize("stages", CHAINS)
def test_bounds_computed_piece_by_piece_are_the_same(monkeypatch: pytest.MonkeyPatch, stages):
    structured = chained_product(stages)
    operands = normal_operands(structured, "float16", 5)
    given = (structured, operands, np.dtype(np.float16), (9, 8))
    value, bound = evaluate_structure(*given)
    pieces = []
    at = parts.Parts.at
    monkeypatch.setattr(parts.Parts, "at", lambda *a: pieces.append(a) or at(*a))
    monkeypatch.setattr(merged, "PIECE", 7)
    again, other = evaluate_structure(*given)
    assert len(pieces) > 10
    np.testing.assert_array_equal(again, value)
    np.testing.assert_allclose(other, bound, rtol=1e-12)


def test_functions_that_never_round_leave_a_chain_exact():
    exact = (Stage("relu"), Stage("neg"), Stage("max"), Stage("abs"), Stage("clip", (-2.0, 2.0)))
    operands = [np.array([-1.1, 0, 0.1, 7], np.float16), np.full(4, -0.5, np.float16)]
    for dtype in (np.float16, np.float32):
        value, bound = evaluate_structure(pointwise(exact), operands, np.dtype(dtype), (4,))
        np.testing.assert_array_equal(bound, np.zeros(4))
        assert value.tolist() == [0, 0, float(np.float16(0.1)), 0.5]


def test_the_error_of_a_value_shrinks_and_grows_with_the_chain_after_it():
    base = evaluate_structure(
        chained_product(()), operands := normal_operands(chained_product(()), "float32", 0),
        np.dtype(np.float32), (9, 8),
    )[1]  # fmt: skip
    bounds = {
        stage.function: evaluate_structure(
            chained_product((stage,)), operands, np.dtype(np.float32), (9, 8)
        )[1]
        for stage in (Stage("scale", (64.0,)), Stage("relu"), Stage("tanh"))
    }
    assert (bounds["scale"] > 63 * base).all()
    assert (bounds["relu"] <= 1.001 * base).all()
    assert (bounds["tanh"] <= base + 1e-6).all()


@pytest.mark.parametrize("stages", [(Stage("relu"),), (Stage("neg"), Stage("relu"))])
def test_either_end_of_an_interval_may_be_the_one_that_counts(stages):
    access = identity_map((0, 1), (1, 3))
    dims, result = (Dim("x", 1), Dim("k", 3, "reduction")), identity_map((0,), (1,))
    structure = Structure(Space(dims, (access,), (result,)), Body("identity", "sum", (), stages))
    # The sum may be a little above or below zero, in whichever order it is made.
    near_zero = 1e-5 if stages[0].function == "neg" else -1e-5
    operands = [np.array([[1e4, -1e4, near_zero]], np.float32)]
    value, bound = evaluate_structure(structure, operands, np.dtype(np.float32), (1,))
    assert value.tolist() == [0]
    assert 1e-5 < bound[0] < 0.1


@pytest.mark.parametrize(
    "stages",
    [
        (Stage("sqrt"),),
        (Stage("scale", (0.3,)), Stage("sqrt")),
        (Stage("neg"), Stage("abs"), Stage("sqrt")),
    ],
)
def test_the_square_root_of_nothing_but_zeros_has_a_bound(stages: tuple[Stage, ...]):
    access = identity_map((0, 1), (2, 3))
    dims, result = (Dim("x", 2), Dim("k", 3, "reduction")), identity_map((0,), (2,))
    structure = Structure(Space(dims, (access,), (result,)), Body("square", "sum", (), stages))
    operands = [np.array([[0, 0, 0], [1, -2, 3]], np.float32)]
    value, bound = evaluate_structure(structure, operands, np.dtype(np.float32), (2,))
    assert value[0] == 0
    assert (bound < 1e-5).all()


def test_the_root_of_a_value_that_may_be_negative_has_no_bound():
    access = identity_map((0, 1), (1, 3))
    dims, result = (Dim("x", 1), Dim("k", 3, "reduction")), identity_map((0,), (1,))
    stages = (Stage("sqrt"),)
    structure = Structure(Space(dims, (access,), (result,)), Body("identity", "sum", (), stages))
    operands = [np.array([[1e4, -1e4, 1e-5]], np.float32)]
    _, bound = evaluate_structure(structure, operands, np.dtype(np.float32), (1,))
    assert bound.tolist() == [np.inf]


def test_a_value_that_overflows_within_a_chain_has_no_bound():
    stages = (Stage("exp"), Stage("clip", (0.0, 5.0)))
    operands = [np.array([100, 1, 88.7, -3], np.float32)]
    actual = on_one_tile(pointwise(stages), operands, "float32")
    value, bound = evaluate_structure(pointwise(stages), operands, actual.dtype, (4,))
    assert within(actual, value, bound) <= 1
    assert np.isinf(bound[0])
    assert np.isfinite(bound[1:2]).all()


def test_any_value_is_right_where_an_infinity_meets_a_value_that_may_have_overflowed():
    access = identity_map((0, 1), (1, 2))
    dims, result = (Dim("x", 1), Dim("k", 2, "reduction")), identity_map((0,), (1,))
    space = Space(dims, (access, access, result), (result,))
    structure = Structure(space, Body("mul", "sum", (), (Stage("add"),)))
    operands = [np.full((1, 2), 3e38, np.float32), np.array([[1, 1]], np.float32)]
    infinite = np.array([-np.inf], np.float32)
    value, bound = evaluate_structure(structure, [*operands, infinite], infinite.dtype, (1,))
    assert within(infinite, value, bound) <= 1
    assert within(np.array([np.nan], np.float32), value, bound) <= 1
    operands[0][...] = 1
    value, bound = evaluate_structure(structure, [*operands, infinite], infinite.dtype, (1,))
    assert within(infinite, value, bound) <= 1
    assert within(np.array([np.nan], np.float32), value, bound) > 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_stochastic_roundings_differ_by_a_step_at_most_in_every_dtype(dtype):
    one, other = (
        chained_product((Stage("stochastic", (key, 11.0, -14.0, 65504.0, 1.0)),))
        for key in (1.0, 2.0)
    )
    operands = normal_operands(one, dtype, 0)
    value, error = evaluate_structure(one, operands, np.dtype(dtype), (9, 8))
    found = on_one_tile(other, operands, dtype)
    assert (found != value).any()
    assert within(found, value, error) <= 1
    assert within(found + 2.0**-9 * np.abs(value), value, error) > 1
