"""Gathers and scatters compute the same before and after they become operations of nn."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.backends.stablehlo import run_stablehlo
from abele.ir.text import parse_module
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools.driver.context import new_context

GATHERS = [
    # numbering, slice sizes, operand, places, result
    (
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
        "index_vector_dim = 1",
        *("1, 3", "4x3", "5x1", "5x3"),
    ),
    (
        "offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [1, 0], "
        "index_vector_dim = 2",
        *("1, 2, 2", "3x4x2", "2x3x2", "2x3x2x2"),
    ),
    (
        "offset_dims = [0, 2], start_index_map = [0], index_vector_dim = 1",
        *("2, 3", "4x3", "5", "2x5x3"),
    ),
    ("index_vector_dim = 1", *("", "", "3x0", "3")),
    (
        "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [2], start_index_map = [1], index_vector_dim = 0",
        *("1, 1, 2", "3x4x2", "1x5x3", "5x3x2"),
    ),
]
SCATTERS = [
    # numbering, operand, places, updates
    (
        "update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
        *("4x3", "5x1", "5x3"),
    ),
    (
        "update_window_dims = [0, 2], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1",
        *("4x3", "5x2", "2x5x2"),
    ),
    (
        "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 2",
        *("3x4x2", "5x3x1", "5x3x2"),
    ),
]


def shape_of(text: str) -> list[int]:
    return [int(n) for n in text.split("x") if n]


def type_of(shape: str, element: str) -> str:
    return f"tensor<{shape}x{element}>" if shape else f"tensor<{element}>"


def same(body: str, arguments: str, result: str, *arrays: np.ndarray) -> None:
    """Check that a program computes the same before and after the pass."""
    context = new_context()
    text = f"builtin.module {{ func.func @main({arguments}) -> ({result}) {{ {body} }} }}"
    module = parse_module(text, context)
    module.verify()
    (main,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    names = [f"x{i}" for i in range(len(arrays))]
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, names))
    main.attributes["result_names"] = ArrayAttr([StringAttr("y")])
    inputs = dict(zip(names, arrays, strict=True))
    before = run_stablehlo(module, inputs).outputs["y"]
    ConvertStablehloToNn().apply(context, module)
    np.testing.assert_array_equal(before, run_reference(module, inputs).outputs["y"])


@pytest.mark.parametrize("case", GATHERS)
def test_gathers(case: tuple[str, ...]) -> None:
    numbering, sizes, operand, places, result = case
    random = np.random.default_rng(0)
    body = f"""%0 = "stablehlo.gather"(%x, %i) <{{
        dimension_numbers = #stablehlo.gather<{numbering}>,
        slice_sizes = array<i64{sizes and ": " + sizes}>}}> :
        ({type_of(operand, "f32")}, tensor<{places}xi32>) ->
        tensor<{result}xf32>
        "func.return"(%0) : (tensor<{result}xf32>) -> ()"""
    value = random.normal(size=shape_of(operand)).astype(np.float32)
    where = random.integers(-2, 6, shape_of(places)).astype(np.int32)
    outer = f"%x: {type_of(operand, 'f32')}, %i: tensor<{places}xi32>"
    same(body, outer, f"tensor<{result}xf32>", value, where)


@pytest.mark.parametrize("merge", ["add", "multiply", "maximum", "subtract", ""])
@pytest.mark.parametrize("case", SCATTERS)
def test_scatters(case: tuple[str, ...], merge: str) -> None:
    numbering, operand, places, updates = case
    random = np.random.default_rng(1)
    types = f"(tensor<{operand}xi32>, tensor<{places}xi32>, tensor<{updates}xi32>)"
    made = "%b"
    region = ""
    if merge:
        made = "%m"
        region = f'%m = "stablehlo.{merge}"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>'
    body = f"""%0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers =
        #stablehlo.scatter<{numbering}>}}> ({{ ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        {region} "stablehlo.return"({made}) : (tensor<i32>) -> () }}) : {types} ->
        tensor<{operand}xi32>
        "func.return"(%0) : (tensor<{operand}xi32>) -> ()"""
    outer = f"%x: tensor<{operand}xi32>, %i: tensor<{places}xi32>, %u: tensor<{updates}xi32>"
    arrays = [
        random.integers(-2, 6, shape_of(each)).astype(np.int32)
        for each in (operand, places, updates)
    ]
    same(body, outer, f"tensor<{operand}xi32>", *arrays)
