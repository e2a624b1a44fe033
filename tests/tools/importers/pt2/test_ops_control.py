"""Branches and loops of torch.cond, while_loop and scan compute what their graphs say."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from abele.ir.support.errors import InputError
from abele.ir.upstream import ModuleOp

from .fixture_models import imported, results
from .written import higher_tree, inner_tree, node_tree, written

ROW, SCALAR, COUNT = ((3,), "float32"), ((), "float32"), ((), "int64")
X = np.array([1, -2, 4], np.float32)


def operations(module: ModuleOp) -> list[str]:
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    return [op.name for op in main.body.block.ops]


def branch(condition: Any, *nodes: Any, otherwise: str = "sub.Tensor") -> bytes:
    first = inner_tree({"a": ROW}, [node_tree("mul.Tensor", "y", self="a", other=2.0)], ["y"])
    second = inner_tree({"a": ROW}, [node_tree(otherwise, "y", self="a", other=1.0)], ["y"])
    node = higher_tree("cond", [condition, first, second, ["x"]], ["y"])
    return written({"x": ROW, "t": SCALAR}, [*nodes, node], ["y"])


@pytest.mark.parametrize(("t", "wanted"), [(1.0, X * 2), (-1.0, X - 1)])
def test_a_branch_is_chosen_in_the_run(t: float, wanted: np.ndarray):
    module = imported(branch("c", node_tree("gt.Scalar", "c", self="t", other=0)))
    assert "control.if" in operations(module)
    (found,) = results(module, [X, np.float32(t)])
    np.testing.assert_array_equal(found, wanted)


def test_a_known_condition_chooses_at_import():
    module = imported(branch({"as_bool": False}))
    assert operations(module) == ["nn.constant", "nn.sub", "func.return"]
    np.testing.assert_array_equal(results(module, [X, np.float32(0)])[0], X - 1)


def test_branches_of_other_element_types_are_refused():
    given = branch("c", node_tree("gt.Scalar", "c", self="t", other=0), otherwise="gt.Scalar")
    with pytest.raises(InputError, match="different element types or ranks is not supported"):
        imported(given)


def test_a_branch_without_a_truth_value_is_refused():
    with pytest.raises(InputError, match=r"condition is float32\[\]; need one truth value"):
        imported(branch("t"))


def loop(change: str = "mul.Tensor") -> bytes:
    carried = {"i": COUNT, "a": ROW}
    more = {**carried, "most": COUNT}
    test = inner_tree(more, [node_tree("lt.Tensor", "c", self="i", other="most")], ["c"])
    body = inner_tree(
        more,
        [
            node_tree("add.Tensor", "j", self="i", other=1),
            node_tree(change, "b", self="a", other=2.0),
        ],
        ["j", "b"],
    )
    zero = node_tree("sub.Tensor", "zero", self="n", other="n")
    node = higher_tree("while_loop", [test, body, ["zero", "x"], ["n"]], ["count", "y"])
    return written({"x": ROW, "n": COUNT}, [zero, node], ["count", "y"])


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_runs_as_long_as_its_condition_holds(count: int):
    module = imported(loop())
    assert "control.while" in operations(module)
    number, last = results(module, [X, np.int64(count)])
    assert number == count
    np.testing.assert_array_equal(last, X * 2**count)


def test_a_loop_whose_values_change_their_type_is_refused():
    with pytest.raises(InputError, match="carried value 1 changes its shape or its element type"):
        imported(loop("gt.Scalar"))


@pytest.mark.parametrize("rows", [1, 4])
def test_a_scan_gives_the_last_values_and_a_row_of_each_step(rows: int):
    step = inner_tree(
        {"sum": ROW, "row": ROW, "by": SCALAR},
        [
            node_tree("add.Tensor", "next", self="sum", other="row"),
            node_tree("mul.Tensor", "out", self="next", other="by"),
        ],
        ["next", "out"],
    )
    node = higher_tree("scan", [step, ["x"], ["rows"], ["by"]], ["last", "table"])
    inputs = {"x": ROW, "rows": ((rows, 3), "float32"), "by": SCALAR}
    module = imported(written(inputs, [node], ["last", "table"]))
    given = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
    last, table = results(module, [X, given, np.float32(3)])
    sums = X + np.cumsum(given, axis=0)
    np.testing.assert_array_equal(last, sums[-1])
    np.testing.assert_array_equal(table, sums * 3)


def test_graphs_with_other_inputs_are_refused():
    step = inner_tree({"sum": ROW}, [], ["sum"])
    node = higher_tree("scan", [step, ["x"], ["rows"]], ["last"])
    given = written({"x": ROW, "rows": ((2, 3), "float32")}, [node], ["last"])
    with pytest.raises(InputError, match="2 operands of a graph with 1 inputs"):
        imported(given)
