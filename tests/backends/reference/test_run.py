import numpy as np
import pytest
from some_tensors import context, counting, module_of
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def

from abele.backends.reference import (
    Meaningless,
    evaluate_operation,
    first_meaningless,
    run_reference,
)
from abele.backends.reference.run import last_uses
from abele.dialects import nn
from abele.ir.errors import InputError
from abele.ir.provenance import named
from abele.ir.upstream import ModuleOp

X = np.array([1.0, -2.0, 3.0, -4.0], np.float32)
T = "tensor<4xf32>"


def program(body: str, states: str = "", attributes: str = "", **blobs: np.ndarray) -> ModuleOp:
    text = f"""{states}
func.func @main(%x: {T}) -> {T} {attributes} {{
{body}
}}"""
    return module_of(text, context(), **blobs)


def outputs(module: ModuleOp, x: np.ndarray = X, **rest) -> np.ndarray:
    run = run_reference(module, {"arg0": x}, **rest)
    return run.outputs["out0"]


RELU_ADD = f"""
    %0 = nn.relu %x : ({T}) -> {T}
    %1 = nn.add %0, %x : ({T}, {T}) -> {T}
    func.return %1 : {T}"""


def test_operations_run_in_order():
    assert outputs(program(RELU_ADD)).tolist() == [2, -2, 6, -4]


def test_inputs_and_outputs_have_the_names_that_the_function_gives():
    module = program(RELU_ADD, attributes='attributes {arg_names = ["in"], result_names = ["sum"]}')
    run = run_reference(module, {"in": X})
    assert list(run.outputs) == ["sum"]


def test_each_result_is_rounded_to_its_own_type():
    module = module_of(
        """func.func @main(%x: tensor<1xf16>) -> (tensor<1xf16>, tensor<1xf32>) {
          %0 = nn.add %x, %x : (tensor<1xf16>, tensor<1xf16>) -> tensor<1xf16>
          %1 = nn.cast %x : (tensor<1xf16>) -> tensor<1xf32>
          %2 = nn.scale %1 by 1.0000001 : (tensor<1xf32>) -> tensor<1xf32>
          func.return %0, %2 : tensor<1xf16>, tensor<1xf32>
        }""",
        context(),
    )
    run = run_reference(module, {"arg0": np.array([40000], np.float16)})
    assert run.outputs["out0"].tolist() == [np.inf]
    assert run.outputs["out1"].dtype == np.float32
    assert run.outputs["out1"][0] == np.float32(40000 * 1.0000001)


STATE = f"nn.state @n : {T} = {{n}}\n"


def test_loads_return_the_old_value_and_stores_set_the_next():
    module = program(
        f"""
    %0 = nn.load @n : {T}
    %1 = nn.add %0, %x : ({T}, {T}) -> {T}
    nn.store %1, @n : {T}
    %2 = nn.load @n : {T}
    func.return %2 : {T}""",
        STATE,
        n=counting((4,)),
    )
    run = run_reference(module, {"arg0": X})
    assert run.outputs["out0"].tolist() == [0, 1, 2, 3]
    assert run.state["n"].tolist() == [1, -1, 5, -1]
    again = run_reference(module, {"arg0": X}, run.state)
    assert again.outputs["out0"].tolist() == [1, -1, 5, -1]
    assert run.state["n"].tolist() == [1, -1, 5, -1]


def test_a_repeat_carries_values_and_reads_those_outside():
    module = program(f"""
    %0 = control.repeat 5 (%x) : ({T}) -> {T} {{
    ^bb0(%y: {T}):
      %z = nn.add %y, %x : ({T}, {T}) -> {T}
      control.yield %z : {T}
    }}
    func.return %0 : {T}""")
    assert outputs(module).tolist() == (6 * X).tolist()


IF = f"""
    %c = nn.reduce "sum" %x axes [0] : ({T}) -> tensor<f32>
    %n = nn.neg %c : (tensor<f32>) -> tensor<f32>
    %p = nn.less %c, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %0 = control.if %p : tensor<i1> -> ({T}) {{
      %a = nn.neg %x : ({T}) -> {T}
      control.yield %a : {T}
    }} else {{
      control.yield %x : {T}
    }}
    func.return %0 : {T}"""


def test_an_if_runs_one_region():
    module = program(IF)
    assert outputs(module).tolist() == (-X).tolist()
    assert outputs(module, -X).tolist() == (-X).tolist()


def halving(test: str) -> ModuleOp:
    return program(
        f"""
    %one = nn.constant {{one}} : tensor<1xf32>
    %0 = control.while (%x) : ({T}) -> {T} {{
    ^bb0(%y: {T}):
      %m = nn.reduce "max" %y axes [0] keep_dims : ({T}) -> tensor<1xf32>
      %p = nn.{test} %m, %one : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
      control.condition %p : tensor<1xi1>
    }} do {{
    ^bb1(%y: {T}):
      %z = nn.scale %y by 0.5 : ({T}) -> {T}
      control.yield %z : {T}
    }}
    func.return %0 : {T}""",
        one=np.ones(1, np.float32),
    )


def test_a_while_runs_as_long_as_its_test_holds():
    assert outputs(halving("greater")).tolist() == (X / 4).tolist()


def test_an_endless_loop_is_an_error():
    with pytest.raises(InputError, match="control.while at .*: not done after 30 iterations"):
        outputs(halving("less_equal"), X / 8, max_turns=30)


def test_functions_are_called_and_may_not_call_themselves_for_ever():
    called = f"""func.func private @double(%y: {T}) -> {T} {{
      %0 = nn.add %y, %y : ({T}, {T}) -> {T}
      %1 = func.call @CALLEE(%0) : ({T}) -> {T}
      func.return %1 : {T}
    }}
    func.func private @same(%y: {T}) -> {T} {{ func.return %y : {T} }}
    """
    body = f"""
    %0 = func.call @double(%x) : ({T}) -> {T}
    func.return %0 : {T}"""
    assert outputs(program(body, called.replace("CALLEE", "same"))).tolist() == (2 * X).tolist()
    with pytest.raises(InputError, match="at most 64 nested calls"):
        outputs(program(body, called.replace("CALLEE", "double")))


def test_a_composite_computes_the_same_as_its_parts():
    module = program(f"""
    %0 = nn.softmax %x axis 0 : ({T}) -> {T}
    %1 = nn.add %0, %0 : ({T}, {T}) -> {T}
    func.return %1 : {T}""")
    seen: list[str] = []
    before = str(module)
    got = outputs(module, observe=lambda op, operands, results: seen.append(op.name))
    power = np.exp(X.astype(float) - 3)
    np.testing.assert_allclose(got, 2 * power / power.sum(), rtol=1e-6)
    assert seen == ["nn.softmax", "nn.add"]
    assert str(module) == before


def test_an_observer_can_hold_each_operation_to_its_bound():
    seen: list[float] = []

    def observe(op, operands, results):
        value, bound = evaluate_operation(op, operands)
        seen.append(float(np.max(np.abs(value - results[0]) - bound)))

    outputs(program(RELU_ADD), observe=observe)
    assert len(seen) == 2
    assert max(seen) <= 0


def test_a_composite_has_no_bound_of_its_own():
    module = program(f"""
    %0 = nn.softmax %x axis 0 : ({T}) -> {T}
    func.return %0 : {T}""")
    op = next(op for op in module.walk() if isinstance(op, nn.SoftmaxOp))
    with pytest.raises(ValueError, match="nn.softmax: no bound; decompose it first"):
        evaluate_operation(op, [X])


def test_values_die_with_their_last_reader():
    module = program(f"""
    %0 = nn.relu %x : ({T}) -> {T}
    %1 = nn.neg %0 : ({T}) -> {T}
    %unused = nn.neg %0 : ({T}) -> {T}
    %2 = control.repeat 2 (%1) : ({T}) -> {T} {{
    ^bb0(%y: {T}):
      %z = nn.add %y, %x : ({T}, {T}) -> {T}
      control.yield %z : {T}
    }}
    func.return %2 : {T}""")
    block = next(op for op in module.walk() if op.name == "func.func").regions[0].block
    relu, neg, unused, repeat, end = list(block.ops)
    assert last_uses(block)[relu] == ()
    assert last_uses(block)[neg] == ()
    assert set(last_uses(block)[unused]) == {unused.results[0], relu.results[0]}
    assert set(last_uses(block)[repeat]) == {neg.results[0], block.args[0]}
    assert set(last_uses(block)[end]) == {repeat.results[0]}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input 'arg0' is missing; given: none"),
        ({"y": X}, "no input 'y'; there is arg0"),
        ({"arg0": X[:2]}, r"input 'arg0': float32\[2\]; need float32\[4\]"),
        ({"arg0": X.astype(float)}, r"input 'arg0': float64\[4\]; need float32\[4\]"),
    ],
)
def test_bad_inputs_are_named(inputs, message: str):
    with pytest.raises(InputError, match=message):
        run_reference(program(RELU_ADD), inputs)


def test_bad_states_are_named():
    module = program(RELU_ADD, STATE, n=counting((4,)))
    with pytest.raises(InputError, match="state 'm': there is n"):
        run_reference(module, {"arg0": X}, {"m": X})
    with pytest.raises(InputError, match=r"state 'n': float32\[2\]; need float32\[4\]"):
        run_reference(module, {"arg0": X}, {"n": X[:2]})


def test_an_error_says_where_it_happened():
    module = program(f"""
    %0 = nn.add %x, %x : ({T}, {T}) -> {T} loc("conv1/bias")
    func.return %0 : {T}""")

    def fail(op, operands):
        raise MemoryError

    with pytest.raises(MemoryError) as raised:
        outputs(module, evaluate=fail)
    assert raised.value.__notes__ == ["in nn.add at conv1/bias"]


@irdl_op_definition
class SaysNothingOp(nn.PureTensorOp):
    name = "mine.says_nothing"
    x = operand_def(TensorType)

    def infer(self):
        return nn.tensor_of(self.x)


@irdl_op_definition
class MadeOfNothingOp(nn.CompositeOp):
    name = "mine.made_of_nothing"
    x = operand_def(TensorType)

    def infer(self):
        return nn.tensor_of(self.x)

    def parts(self, made):
        return made("part", SaysNothingOp(self.x))


def replaced(module: ModuleOp, cls: type[nn.PureTensorOp | nn.CompositeOp]) -> Operation:
    """Replace the first relu of a module by another operation, which is returned."""
    relu = next(op for op in module.walk() if isinstance(op, nn.ReluOp))
    odd = cls(relu.operand)
    odd.location = named("odd")
    relu.parent.insert_op_before(odd, relu)
    relu.results[0].replace_all_uses_with(odd.results[0])
    relu.detach()
    relu.erase()
    return odd


def test_an_operation_without_a_meaning_is_refused():
    module = program(RELU_ADD)
    odd = replaced(module, SaysNothingOp)
    with pytest.raises(
        Meaningless, match=r"mine\.says_nothing at odd: cannot be lowered"
    ) as caught:
        run_reference(module, {"arg0": X})
    assert caught.value.op is odd


REPEATED_RELU = f"""
    %0 = control.repeat 5 (%x) : ({T}) -> {T} {{
    ^bb0(%y: {T}):
      %z = nn.relu %y : ({T}) -> {T}
      control.yield %z : {T}
    }}
    func.return %0 : {T}"""


@pytest.mark.parametrize("cls", [SaysNothingOp, MadeOfNothingOp])
@pytest.mark.parametrize("body", [RELU_ADD, REPEATED_RELU])
def test_the_first_operation_without_a_meaning_is_found_in_regions_and_in_parts(body, cls):
    module = program(body)
    assert first_meaningless(module) is None
    odd = replaced(module, cls)
    assert first_meaningless(module) is odd
