"""What nn becomes in stablehlo: the same programs in the interpreter of jaxlib."""

from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from lengths import lengths

from abele.backends.reference import run_reference
from abele.backends.stablehlo import run_stablehlo
from abele.dialects.dense import dense_of_array
from abele.dialects.dtypes import numpy_dtype
from abele.dialects.levels import NN, STABLEHLO
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import Printer
from abele.ir.verify import verify
from abele.passes.canonicalize import Canonicalize
from abele.passes.convert_nn_to_stablehlo import ConvertNnToStablehlo
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.passes.eliminate_dead import EliminateDead
from abele.tools.driver.context import new_context
from abele.tools.testing import programs

from ..exported import (
    SORTS,
    WITHOUT_ELEMENTS,
    check_round_trips,
    differs,
    drawn,
    names_of,
    sorted_as,
    without_elements,
)


def trip(module, context):
    """The text of stablehlo, and the module of nn that it means."""
    ConvertNnToStablehlo().apply(context, module)
    verify(module, STABLEHLO)
    text = print_module(module, locations=False)
    back = parse_module(text, new_context())
    assert print_module(back, locations=False) == text
    ConvertStablehloToNn().apply(new_context(), back)
    # Numbers that became properties are left as constants that nothing reads.
    Canonicalize().apply(new_context(), back)
    EliminateDead().apply(new_context(), back)
    verify(back, NN)
    return text, back


@pytest.mark.parametrize("examples", lengths(8, 30))
def test_a_round_trip_computes_the_same_and_further_trips_give_the_same_text(examples: int):
    check_round_trips(trip, examples, again=True, least=examples * 5 // 6)


NETWORK = """
builtin.module {
  nn.state @w : tensor<4x2x3x3xf32> = <"WEIGHTS">
  func.func @main(%x: tensor<2x2x8x8xf32>, %r: tensor<1x16xf32>)
      -> (tensor<2x4xf32>, tensor<3x16xf32>) {
    %w = nn.load @w : tensor<4x2x3x3xf32>
    %0 = nn.conv %x, %w stride [2, 2] dilation [1, 1] pad [1, 1] to [1, 1]
        : (tensor<2x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x4x4xf32>
    %1 = nn.leaky_relu %0 slope 0.1 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
    %2 = nn.pool "max" %1 window [2, 2] stride [2, 2] dilation [1, 1] pad [0, 0] to [0, 0]
        : (tensor<2x4x4x4xf32>) -> tensor<2x4x2x2xf32>
    %3 = nn.reduce "sum" %2 axes [2, 3] : (tensor<2x4x2x2xf32>) -> tensor<2x4xf32>
    %4 = nn.softmax %3 axis 1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %5 = nn.reshape %2 to [2, 16] : (tensor<2x4x2x2xf32>) -> tensor<2x16xf32>
    %6 = nn.concat %5, %r axis 0 : (tensor<2x16xf32>, tensor<1x16xf32>) -> tensor<3x16xf32>
    %7 = nn.matmul %6, %5 transpose_rhs : (tensor<3x16xf32>, tensor<2x16xf32>) -> tensor<3x2xf32>
    %8 = nn.erf %7 : (tensor<3x2xf32>) -> tensor<3x2xf32>
    %9 = nn.matmul %8, %5 : (tensor<3x2xf32>, tensor<2x16xf32>) -> tensor<3x16xf32>
    nn.store %w, @w : tensor<4x2x3x3xf32>
    func.return %4, %9 : tensor<2x4xf32>, tensor<3x16xf32>
  }
}"""


def test_a_second_round_trip_of_a_network_gives_the_same_text():
    context = new_context()
    weights = np.random.default_rng(0).random((4, 2, 3, 3), np.float32)
    digest = context.blobs.add(weights).digest
    module = parse_module(NETWORK.replace("WEIGHTS", digest), context)
    x = np.random.default_rng(1).random((2, 2, 8, 8), np.float32)
    given_ = {"arg0": x, "arg1": np.ones((1, 16), np.float32)}
    expected = run_reference(module, given_).outputs
    texts = []
    for _ in range(2):
        _, module = trip(module, context)
        texts.append(print_module(module, locations=False, numbers=1 << 10))
    assert texts[0] == texts[1]
    found = run_reference(module, {**given_, "w": weights}).outputs
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


def array_of(text):
    """The array of a constant in MLIR's text."""
    type_ = text.rpartition(" : ")[2]
    constant = f'%0 = "stablehlo.constant"() <{{value = {text}}}> : () -> {type_}'
    return next(iter(parse_module(constant, new_context()).ops)).array


def evaluated(module, arrays):
    """What jaxlib's interpreter of stablehlo computes."""
    ir = pytest.importorskip("jaxlib.mlir.ir", reason="jaxlib is not installed")
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo
    from jaxlib.mlir.passmanager import PassManager

    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    stablehlo.register_stablehlo_passes()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        parsed = ir.Module.parse(stream.getvalue())
        passes = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
        PassManager.parse(passes).run(parsed.operation)
        given_ = [ir.Attribute.parse(str(dense_of_array(each))) for each in arrays]
        return [array_of(str(each)) for each in stablehlo.eval_module(parsed, given_)]


def test_the_interpreter_of_jaxlib_computes_the_same():
    pytest.importorskip("jaxlib.mlir.ir", reason="jaxlib is not installed")
    compared = []

    @drawn(60)
    @given(programs("nn"))
    def check(program):
        module = program.module.clone()
        try:
            ConvertNnToStablehlo().apply(program.context, module)
        except InputError:
            return
        given_ = {**program.state, **program.inputs}
        arrays = [given_[name] for name in names_of(module, "arg_names")]
        found = dict(zip(names_of(module, "result_names"), evaluated(module, arrays), strict=True))
        assert differs(program, found) is None
        compared.append(program)

    check()
    assert len(compared) >= 10


SCANS = [
    ("sum", "axis 1", "3x5xf32"),
    ("max", "axis 1 exclusive", "2x4xbf16"),
    ("prod", "axis 0 exclusive reverse", "4x3xi32"),
    ("min", "axis 0 reverse", "4x3xi32"),
    ("sum", "axis 0", "0x3xi32"),
    ("sum", "axis 0 exclusive", "1x3xf32"),
]


@pytest.mark.parametrize(("combiner", "along", "shape"), SCANS)
def test_a_scan_is_windows_up_to_each_element_and_comes_back_as_a_scan(combiner, along, shape):
    kind = f"tensor<{shape}>"
    program = parse_module(
        f"func.func @main(%x: {kind}) -> {kind} {{\n"
        f'  %1 = nn.scan "{combiner}" %x {along} : ({kind}) -> {kind}\n'
        f"  func.return %1 : {kind}\n}}\n",
        new_context(),
    )
    dtype = numpy_dtype(next(iter(program.ops)).body.block.args[0].type.element_type)
    size = [int(n) for n in shape.split("x")[:-1]]
    x = np.random.default_rng(0).integers(-5, 6, size).astype(dtype)
    (expected,) = run_reference(program, {"arg0": x}).outputs.values()
    text, back = trip(program, new_context())
    read = run_stablehlo(parse_module(text, new_context()), {"arg0": x}).outputs
    for found in (read, run_reference(back, {"arg0": x}).outputs):
        np.testing.assert_array_equal(next(iter(found.values())), expected)
    # One row, or none, needs no sums.
    stays = size[0] > 1
    assert ("stablehlo.reduce_window" in text) is stays
    assert any(op.name == "nn.scan" for op in back.walk()) is stays


@pytest.mark.parametrize(("operation", "types"), WITHOUT_ELEMENTS)
def test_a_result_without_elements_keeps_its_shape(operation, types):
    program, x, shape = without_elements(operation, types)
    _, back = trip(program, new_context())
    (found,) = run_reference(back, {"arg0": x}).outputs.values()
    assert found.shape == shape


@pytest.mark.parametrize(("kind", "along", "shape"), SORTS)
def test_a_sort_is_a_sort_there_and_comes_back_as_one(kind, along, shape):
    program, x, expected = sorted_as(kind, along, shape)
    text, back = trip(program, new_context())
    read = run_stablehlo(parse_module(text, new_context()), {"arg0": x}).outputs
    for found in (read, run_reference(back, {"arg0": x}).outputs):
        np.testing.assert_array_equal(next(iter(found.values())).astype(expected.dtype), expected)
    names = [op.name for op in back.walk()]
    assert (f"nn.{kind}" in names) is not shape.startswith("1x")
    assert "nn.gather_along" not in names


STEPS = """
builtin.module {
  nn.state @w : tensor<2xf32> = <[1.0, 2.0] : tensor<2xf32>>
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = control.repeat 3 runs (%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%1: tensor<2xf32>, %turn: tensor<i32>):
      %w = nn.load @w : tensor<2xf32>
      %2 = nn.add %1, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %3 = nn.mul %w, %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      nn.store %3, @w : tensor<2xf32>
      control.yield %2 : tensor<2xf32>
    }
    func.return %0 : tensor<2xf32>
  }
}"""


def test_a_state_that_runs_in_a_loop_change_goes_from_one_iteration_to_the_next():
    context = new_context()
    module = parse_module(STEPS, context)
    x = np.array([1, -1], np.float32)
    expected = run_reference(module, {"arg0": x})
    text, back = trip(module, context)
    given_ = {"arg0": x, "w": np.array([1, 2], np.float32)}
    read = run_stablehlo(parse_module(text, new_context()), given_).outputs
    for found in (read, run_reference(back, given_).outputs):
        np.testing.assert_array_equal(found["out0"], expected.outputs["out0"])
        np.testing.assert_array_equal(found["w"], expected.state["w"])


OUTSIDE = """
builtin.module {
  nn.state @w : tensor<2xf32> = <[1.0, 2.0] : tensor<2xf32>>
  func.func private @f() -> tensor<2xf32> {
    %w = nn.load @w : tensor<2xf32>
    func.return %w : tensor<2xf32>
  }
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %1 = func.call @f() : () -> tensor<2xf32>
    nn.store %x, @w : tensor<2xf32>
    func.return %1 : tensor<2xf32>
  }
}"""


def test_what_is_not_covered_is_named_with_its_place():
    context = new_context()
    module = parse_module(OUTSIDE, context, "net.mlir")
    with pytest.raises(InputError, match=r"net.mlir:5:5: nn.load: a state is loaded"):
        ConvertNnToStablehlo().apply(context, module)


def test_a_loop_of_runs_in_a_branch_is_refused():
    inside = STEPS[STEPS.index("    %0 = control.repeat") : STEPS.index("    func.return")]
    text = (
        STEPS[: STEPS.index("    %0 = control.repeat")].replace("%x:", "%c: tensor<i1>, %x:")
        + "%b = control.if %c : tensor<i1> -> (tensor<2xf32>) {\n"
        + inside
        + "control.yield %0 : tensor<2xf32>\n} else {\ncontrol.yield %x : tensor<2xf32>\n}\n"
        + "func.return %b : tensor<2xf32>\n}\n}"
    )
    context = new_context()
    with pytest.raises(InputError, match="control.repeat: its iterations are runs, and"):
        ConvertNnToStablehlo().apply(context, parse_module(text, context, "net.mlir"))
