from dataclasses import replace
from itertools import islice

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tile_programs import (
    Case,
    cases,
    dense,
    exchange_module,
    parse,
    partition_module,
    tile_module,
)

from abele.backends.evaluate.partition import run_partition
from abele.backends.evaluate.tile import run_tile
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Stage, Structure, extras_of
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map


def run_exchange(module, inputs):
    return {"y": Machine(module, resolve_target("tiny:16"), strict=True).run(inputs)["y"]}


LEVELS = {
    "partition": (partition_module, lambda m, x: run_partition(m, x).outputs),
    "tile": (tile_module, lambda m, x: run_tile(m, x).outputs),
    "exchange": (exchange_module, run_exchange),
}


def assert_every_level_computes(expected: np.ndarray, case: Case, operands: list[np.ndarray]):
    for level, (build, run) in LEVELS.items():
        module = parse(str(build(case)))
        actual = run(module, {f"x{i}": x for i, x in enumerate(operands)})["y"]
        np.testing.assert_array_equal(actual, expected, err_msg=level, strict=True)


@settings(max_examples=60)
@given(case=cases())
def test_every_level_computes_the_same_as_brute_force(case: Case):
    operands = case.operands()
    expected = dense(case.structure, operands, case.dtypes[-1])
    assert_every_level_computes(expected, case, operands)


STAGES = {
    Stage("add"): np.add,
    Stage("sub", at=1): lambda value, extra: extra - value,
    Stage("mul"): np.multiply,
    Stage("max"): np.maximum,
    Stage("relu"): lambda value: np.maximum(value, 0),
    Stage("abs"): np.abs,
    Stage("clip", (-4.0, 30.0)): lambda value: np.clip(value, -4, 30),
}


@st.composite
def chained_cases(draw: st.DrawFn) -> Case:
    """Operators with chains whose operands broadcast into the result in every way."""
    case = draw(cases(dtypes=("float32", "float32", "float16", "float64")))
    space, body = case.structure.space, case.structure.body
    stages = tuple(draw(st.lists(st.sampled_from(list(STAGES)), min_size=1, max_size=4)))
    extras = []
    for _ in range(extras_of(stages)):
        axes = space.results[0].axes
        axes = axes[draw(st.integers(0, len(axes))) :]
        extras.append(AccessMap(tuple(a if draw(st.booleans()) else AxisMap(1) for a in axes)))
    chained = Structure(
        replace(space, operands=(*space.operands, *extras)), replace(body, then=stages)
    )
    return replace(case, structure=chained, dtypes=case.dtypes[:1] * len(extras) + case.dtypes)


def apart(case: Case, operands: list[np.ndarray]) -> np.ndarray:
    """The operator without its chain, then the stages one by one, rounded at the end."""
    structure = case.structure
    own = structure.own_operands
    value = dense(structure.unchained, operands[:own], np.dtype(np.float64))
    extras = iter(operands[own:])
    for stage in structure.body.then:
        taken = [extra.astype(np.float64) for extra in islice(extras, stage.extras)]
        with np.errstate(all="ignore"):
            value = np.asarray(STAGES[stage](value, *taken))
    with np.errstate(over="ignore"):
        return value.astype(case.dtypes[-1])


@settings(max_examples=40)
@given(case=chained_cases())
def test_every_level_computes_the_chain_after_a_value(case: Case):
    operands = case.operands()
    assert_every_level_computes(apart(case, operands), case, operands)


@pytest.mark.parametrize("level", LEVELS)
def test_a_chain_follows_even_where_nothing_is_merged(level: str):
    dims = (Dim("y", 3), Dim("k", 0, "reduction"))
    image, bias = identity_map((0, 1), (3, 0)), identity_map((0,), (3,))
    body = Body("identity", "sum", (), (Stage("add"), Stage("relu")))
    structure = Structure(Space(dims, (image, bias), (identity_map((0,), (3,)),)), body)
    build, run = LEVELS[level]
    for dtype in (np.dtype(np.float32), np.dtype(np.float16)):
        module = parse(str(build(Case(structure, Plan((3, 1)), (dtype,) * 3, 3, 0))))
        inputs = {"x0": np.zeros((3, 0), dtype), "x1": np.array([-1, 0, 2], dtype)}
        np.testing.assert_array_equal(run(module, inputs)["y"], np.array([0, 0, 2], dtype))


@pytest.mark.parametrize("level", LEVELS)
def test_a_window_over_padding_alone_finds_padding(level: str):
    dims = (Dim("y", 3), Dim("k", 2, "reduction"))
    image = AccessMap((AxisMap(0, ((0, 1), (1, 1)), -2, outside="fill"),), float("-inf"))
    structure = Structure(
        Space(dims, (image,), (identity_map((0,), (3,)),)), Body("identity", "max")
    )
    float32 = np.dtype(np.float32)
    build, run = LEVELS[level]
    module = parse(str(build(Case(structure, Plan((3, 1)), (float32, float32), 3, 0))))
    result = run(module, {"x0": np.zeros(0, np.float32)})["y"]
    np.testing.assert_array_equal(result, np.full(3, -np.inf, np.float32))
