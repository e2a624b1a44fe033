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
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map


def run_exchange(module, inputs):
    return {"y": Machine(module, resolve_target("tiny:16"), strict=True).run(inputs)["y"]}


LEVELS = {
    "partition": (partition_module, lambda m, x: run_partition(m, x).outputs),
    "tile": (tile_module, lambda m, x: run_tile(m, x).outputs),
    "exchange": (exchange_module, run_exchange),
}


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=150)
@given(case=cases())
def test_every_level_computes_what_brute_force_does(level: str, case: Case):
    build, run = LEVELS[level]
    operands = case.operands()
    module = parse(str(build(case)))
    actual = run(module, {f"x{i}": x for i, x in enumerate(operands)})["y"]
    expected = dense(case.structure, operands, case.dtypes[-1])
    np.testing.assert_array_equal(actual, expected, strict=True)


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
