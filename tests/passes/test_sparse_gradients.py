"""Gradients of a product whose pattern is known and whose values are trained."""

import numpy as np
import pytest
from block_sparse import densified
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.reference.run import run_reference
from abele.dialects import nn
from abele.passes.differentiate import Differentiate
from abele.passes.multiply_sparse import MultiplySparse
from abele.tools.driver.context import new_context

HIGH, WIDE, SIDE, COLUMNS, BLOCKS = 12, 10, 4, 64, 25


def gradients(
    *, transposed: bool, last: bool
) -> tuple[ModuleOp, dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """The sum of the squares of a product, with gradients; inputs, rows and columns."""
    rng = np.random.default_rng(0)
    rows, columns = (rng.integers(0, n, BLOCKS).astype(np.int32) for n in (HIGH, WIDE))
    m, k = (WIDE, HIGH) if transposed else (HIGH, WIDE)
    dense = (COLUMNS, k * SIDE) if last else (k * SIDE, COLUMNS)
    kinds = [TensorType(f32, (BLOCKS, SIDE, SIDE)), TensorType(f32, dense)]
    block = Block(arg_types=kinds)
    held = [nn.ConstantOp(each) for each in (rows, columns)]
    op = nn.BlockMatMulOp(
        *(block.args[0], block.args[1], *(each.result for each in held), m * SIDE),
        transposed=transposed,
        dense_last=last,
    )
    square = nn.MulOp(op.result, op.result)
    loss = nn.ReduceOp(square.result, "sum", [0, 1])
    block.add_ops([*held, op, square, loss, ReturnOp(loss.result)])
    main = FuncOp("main", (kinds, [loss.result.type]), Region(block))
    module = ModuleOp([main])
    Differentiate("out0", ("arg0", "arg1")).apply(new_context(), module)
    given = {
        "arg0": rng.integers(-2, 3, (BLOCKS, SIDE, SIDE)).astype(np.float32),
        "arg1": rng.integers(-2, 3, dense).astype(np.float32),
    }
    return module, given, rows, columns


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_both_gradients_of_a_known_pattern_read_by_tables(transposed, last):
    module, given, rows, columns = gradients(transposed=transposed, last=last)
    made = module.clone()
    MultiplySparse("mk2:64").apply(new_context(), made)
    related = [op for op in made.walk() if isinstance(op, nn.ComputeOp) and _relations(op)]
    tabled = [op for op in made.walk() if isinstance(op, nn.ComputeOp) and _tables(op)]
    assert all(map(_tables, related)), "the products read dense rows by tables"
    assert len(tabled) >= 2
    before, after = (run_reference(each, given).outputs for each in (module, made))
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    matrix = densified(given["arg0"], rows, columns, (HIGH, WIDE))
    matrix = matrix.T if transposed else matrix
    x = given["arg1"].T if last else given["arg1"]
    slope = 2 * (matrix @ x)
    dense = matrix.T @ slope
    whole = slope @ x.T
    whole = whole.T if transposed else whole
    blocks = whole.reshape(HIGH, SIDE, WIDE, SIDE)[rows, :, columns]
    found = list(after.values())
    np.testing.assert_array_equal(found[-1], dense.T if last else dense)
    np.testing.assert_array_equal(found[-2], blocks)


def _relations(op: nn.ComputeOp) -> int:
    return len(op.structure().space.relations)


def _tables(op: nn.ComputeOp) -> int:
    return len(list(op.structure().space.tables))
