import numpy as np
import pytest

from abele.backends.codelets.numerics import Placed, run_vertices
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.dialects.abele import Plan
from abele.dialects.scalar_functions import FUNCTIONS, chainable
from abele.dialects.structured import Body, Stage, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

POSITIONS = [(name, at) for name, allowed in chainable().items() for at in allowed]
RNG = np.random.default_rng(0)


def tiles(array: np.ndarray, parts: int) -> Placed:
    """Rows of an array, cut among tiles."""
    return Placed(array.reshape(parts, -1).view(np.uint8), 0, array.dtype)


def rows(body: Body, n: int, m: int, operands: int, parts: int) -> tuple[Structure, Plan]:
    """Operands and a result of shape [n, m], cut by rows."""
    access = identity_map((0, 1), (n, m))
    return Structure(
        Space((Dim("n", n), Dim("m", m)), (access,) * operands, (access,)), body
    ), Plan((parts, 1))


def run(structure: Structure, plan: Plan, arrays: list[np.ndarray], dtype: str) -> np.ndarray:
    shape = structure.space.results[0].shape
    result = np.zeros(shape, dtype)
    parts = plan.split[0]
    run_vertices(structure, plan, [tiles(a, parts) for a in arrays], tiles(result, parts))
    return result


@pytest.mark.parametrize(
    ("name", "at"), [(n, at) for n, places in chainable().items() for at in places]
)
@pytest.mark.parametrize("columns", [3, 3000])
def test_in_float32_a_chain_equals_separate_functions_to_the_bit(name: str, at: int, columns: int):
    arity, count = FUNCTIONS[name].arity, FUNCTIONS[name].parameters
    numbers = (-0.3, 0.7)[:count] if count <= 2 else FUNCTIONS[name].samples[-1]
    stage = Stage(name, numbers, at)
    arrays = [RNG.normal(size=(64, columns)).astype(np.float32) for _ in range(arity + 1)]
    structure, plan = rows(Body("mul", then=(stage,)), 64, columns, arity + 1, 8)
    value = run(structure.unchained, plan, arrays[:2], "float32")
    operands = arrays[2:]
    operands.insert(at, value)
    expected = SCALAR_FUNCTIONS[name].apply(stage.parameters, *operands)
    found = run(structure, plan, arrays, "float32")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("combiner", [None, "sum", "max"])
def test_a_narrow_result_is_rounded_once(combiner):
    n, m = 8, 5
    access = identity_map((0, 1), (n, m))
    kind = "parallel" if combiner is None else "reduction"
    dims = (Dim("n", n), Dim("m", m), Dim("k", 1 if combiner is None else 3, kind))
    out = identity_map((0, 1), (n, m))
    then = (Stage("shift", (2048.0,)), Stage("add"), Stage("shift", (-2048.0,)))
    x = AccessMap((*access.axes, AxisMap(1)))
    structure = Structure(Space(dims, (x, access), (out,)), Body("identity", combiner, (), then))
    one = np.ones((n, m), np.float16)
    found = run(structure, Plan((4, 1, 1)), [one, one], "float16")
    # 2049 is no float16: rounded on the way it would have become 2048 or 2050.
    first = 3 if combiner == "sum" else 1
    np.testing.assert_array_equal(found, np.full((n, m), first + 1, np.float16))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_product_is_followed_where_it_lies(dtype):
    m, n, k = 6, 5, 7
    a, b = (RNG.integers(-3, 4, s).astype(dtype) for s in ((m, k), (k, n)))
    bias = RNG.integers(-3, 4, (1, n)).astype(dtype)
    dims = (Dim("m", m), Dim("n", n), Dim("k", k, "reduction"))
    maps = (identity_map((0, 2), (m, k)), identity_map((2, 1), (k, n)))
    extra = AccessMap((AxisMap(1), AxisMap(n, ((1, 1),))))
    body = Body("mul", "sum", (), (Stage("add"), Stage("relu")))
    structure = Structure(Space(dims, (*maps, extra), (identity_map((0, 1), (m, n)),)), body)
    spread = [a, np.tile(b, (3, 1, 1)), np.tile(bias, (3, 1, 1))]
    found = run(structure, Plan((3, 1, 1)), spread, dtype)
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_array_equal(found, np.maximum(exact, 0).astype(dtype))


def test_stages_take_their_operands_in_order():
    then = (Stage("sub"), Stage("mul"), Stage("sub", at=1))
    structure, plan = rows(Body("identity", then=then), 4, 2, 4, 2)
    arrays = [np.full((4, 2), v, np.float32) for v in (10, 3, 5, 2)]
    assert (run(structure, plan, arrays, "float32") == 2 - (10 - 3) * 5).all()
