"""Maps with tables: rows of a tensor by constant indices, from nn down to bytes."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.dialects import nn
from abele.ir.geometry.space import AxisMap
from abele.ir.geometry.table import Table
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp
from abele.tools import compile_model
from abele.tools.driver.context import new_context

LEVELS = ("nn", "partition", "tile", "exchange")
ROWS, COLUMNS = 7, 5


def gathered(table: np.ndarray, merged: int) -> ModuleOp:
    """A sum of so many rows of a matrix for each row of the result: those of a table."""
    places = len(table) // merged
    block = Block(arg_types=[TensorType(f32, (ROWS, COLUMNS))])
    j, s, n = nn.dim("j", places), nn.dim("s", merged, "reduction"), nn.dim("n", COLUMNS)
    row = (j * merged + s + ROWS).outside(Table.of(table))
    op = nn.compute("identity", [nn.at(block.args[0], row, n)], [j, n], combiner="sum")
    block.add_ops([op, ReturnOp(op.result)])
    main = FuncOp("main", ([block.args[0].type], [op.result.type]), Region(block))
    return ModuleOp([main])


def rows_of(table: np.ndarray, x: np.ndarray, merged: int) -> np.ndarray:
    """The same sum by NumPy."""
    taken = np.where((table >= 0)[:, None], x[np.maximum(table, 0)], 0)
    return taken.reshape(-1, merged, COLUMNS).sum(axis=1)


def test_indices_after_the_axis_stand_for_the_elements_of_the_table():
    axis = AxisMap(4, ((0, 1),), 0, outside=Table.of(np.array([2, 0, -1])))
    assert axis.resolve(np.arange(-1, 8)).tolist() == [-1, 0, 1, 2, 3, 2, 0, -1, -1]
    assert axis.reach_problem((9,)) == ""
    wrong = AxisMap(2, ((0, 1),), 0, outside=Table.of(np.array([2])))
    assert wrong.reach_problem((9,)) == "its table has element 2 of 2 elements"


@pytest.mark.parametrize("split", [[1, 1, 1], [4, 1, 1], [2, 5, 1], [3, 1, 2], [1, 2, 1]])
def test_every_level_takes_the_rows_that_a_table_names(split, tmp_path):
    rng = np.random.default_rng(0)
    table, x = rng.integers(-1, ROWS, 12), rng.integers(-9, 9, (ROWS, COLUMNS)).astype(np.float32)
    plan = f"plan <split [{split[0]}, {split[1]}, {split[2]}]>"
    module = gathered(table, 2)
    text = print_module(module)
    assert "table [" in text
    path = tmp_path / "rows.mlir"
    path.write_text(text)
    exe = compile_model(path, "tiny:12", cache=False)
    for level in LEVELS:
        np.testing.assert_array_equal(
            exe.run({"arg0": x}, at=level)["out0"], rows_of(table, x, 2), err_msg=level + plan
        )


def test_a_long_table_is_a_blob_in_text():
    context = new_context()
    module = gathered(np.arange(40) % ROWS, 2)
    text = print_module(module)
    (table,) = {each for op in module.walk() if isinstance(op, nn.ComputeOp)
                for each in op.structure().space.tables}  # fmt: skip
    assert f'table "{table.blob.digest}"' in text
    context.blobs.add(table.blob)
    assert print_module(parse_module(text, context)) == text
