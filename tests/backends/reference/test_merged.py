import ml_dtypes
import numpy as np
import pytest
from some_structures import vector_product
from some_tensors import values_like

from abele.backends.reference import (
    evaluate_operation,
    evaluate_structure,
    within,
)
from abele.dialects import nn
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space


def summed(terms: np.ndarray, dtype, rng: np.random.Generator) -> np.ndarray:
    """A sum along the last axis in a random order, each step rounded to a dtype."""
    parts = list(np.moveaxis(terms.astype(dtype), -1, 0))
    with np.errstate(all="ignore"):
        while len(parts) > 1:
            at = int(rng.integers(len(parts)))
            one = parts.pop(at)
            other = parts.pop(int(rng.integers(len(parts))))
            parts.append((one + other).astype(dtype))
    return parts[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_no_sum_in_float32_leaves_the_bound(dtype):
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(300):
        k = int(rng.choice([1, 2, 3, 17, 64, 129]))
        scale = float(rng.choice([1e-6, 1e-3, 1, 30]))
        a = (rng.normal(size=(3, k)) * scale).astype(dtype)
        b = (rng.normal(size=k) * rng.choice([1e-3, 1, 30])).astype(dtype)
        products = a.astype(np.float32) * b.astype(np.float32)
        got = summed(products, np.float32, rng).astype(dtype)
        value, bound = evaluate_structure(vector_product(k), [a, b], got.dtype, (3,))
        worst = max(worst, within(got, value, bound))
    assert 0.001 < worst <= 1


def test_a_sum_in_float16_leaves_the_bound_of_float32_and_keeps_its_own():
    rng = np.random.default_rng(12)
    outside = 0
    for _ in range(100):
        k = int(rng.choice([64, 129, 256]))
        a, b = rng.uniform(size=(3, k)).astype(np.float16), rng.uniform(size=k).astype(np.float16)
        products = a.astype(np.float32) * b.astype(np.float32)
        got = np.add.accumulate(products.astype(np.float16), axis=1, dtype=np.float16)[:, -1]
        case = (vector_product(k), [a, b], got.dtype, (3,))
        outside += within(got, *evaluate_structure(*case)) > 1
        assert within(got, *evaluate_structure(*case, accumulator=np.dtype(np.float16))) <= 1
    assert outside > 90


@pytest.mark.parametrize("name", ["add", "exp", "square"])
def test_no_reduction_of_functions_leaves_the_bound(name: str):
    rng = np.random.default_rng(13)
    for combiner in ("sum", "max", "prod"):
        for _ in range(30):
            k = int(rng.choice([1, 2, 9, 33]))
            arity = 2 if name == "add" else 1
            arrays = [rng.normal(size=(4, k)).astype(np.float32) for _ in range(arity)]
            access = AccessMap((AxisMap(4, ((0, 1),)), AxisMap(k, ((1, 1),))))
            result = AccessMap((AxisMap(4, ((0, 1),)),))
            space = Space((Dim("m", 4), Dim("k", k, "reduction")), (access,) * arity, (result,))
            body = Body(name, combiner)
            with np.errstate(all="ignore"):
                points = {"add": lambda x, y: x + y, "exp": np.exp, "square": np.square}[name](
                    *arrays
                )
                merge = {"sum": np.add, "max": np.maximum, "prod": np.multiply}[combiner]
                got = merge.accumulate(points, axis=1)[:, -1]
            pair = evaluate_structure(Structure(space, body), arrays, got.dtype, (4,))
            assert within(got, *pair) <= 1, (name, combiner, k)
            assert within(got * np.float32(1.001), *pair) > 1


@pytest.mark.parametrize("order", [[1e30, 1e30, 1e-30, 1e-30], [1e-30, 1e-30, 1e30, 1e30]])
def test_a_product_may_leave_the_range_on_its_way(order: list[float]):
    x = np.array([order], np.float32)
    with np.errstate(all="ignore"):
        got = np.multiply.accumulate(x, axis=1)[:, -1]
    assert got[0] in (0.0, np.inf)
    value, bound = evaluate_operation(nn.ReduceOp(*values_like(x), "prod", [1]), [x])
    assert within(got, value, bound) <= 1
