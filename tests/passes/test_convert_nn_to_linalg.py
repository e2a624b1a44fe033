"""What nn becomes in linalg: the same programs, back in nn and in other interpreters."""

import numpy as np
import pytest
from lengths import lengths
from xdsl.dialects import linalg
from xdsl.interpreter import Interpreter, InterpreterFunctions, impl, register_impls
from xdsl.interpreters import register_implementations
from xdsl.interpreters.shaped_array import ShapedArray
from xdsl.interpreters.utils.ptr import TypedPtr

from abele.backends.reference import run_reference
from abele.dialects.levels import NN
from abele.dialects.mlir import MLIR
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.ir.verify import verify
from abele.passes.canonicalize import Canonicalize
from abele.passes.convert_linalg_to_nn import ConvertLinalgToNn
from abele.passes.convert_nn_to_linalg import ConvertNnToLinalg
from abele.passes.eliminate_dead import EliminateDead
from abele.tools.driver.context import new_context

from ..exported import (
    SORTS,
    WITHOUT_ELEMENTS,
    check_round_trips,
    sorted_as,
    without_elements,
)

F32 = np.float32


def there_and_back(module, context):
    """The text of linalg, and the module of nn that it means."""
    ConvertNnToLinalg().apply(context, module)
    verify(module, MLIR)
    text = print_module(module, locations=False)
    back = parse_module(text, new_context())
    back.verify()
    ConvertLinalgToNn().apply(new_context(), back)
    verify(back, NN)
    return text, back


@pytest.mark.parametrize("examples", lengths(10, 40))
def test_a_program_computes_the_same_in_linalg(examples: int):
    check_round_trips(there_and_back, examples, least=examples // 4)


def exported(text: str, **options: bool):
    context = new_context()
    module = parse_module(text, context)
    ConvertNnToLinalg(**options).apply(context, module)
    return module


STATES = """
builtin.module {
  nn.state @w : tensor<2xf32> = <[1.0, 2.0] : tensor<2xf32>>
  nn.state @n : tensor<2xf32> = <[0.0, 5.0] : tensor<2xf32>>
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %w = nn.load @w : tensor<2xf32>
    %n = nn.load @n : tensor<2xf32>
    %1 = nn.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = nn.add %n, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    nn.store %2, @n : tensor<2xf32>
    func.return %1 : tensor<2xf32>
  }
}"""


@pytest.mark.parametrize(
    ("arguments", "takes"), [(False, ["arg0", "n"]), (True, ["arg0", "w", "n"])]
)
def test_a_state_that_changes_is_an_argument_and_a_result(arguments, takes):
    module = exported(STATES, arguments=arguments)
    main = module.body.block.first_op
    assert [each.data for each in main.attributes["arg_names"].data] == takes
    assert [each.data for each in main.attributes["result_names"].data] == ["out0", "n"]
    back = parse_module(print_module(module), new_context())
    ConvertLinalgToNn().apply(new_context(), back)
    given_ = {"arg0": np.array([3, 4], F32), "w": np.array([1, 2], F32), "n": np.array([0, 5], F32)}
    found = run_reference(back, {name: given_[name] for name in takes}).outputs
    np.testing.assert_array_equal(found["out0"], [3, 8])
    np.testing.assert_array_equal(found["n"], [3, 13])


def test_all_that_is_not_covered_is_named_with_its_place():
    text = """
builtin.module {
  nn.state @w : tensor<4xf32> = <[1.0, 2.0, 3.0, 4.0] : tensor<4xf32>>
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = nn.load @w : tensor<4xf32>
    nn.store %x, @w : tensor<4xf32>
    %3 = nn.fmod %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %3 : tensor<4xf32>
  }
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %1 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    func.return %1 : tensor<4xf32>
  }
}"""
    with pytest.raises(InputError) as error:
        exported(text)
    lines = str(error.value).splitlines()
    assert lines[0] == "3 operations are not covered:"
    assert "5:5: nn.load: " in lines[1]
    assert "6:5: nn.store: " in lines[2]
    assert "7:5: nn.fmod: " in lines[3]


@pytest.mark.parametrize(("kind", "along", "shape"), SORTS)
def test_a_sort_is_loops_over_all_pairs(kind, along, shape):
    program, x, expected = sorted_as(kind, along, shape)
    _, back = there_and_back(program, new_context())
    without_signs = x.view(f"i{x.itemsize}") if x.dtype.kind == "u" else x
    (found,) = run_reference(back, {"arg0": without_signs}).outputs.values()
    np.testing.assert_array_equal(found.astype(expected.dtype), expected)


@pytest.mark.parametrize(("operation", "types"), WITHOUT_ELEMENTS)
def test_a_result_without_elements_keeps_its_shape(operation, types):
    program, x, shape = without_elements(operation, types)
    _, back = there_and_back(program, new_context())
    (found,) = run_reference(back, {"arg0": x}).outputs.values()
    assert found.shape == shape


@pytest.mark.parametrize("size", [1, 2, 7, 64, 100])
def test_a_scan_takes_a_pass_for_each_doubling(size):
    type_ = f"tensor<2x{size}xf32>"
    program = parse_module(
        f"func.func @main(%x: {type_}) -> {type_} {{\n"
        f'  %1 = nn.scan "sum" %x axis 1 reverse : ({type_}) -> {type_}\n'
        f"  func.return %1 : {type_}\n}}\n",
        new_context(),
    )
    x = np.random.default_rng(0).integers(-9, 9, (2, size)).astype(F32)
    text, back = there_and_back(program, new_context())
    (found,) = run_reference(back, {"arg0": x}).outputs.values()
    np.testing.assert_array_equal(found, x[:, ::-1].cumsum(1)[:, ::-1])
    assert text.count("linalg.generic") == (size - 1).bit_length()


# A network that abele's passes simplify, in the interpreter of xDSL

NETWORK = """
builtin.module {
  func.func @main(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
    %0 = nn.transpose %w [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %1 = nn.scale %x by 1.0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = nn.matmul %1, %0 : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    %3 = nn.add %2, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %4 = nn.transpose %3 [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %5 = nn.transpose %4 [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %6 = nn.relu %5 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %7 = nn.exp %6 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    func.return %6 : tensor<2x3xf32>
  }
}"""


@register_impls
class _Fill(InterpreterFunctions):
    """linalg.fill of a number. xDSL's own takes a tensor alone."""

    @impl(linalg.ops.FillOp)
    def fill(self, interpreter, op, args):
        number, into = args
        made = into.copy()
        for i in range(made.size):
            made.data_ptr[i] = number
        return (made,)


def interpreted(module, arrays):
    """What xDSL's interpreter computes."""
    interpreter = Interpreter(module)
    register_implementations(interpreter, new_context())
    interpreter.register_implementations(_Fill(), override=True)
    given_ = tuple(
        ShapedArray(TypedPtr.new_float32(each.ravel().tolist()), list(each.shape))
        for each in arrays
    )
    (found,) = interpreter.call_op("main", given_)
    return np.array(found.data, F32).reshape(found.shape)


def test_a_network_that_passes_of_nn_simplify_runs_in_the_interpreter_of_xdsl():
    context = new_context()
    module = parse_module(NETWORK, context)
    simple = module.clone()
    Canonicalize().apply(context, simple)
    EliminateDead().apply(context, simple)
    x, w, b = (np.random.default_rng(0).standard_normal(s).astype(F32) for s in ((2, 4), (3, 4), 3))
    expected = np.maximum(x @ w.T + b, 0)
    sizes = []
    for each in (module, simple):
        ConvertNnToLinalg().apply(context, each)
        np.testing.assert_allclose(interpreted(each, (x, w, b)), expected, rtol=1e-5, atol=1e-6)
        sizes.append(sum(isinstance(op, linalg.ops.GenericOp) for op in each.walk()))
    # The scale and two transposes are gone.
    assert sizes == [7, 4]
