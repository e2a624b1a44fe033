"""Gradients: those of every operator against differences in float64, and the rules at their edges.

The operators are generated from their definitions. None is listed here.
"""

from collections import Counter
from random import Random

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    f64,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from abele.backends.faults import IndexFault
from abele.backends.reference import run_reference, tensor_kind
from abele.dialects import nn
from abele.dialects.levels import NN as NN_LEVEL
from abele.dialects.scalar_functions import ARITHMETIC, FUNCTIONS
from abele.dialects.structured import Structured
from abele.ir.errors import InputError
from abele.ir.provenance import named
from abele.ir.rules.vocabulary import Vocabulary
from abele.ir.text import parse_module
from abele.ir.verify import verify
from abele.passes.differentiate import Differentiate
from abele.tools.driver.context import new_context
from abele.tools.testing.generators.instances import Instances

Arrays = dict[str, np.ndarray]
BYTE = IntegerType(8, Signedness.UNSIGNED)

DRAWS = (
    lambda rng, shape: rng.normal(size=shape),
    lambda rng, shape: rng.uniform(0.1, 0.9, shape),
    lambda rng, shape: rng.uniform(1.1, 2.0, shape),
)
"""Where functions may be defined: anywhere, inside of 0..1, and above 1."""

WHOLE = (lambda bits: -bits, lambda bits: bits, np.ones_like)
"""Integers made of bits: -1 and 0 are indices of every axis, but labels may be neither, nor the
blank, which may be 0. Unsigned integers have no -1."""

STEP = 1e-6
NEAR = 2e-6
"""How far differences with this step are from gradients, in parts of the largest term."""

INSTANCES = Instances(Vocabulary(new_context()))


def is_float(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and isinstance(value.type.element_type, AnyFloat)


def program(op: Operation) -> ModuleOp:
    """@main applies an operation to its arguments, and multiplies each float result by another."""
    block = Block(arg_types=[v.type for v in op.operands])
    op.operands = list(block.args)
    op.location = named("node")
    block.add_op(op)
    results = []
    for value in op.results:
        if is_float(value):
            factor = block.insert_arg(value.type, len(block.args))
            weighted = nn.MulOp(value, factor)
            block.add_op(weighted)
            total = nn.ReduceOp(weighted.result, "sum", range(len(nn.shape_of(value))))
            block.add_op(total)
            results.append(total.result)
    both = results[0]
    for each in results[1:]:
        added = nn.AddOp(both, each)
        block.add_op(added)
        both = added.result
    block.add_op(ReturnOp(both))
    types = [a.type for a in block.args]
    return ModuleOp([FuncOp("main", (types, [both.type]), Region(block))])


def drawn(module: ModuleOp, rng: np.random.Generator, draw, whole) -> Arrays:
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    found = {}
    for i, arg in enumerate(main.args):
        shape, dtype = tensor_kind(arg.type)
        if is_float(arg):
            found[f"arg{i}"] = draw(rng, shape).astype(dtype)
        else:
            bits = rng.integers(0, 2, shape)
            made = bits if dtype.kind in "bu" else whole(bits)
            found[f"arg{i}"] = made.astype(dtype)
    return found


def value_of(module: ModuleOp, inputs: Arrays) -> float:
    return float(run_reference(module, inputs).outputs["out0"])


def runs(module: ModuleOp, inputs: Arrays) -> bool:
    """Whether a program computes a number of these inputs."""
    try:
        return bool(np.isfinite(value_of(module, inputs)))
    except IndexFault:
        return False


def check_gradient(module: ModuleOp, inputs: Arrays, rng: np.random.Generator) -> None:
    """The gradient along one random direction is the difference along it."""
    made = module.clone()
    Differentiate().apply(new_context(), made)
    verify(made, NN_LEVEL)
    outputs = run_reference(made, inputs).outputs
    directions = {
        name: rng.normal(size=a.shape) for name, a in inputs.items() if a.dtype == np.float64
    }
    assert all(outputs[f"grad.{name}"].shape == d.shape for name, d in directions.items())
    terms = [(outputs[f"grad.{name}"] * d).ravel() for name, d in directions.items()]
    found = sum(each.sum() for each in terms)
    ends = [
        value_of(
            module,
            inputs
            | {n: (inputs[n] + sign * STEP * d).astype(np.float64) for n, d in directions.items()},
        )
        for sign in (1, -1)
    ]
    expected = (ends[0] - ends[1]) / (2 * STEP)
    size = sum(np.abs(each).sum() for each in terms) + abs(ends[0]) + 1.0
    assert abs(found - expected) <= NEAR * size, (found, expected, size)


def form_of(op: Operation) -> object:
    """What tells the forms of an operator apart that have different rules."""
    if not isinstance(op, Structured):
        return None
    structure = op.structure()
    body, space = structure.body, structure.space
    return body.combiner, body.along, bool(body.then), len(space.relations), len(space.positions)


def functions_of(op: Operation) -> set[str]:
    """The scalar functions that an operation computes."""
    if not isinstance(op, Structured):
        return set()
    body = op.structure().body
    return {body.function, *(stage.function for stage in body.then)}


def has_no_slope(op: Operation) -> bool:
    """Whether differences say nothing about an operation's gradient.

    Results that are rounded to a narrower type are steps. The slope of a root at 0 is infinite,
    and the product of a coordinate is always 0 where the coordinate is.
    """
    found = functions_of(op)
    rounds = any(each in FUNCTIONS and FUNCTIONS[each].rounds for each in found)
    coordinates = isinstance(op, Structured) and op.structure().space.coordinates
    return rounds or bool(coordinates and "sqrt" in found)


def made_of(cls: type[Operation], seed: int, elements: tuple[Attribute, ...]) -> Operation | None:
    return INSTANCES.make(cls, Random(seed), (1, 2, 3, 4), elements=elements)


def instances(cls: type[Operation]) -> list[Operation]:
    """Some operations of a class that compute floats of floats. Those that need bytes have them."""
    made: list[Operation] = []
    for seed in range(150 if cls is nn.ComputeOp else 40):
        elements = (f64,) if seed % 2 else (f64, i32, i64)
        op = made_of(cls, seed, elements) or made_of(cls, seed, (f64, BYTE))
        if op is None or has_no_slope(op):
            continue
        if issubclass(cls, nn.ScatterOp | nn.ScatterAlongOp | nn.UpdateOp):
            op.properties["combiner"] = StringAttr(ARITHMETIC[seed % 4])
        if any(map(is_float, op.operands)) and any(map(is_float, op.results)):
            made.append(op)
    return made


OPERATORS = [cls for cls in nn.NN.operations if cls not in nn.STATE]


@pytest.mark.parametrize("cls", OPERATORS, ids=lambda cls: cls.name)
def test_the_gradient_of_an_operator_is_the_limit_of_differences(cls: type[Operation]):
    """Up to three operations of each form are checked: those that give numbers."""
    some, checked = instances(cls), Counter[object]()
    for seed, op in enumerate(some):
        form = form_of(op)
        if checked[form] == 3:
            continue
        function = op.body.data.function if isinstance(op, nn.ComputeOp) else ""
        module, rng = program(op), np.random.default_rng(seed)
        tried = (drawn(module, rng, draw, whole) for whole in WHOLE for draw in DRAWS)
        inputs = next((each for each in tried if runs(module, each)), None)
        if inputs is None:
            continue
        checked[form] += 1
        try:
            check_gradient(module, inputs, rng)
        except InputError as error:
            without = nn.BitCastOp, nn.CtcLossGradOp, nn.CtcBeamOp
            assert cls in without or function == "bitcast"
            assert str(error).startswith(f"{cls.name} at node ")
    assert checked or not some


def text_program(text: str) -> ModuleOp:
    return parse_module(text, new_context())


def after(text: str, inputs: Arrays, **options) -> Arrays:
    """The outputs of a program with its gradients."""
    module = text_program(text)
    Differentiate(**options).apply(new_context(), module)
    verify(module, NN_LEVEL)
    return run_reference(module, inputs).outputs


def of_one_function(op: str, n: int = 3) -> str:
    kind = f"tensor<{n}xf32>"
    return f"""
    func.func @main(%x: {kind}) -> {kind} {{
      %0 = {op} : ({kind}) -> {kind} loc("node")
      func.return %0 : {kind}
    }}"""


F32 = np.float32


def gradient(op: str, *x: float) -> list[float]:
    text = of_one_function(op, len(x))
    return after(text, {"arg0": np.array(x, F32)})["grad.arg0"].tolist()


@pytest.mark.parametrize(
    ("op", "x", "expected"),
    [
        ("nn.relu %x", [-1, 0, 1], [0, 0, 1]),
        ("nn.abs %x", [-2, 0, 2], [-1, 0, 1]),
        ("nn.clip %x to 0.0, 6.0", [-1, 0, 3, 6, 7], [0, 0, 1, 0, 0]),
        ("nn.leaky_relu %x slope 0.5", [-1, 0, 1], [0.5, 0.5, 1]),
        ("nn.power %x to 0.0", [0, 1], [0, 0]),
        ("nn.power %x to 1.0", [0, 1], [1, 1]),
        ("nn.power %x to 2.0", [0, 3], [0, 6]),
        ("nn.floor %x", [0.5, 1], [0, 0]),
    ],
)
def test_a_function_has_its_stated_slope_at_its_edges(op, x, expected):
    assert gradient(op, *x) == expected


AT_A_POLE = [
    "nn.sqrt %a",
    "nn.log %a",
    "nn.reciprocal %a",
    "nn.power %a to 0.5",
    "nn.power %a to -1.5",
]


@pytest.mark.parametrize("op", AT_A_POLE)
def test_a_gradient_of_zero_is_zero_at_a_pole(op: str):
    """The branch of a select that is not taken passes nothing back, whatever it computes."""
    text = f"""
    func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = nn.constant <"{{zero}}"> : tensor<f32>
      %c = nn.greater %a, %0 : (tensor<2xf32>, tensor<f32>) -> tensor<2xi1>
      %1 = {op} : (tensor<2xf32>) -> tensor<2xf32>
      %2 = nn.select %c, %1, %a : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }}"""
    context = new_context()
    zero = context.blobs.add(np.zeros((), F32)).digest
    module = parse_module(text.replace("{zero}", zero), context)
    Differentiate().apply(context, module)
    found = run_reference(module, {"arg0": np.array([0, 4], F32)}).outputs["grad.arg0"]
    assert found[0] == 1.0
    assert np.isfinite(found[1])
    assert found[1] != 1.0


def test_a_function_of_a_coordinate_passes_back_what_it_counts():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.compute(%x) space <[i = 4] (-i + 3) of [4] -> (i) of [4]
        at (2 * i) of [7] as operand 0 from 5> body <mul> : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }"""
    found = after(text, {"arg0": np.ones(4, F32)})
    assert found["grad.arg0"].tolist() == [11, 9, 7, 5]


@pytest.mark.parametrize(
    ("space", "shape", "wanted"),
    [
        ("<[i = 3] (i, 1) of [3, 2] -> (i) of [3]>", "3", [[0, 4], [0, 8], [0, 12]]),
        (
            "<[i = 2, j = 3] (j, i) of [3, 2] -> (i, j) of [2, 3]>",
            "2x3",
            [[2, 4], [6, 8], [10, 12]],
        ),
    ],
)
def test_an_operand_may_have_other_axes_than_the_result(space: str, shape: str, wanted: object):
    text = f"""
    func.func @main(%x: tensor<3x2xf32>) -> tensor<{shape}xf32> {{
      %0 = nn.compute(%x) space {space} body <square>
        : (tensor<3x2xf32>) -> tensor<{shape}xf32>
      func.return %0 : tensor<{shape}xf32>
    }}"""
    found = after(text, {"arg0": np.array([[1, 2], [3, 4], [5, 6]], F32)})
    assert found["grad.arg0"].tolist() == wanted


def test_narrow_elements_that_are_summed_in_wide_ones_have_narrow_gradients():
    text = """
    func.func @main(%x: tensor<2xf16>, %y: tensor<2xf16>) -> tensor<f32> {
      %0 = nn.compute(%x, %y) space <[i = 2 reduction] (i) of [2], (i) of [2] -> () of []>
        body <mul sum> : (tensor<2xf16>, tensor<2xf16>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }"""
    given = {"arg0": np.array([1, 2], np.float16), "arg1": np.array([3, 4], np.float16)}
    found = after(text, given)
    assert found["grad.arg0"].tolist() == [3, 4]
    assert found["grad.arg1"].dtype == np.float16


def test_equal_elements_share_the_gradient_of_a_maximum():
    text = """
    func.func @main(%x: tensor<1x1x4xf32>, %y: tensor<1x1x4xf32>) -> tensor<1x1x3xf32> {
      %0 = nn.max %x, %y : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
      %1 = nn.pool "max" %0 window [2] stride [1] dilation [1] pad [0] to [0]
        : (tensor<1x1x4xf32>) -> tensor<1x1x3xf32>
      func.return %1 : tensor<1x1x3xf32>
    }"""
    x, y = np.array([[[1, 5, 5, 2]]], F32), np.array([[[0, 5, 4, 2]]], F32)
    found = after(text, {"arg0": x, "arg1": y})
    # Windows: 1 5, 5 5, 5 2. The second one is shared by two elements.
    assert found["grad.arg0"].tolist() == [[[0, 0.75, 1.5, 0]]]
    assert found["grad.arg1"].tolist() == [[[0, 0.75, 0, 0]]]


def test_the_gradient_of_a_product_is_the_product_of_the_others_even_at_zero():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
      %0 = nn.reduce "prod" %x axes [0] : (tensor<4xf32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }"""
    assert after(text, {"arg0": np.array([2, 0, 3, 4], F32)})["grad.arg0"].tolist() == [0, 24, 0, 0]


CONVOLUTION = """
func.func @main(%x: tensor<2x4x9x8xf32>, %w: tensor<6x2x3x2xf32>) -> tensor<2x6x5x7xf32> {
  %0 = nn.conv %x, %w stride [2, 1] dilation [1, 2] pad [1, 1] to [1, 0] groups 2
    : (tensor<2x4x9x8xf32>, tensor<6x2x3x2xf32>) -> tensor<2x6x5x7xf32>
  func.return %0 : tensor<2x6x5x7xf32>
}"""


def test_the_gradients_of_a_convolution_are_the_operations_of_that_name():
    module = text_program(CONVOLUTION)
    Differentiate().apply(new_context(), module)
    found = [op.name for op in module.walk()]
    assert "nn.conv_input_grad" in found
    assert "nn.conv_weight_grad" in found
    assert "nn.compute" not in found


def test_a_gradient_has_a_gradient():
    text = CONVOLUTION.replace("f32", "f64").replace(
        "  func.return %0",
        "  %1 = nn.square %0 : (tensor<2x6x5x7xf64>) -> tensor<2x6x5x7xf64>\n  func.return %1",
    )
    module = text_program(text)
    Differentiate(of=("arg1",)).apply(new_context(), module)
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    # What is left is the sum of the first gradient.
    end = main.body.block.last_op
    total = nn.ReduceOp(end.operands[1], "sum", range(4))
    main.body.block.insert_ops_before([total, ReturnOp(total.result)], end)
    end.detach()
    main.attributes.clear()
    main.update_function_type()
    rng = np.random.default_rng(0)
    inputs = {f"arg{i}": rng.normal(size=v.type.get_shape()) for i, v in enumerate(main.args)}
    check_gradient(module, inputs, rng)


def test_an_operator_without_a_gradient_is_named_with_its_node():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("above")
      %1 = nn.bitcast %0 : (tensor<4xf32>) -> tensor<4xf32> loc("bits")
      func.return %1 : tensor<4xf32>
    }"""
    with pytest.raises(InputError, match="^nn.bitcast at bits looks at the bits of numbers"):
        after(text, {"arg0": np.ones(4, F32)})


def test_a_product_of_8_bit_floats_has_no_gradient_in_16_bits():
    wide, narrow = "tensor<4x4xf16>", "tensor<4x4xf8E4M3FNUZ>"
    text = f"""
    func.func @main(%x: {wide}, %w: {wide}) -> {wide} {{
      %0 = nn.cast %x : ({wide}) -> {narrow}
      %1 = nn.cast %w : ({wide}) -> {narrow}
      %2 = nn.matmul %0, %1 : ({narrow}, {narrow}) -> {wide} loc("fc")
      func.return %2 : {wide}
    }}"""
    with pytest.raises(InputError, match="^nn.matmul at fc has floats of f.* and f.*; need one"):
        after(text, {})


def test_a_scale_of_packed_integers_has_a_gradient_of_its_own_type():
    text = """
    func.func @main(%x: tensor<1x2xf16>, %p: tensor<1x1x1xui8>, %s: tensor<1x1xf32>,
        %z: tensor<1x1xui8>, %h: tensor<2xui8>) -> tensor<1x1xf16> {
      %0 = nn.packed_matmul %x, %p, %s, %z, %h bits 4 : (tensor<1x2xf16>, tensor<1x1x1xui8>,
        tensor<1x1xf32>, tensor<1x1xui8>, tensor<2xui8>) -> tensor<1x1xf16>
      func.return %0 : tensor<1x1xf16>
    }"""
    packed, zeros, shifts = (np.array(n, np.uint8) for n in ([[[0x53]]], [[1]], [0, 4]))
    x, scales = np.array([[2, 1]], np.float16), np.array([[0.5]], F32)
    given = dict(
        zip([f"arg{i}" for i in range(5)], (x, packed, scales, zeros, shifts), strict=True)
    )
    found = after(text, given, of=("arg2",))["grad.arg2"]
    # 2 * (3 - 1) + 1 * (5 - 1)
    assert found.tolist() == [[8]]
    assert found.dtype == F32


@pytest.mark.parametrize("end", ["bitcast", "cast"])
def test_the_bits_of_a_float_do_not_lose_its_gradient_as_integers(end: str):
    """As bits it would be lost; but an integer that is made a number has none."""
    text = f"""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = nn.bitcast %x : (tensor<4xf32>) -> tensor<4xi32>
      %1 = nn.neg %0 : (tensor<4xi32>) -> tensor<4xi32>
      %2 = nn.{end} %1 : (tensor<4xi32>) -> tensor<4xf32> loc("back")
      func.return %2 : tensor<4xf32>
    }}"""
    if end == "cast":
        assert after(text, {"arg0": np.ones(4, F32)})["grad.arg0"].tolist() == [0, 0, 0, 0]
    else:
        with pytest.raises(InputError, match="^nn.bitcast at back looks at the bits of numbers"):
            after(text, {})


@pytest.mark.parametrize("order", ["", "exclusive", "reverse", "exclusive reverse"])
@pytest.mark.parametrize("combiner", ["sum", "max", "min", "prod"])
def test_a_scan_has_the_gradient_of_its_definition(combiner: str, order: str):
    kind = "tensor<2x5xf64>"
    module = text_program(f"""
    func.func @main(%x: {kind}, %w: {kind}) -> tensor<f64> {{
      %0 = nn.scan "{combiner}" %x axis 1 {order} : ({kind}) -> {kind}
      %1 = nn.atan %0 : ({kind}) -> {kind}
      %2 = nn.mul %1, %w : ({kind}, {kind}) -> {kind}
      %3 = nn.reduce "sum" %2 axes [0, 1] : ({kind}) -> tensor<f64>
      func.return %3 : tensor<f64>
    }}""")
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(2, 5)) for name in ("arg0", "arg1")}
    if combiner == "prod":
        # Products of others, also where one or two elements are 0.
        inputs["arg0"][0, 2] = inputs["arg0"][1, 1] = inputs["arg0"][1, 3] = 0
    check_gradient(module, inputs, rng)


@pytest.mark.parametrize(
    ("combiner", "order", "expected"),
    [
        ("max", "", [1, 20, 0, 300, 0]),
        ("min", "", [11111, 0, 0, 0, 0]),
        ("max", "reverse", [0, 0, 0, 0, 11111]),
    ],
)
def test_a_running_extreme_is_that_of_the_first_element_that_reaches_it(combiner, order, expected):
    text = f"""
    func.func @main(%x: tensor<5xf32>, %w: tensor<5xf32>) -> tensor<5xf32> {{
      %0 = nn.scan "{combiner}" %x axis 0 {order} : (tensor<5xf32>) -> tensor<5xf32>
      %1 = nn.mul %0, %w : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      func.return %1 : tensor<5xf32>
    }}"""
    inputs = {"arg0": np.array([1, 2, 2, 3, 3], F32), "arg1": np.array([1, 10, 10, 100, 200], F32)}
    if expected == [11111, 0, 0, 0, 0] or order:
        inputs["arg1"] = np.array([1, 10, 100, 1000, 10000], F32)
    assert after(text, inputs)["grad.arg0"].tolist() == expected


@pytest.mark.parametrize("zeros", [(), (1,), (1, 3)])
def test_updates_that_are_multiplied_get_the_product_of_the_others(zeros: tuple[int, ...]):
    kind = "tensor<4x2xf64>"
    module = text_program(f"""
    func.func @main(%x: tensor<6x2xf64>, %w: {kind}, %i: tensor<6xi32>) -> tensor<f64> {{
      %0 = nn.scatter "prod" %x, %i axis 0 size 4 : (tensor<6x2xf64>, tensor<6xi32>) -> {kind}
      %1 = nn.mul %0, %w : ({kind}, {kind}) -> {kind}
      %2 = nn.reduce "sum" %1 axes [0, 1] : ({kind}) -> tensor<f64>
      func.return %2 : tensor<f64>
    }}""")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 2))
    x[list(zeros)] = 0
    indices = np.array([0, 1, 1, 2, 1, 0], np.int32)
    check_gradient(module, {"arg0": x, "arg1": rng.normal(size=(4, 2)), "arg2": indices}, rng)


LOOKUP = """
    func.func @main(%x: tensor<6x2xf64>, %b: tensor<6xf64>, %w: tensor<4x2xf64>, %i: tensor<6xi32>)
        -> tensor<f64> {{
      %0 = nn.compute(%x, %b, %i) space <[row = 4, k = 2, j = 6 reduction] (j, k) of [6, 2],
          (j) of [6], (j) of [6] -> (row, k) of [4, 2] where operand 2 is (row) of [4]>
        body <{body}> : (tensor<6x2xf64>, tensor<6xf64>, tensor<6xi32>) -> tensor<4x2xf64>
      %1 = nn.atan %0 : (tensor<4x2xf64>) -> tensor<4x2xf64>
      %2 = nn.mul %1, %w : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<4x2xf64>
      %3 = nn.reduce "sum" %2 axes [0, 1] : (tensor<4x2xf64>) -> tensor<f64>
      func.return %3 : tensor<f64>
    }}"""
"""Rows of a table merge a function of what is sent to them."""


@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("function", ["mul", "sub", "div"])
def test_a_function_where_relations_hold_has_a_gradient(function: str, combiner: str):
    module = text_program(LOOKUP.format(body=f"{function} {combiner}"))
    rng = np.random.default_rng(0)
    inputs = {f"arg{i}": rng.normal(size=s) for i, s in enumerate([(6, 2), (6,), (4, 2)])}
    # Each row gets an update, so that none is infinite.
    inputs["arg3"] = np.array([0, 1, -1, 2, 1, 0], np.int32)
    check_gradient(module, inputs, rng)


@pytest.mark.parametrize(
    "body",
    [
        "mul sum then tanh",
        "mul sum then relu, add, sigmoid",
        "mul max then add, exp",
        "sub prod then sin, sub",
    ],
)
def test_the_functions_that_follow_have_gradients(body: str):
    extra = "add" in body or body.endswith("sub")
    further = ", (y) of [3]" if extra else ""
    operand, kind = (", %b", ", tensor<3xf64>") if extra else ("", "")
    module = text_program(f"""
    func.func @main(%x: tensor<3x4xf64>, %v: tensor<4xf64>, %b: tensor<3xf64>) -> tensor<f64> {{
      %0 = nn.compute(%x, %v{operand}) space <[y = 3, k = 4 reduction] (y, k) of [3, 4], (k) of [4]
        {further} -> (y) of [3]> body <{body}>
        : (tensor<3x4xf64>, tensor<4xf64>{kind}) -> tensor<3xf64>
      %1 = nn.reduce "sum" %0 axes [0] : (tensor<3xf64>) -> tensor<f64>
      func.return %1 : tensor<f64>
    }}""")
    rng = np.random.default_rng(1)
    inputs = {f"arg{i}": rng.normal(size=s) for i, s in enumerate([(3, 4), (4,), (3,)])}
    check_gradient(module, inputs, rng)


@pytest.mark.parametrize("count", [6, 1])
@pytest.mark.parametrize("combiner", ["last", "sum", "prod", "max", "min"])
def test_an_update_shares_its_gradient_with_the_table(combiner: str, count: int):
    """One index may be that of all updates."""
    kind, rows, index = "tensor<4x2xf64>", "tensor<6x2xf64>", f"tensor<{count}x1xi32>"
    module = text_program(f"""
    func.func @main(%x: {rows}, %t: {kind}, %w: {kind}, %i: {index}) -> tensor<f64> {{
      %0 = nn.update "{combiner}" %x, %i into %t axis 0 : ({rows}, {index}, {kind}) -> {kind}
      %1 = nn.mul %0, %w : ({kind}, {kind}) -> {kind}
      %2 = nn.reduce "sum" %1 axes [0, 1] : ({kind}) -> tensor<f64>
      func.return %2 : tensor<f64>
    }}""")
    rng = np.random.default_rng(0)
    inputs = {f"arg{i}": rng.normal(size=s) for i, s in enumerate([(6, 2), (4, 2), (4, 2)])}
    inputs["arg3"] = np.array([[0], [1], [-3], [2], [1], [0]], np.int32)[:count]
    check_gradient(module, inputs, rng)
    if combiner == "prod":
        inputs["arg0"][1] = inputs["arg1"][2] = 0
        check_gradient(module, inputs, rng)


def test_equal_updates_and_the_element_before_share_a_maximum():
    text = """
    func.func @main(%x: tensor<3xf32>, %t: tensor<2xf32>, %i: tensor<3xi32>) -> tensor<2xf32> {
      %0 = nn.update "max" %x, %i into %t axis 0
        : (tensor<3xf32>, tensor<3xi32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }"""
    given = {"arg0": np.array([5, 5, 1], F32), "arg1": np.array([5, 1], F32)}
    found = after(text, given | {"arg2": np.array([0, 0, 1], np.int32)})
    assert found["grad.arg0"].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 2])
    assert found["grad.arg1"].tolist() == pytest.approx([1 / 3, 1 / 2])


@pytest.mark.parametrize("combiner", ["moments", "exp_sum", "argmax"])
@pytest.mark.parametrize("pad", [0, 1])
def test_a_window_of_several_results_has_the_gradients_of_them_all(combiner: str, pad: int):
    """Windows overlap; with padding, those at the edge have fewer elements."""
    index = combiner == "argmax"
    first, shape = "tensor<1x2x5x4xf64>", f"tensor<1x2x{4 + 2 * pad}x{3 + 2 * pad}xf64>"
    second = shape.replace("f64", "i32") if index else shape
    module = text_program(f"""
    func.func @main(%x: {first}, %v: {shape}, %w: {shape}) -> tensor<f64> {{
      %0, %1 = nn.summarize_windows "{combiner}" %x window [2, 2] stride [1, 1] dilation [1, 1]
        pad [{pad}, {pad}] to [{pad}, {pad}] : ({first}) -> ({shape}, {second})
      %2 = nn.mul %0, %v : ({shape}, {shape}) -> {shape}
      %3 = nn.{"abs %2 : (" if index else "mul %1, %w : (" + shape + ", "}{shape}) -> {shape}
      %4 = nn.add %2, %3 : ({shape}, {shape}) -> {shape}
      %5 = nn.reduce "sum" %4 axes [0, 1, 2, 3] : ({shape}) -> tensor<f64>
      func.return %5 : tensor<f64>
    }}""")
    rng = np.random.default_rng(2)
    sizes = [(1, 2, 5, 4), *2 * [(1, 2, 4 + 2 * pad, 3 + 2 * pad)]]
    check_gradient(module, {f"arg{i}": rng.normal(size=s) for i, s in enumerate(sizes)}, rng)


def test_padding_that_equals_an_extreme_takes_no_share_of_it():
    """It contributes nothing, because its positions are outside."""
    text = """
    func.func @main(%x: tensor<4xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
      %0, %1 = nn.compute(%x) space <[y = 3, k = 2 reduction] (2 * y + k - 1 fill) of [4] pad 9.0
        -> (y) of [3], (y) of [3] at (2 * y + k - 1 fill) of [4]> body <identity argmax>
        : (tensor<4xf32>) -> (tensor<3xf32>, tensor<3xi32>)
      func.return %0, %1 : tensor<3xf32>, tensor<3xi32>
    }"""
    found = after(text, {"arg0": np.array([9, 2, 3, 9], F32)})
    assert found["out0"].tolist() == [9, 3, 9]
    assert found["grad.arg0"].tolist() == [1, 0, 1, 1]


def test_names_that_the_program_does_not_have_are_refused():
    with pytest.raises(InputError, match="no input or state of floats 'y'; there is arg0$"):
        after(of_one_function("nn.exp %x"), {}, of=("y",))
    with pytest.raises(InputError, match="no output of floats 'y'; there is out0$"):
        after(of_one_function("nn.exp %x"), {}, loss="y")


def test_a_state_that_changes_between_runs_is_refused():
    context = new_context()
    blob = context.blobs.add(np.ones(1, np.float32)).digest
    text = f"""
    builtin.module {{
      nn.state @m : tensor<1xf32> = <"{blob}">
      func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {{
        %0 = control.repeat 2 runs(%x) : (tensor<1xf32>) -> tensor<1xf32> {{
        ^bb0(%1: tensor<1xf32>, %turn: tensor<i32>):
          %2 = nn.load @m : tensor<1xf32>
          nn.store %2, @m : tensor<1xf32>
          control.yield %x : tensor<1xf32>
        }}
        func.return %0 : tensor<1xf32>
      }}
    }}
    """
    module = parse_module(text, context)
    with pytest.raises(
        InputError, match=r"^nn.load at .*: state 'm' changes between the runs of a"
    ):
        Differentiate().apply(context, module)


def test_what_the_loss_does_not_depend_on_has_a_gradient_of_zero():
    text = """
    func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>, %i: tensor<2xi32>) -> tensor<2xf32> {
      %0 = nn.cast %i : (tensor<2xi32>) -> tensor<2xf32>
      %1 = nn.mul %x, %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }"""
    inputs = {"arg0": np.ones(2, F32), "arg1": np.ones(3, F32), "arg2": np.array([2, 3], np.int32)}
    found = after(text, inputs)
    assert found["grad.arg0"].tolist() == [2, 3]
    assert found["grad.arg1"].tolist() == [0, 0, 0]
    assert "grad.arg2" not in found
