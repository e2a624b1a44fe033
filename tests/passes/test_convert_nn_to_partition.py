import pytest
from some_tensors import module_of
from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.irdl import irdl_op_definition, operand_def

from abele.dialects import partition
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.nn import ConvOp, PureTensorOp, SoftmaxOp
from abele.ir.errors import InputError
from abele.ir.geometry.spread import spread
from abele.ir.provenance import named
from abele.passes.convert_nn_to_partition import ConvertNnToPartition

from ..strategies import context
from .programs import TO_PARTITION, after, net


def test_weights_live_in_the_layout_of_their_only_user():
    (state,) = [
        op
        for op in after(TO_PARTITION).walk()
        if isinstance(op, partition.StateOp) and op.sym_name.data == "w"
    ]
    assert state.type.layout.data.cells == 6
    assert state.type.layout.data.replicas == 3


def test_inputs_lie_among_the_tiles_of_their_first_user_every_element_once():
    module = after(TO_PARTITION)
    (main,) = [op for op in module.walk() if isinstance(op, FuncOp)]
    (moved,) = [op.result for use in main.body.block.args[0].uses if (op := use.operation)]
    given, wanted = main.body.block.args[0].type.layout.data, moved.type.layout.data
    assert given == spread(wanted)
    assert (given.replicas, given.cells) == (1, wanted.cells)


def test_an_operation_without_a_plan_is_named():
    module, context = net()
    (conv,) = [op for op in module.walk() if isinstance(op, ConvOp)]
    del conv.attributes["plan"]
    with pytest.raises(InputError, match=r"nn\.conv at conv: no plan; run plan-splits"):
        ConvertNnToPartition().apply(context, module)


def test_a_plan_of_another_operation_is_refused():
    module, context = net()
    (conv,) = [op for op in module.walk() if isinstance(op, ConvOp)]
    conv.attributes["plan"] = PlanAttr(Plan((1, 2)))
    with pytest.raises(InputError, match=r"nn\.conv at conv: a split of 2 parts"):
        ConvertNnToPartition().apply(context, module)


def test_a_module_without_a_target_is_refused():
    module, context = net()
    del module.attributes["abele.target"]
    with pytest.raises(InputError, match="the module names no target: run plan-splits first"):
        ConvertNnToPartition().apply(context, module)


@pytest.mark.parametrize(
    "body",
    [
        "%0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>",
        """%0 = control.repeat 2 (%x) : (tensor<4xf32>) -> tensor<4xf32> {
        ^bb0(%y: tensor<4xf32>):
          %1 = func.call @f(%y) : (tensor<4xf32>) -> tensor<4xf32>
          control.yield %1 : tensor<4xf32>
        }""",
    ],
    ids=["at once", "in a loop"],
)
def test_a_function_that_calls_itself_is_refused(body: str):
    module = module_of(
        f"""
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} func.return %0 : tensor<4xf32> }}
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
          %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %0 : tensor<4xf32>
        }}""",
        made := context(),
    )
    module.attributes["abele.target"] = StringAttr("tiny:8")
    with pytest.raises(InputError, match="@f calls itself"):
        ConvertNnToPartition().apply(made, module)


@irdl_op_definition
class SaysNothingOp(PureTensorOp):
    name = "mine.says_nothing"
    x = operand_def(TensorType)

    def infer(self):
        return self.x.type


def test_an_operation_without_a_definition_and_a_composite_get_different_errors():
    for kind, problem in (
        (
            SaysNothingOp,
            "cannot be lowered: define core_structure, moves or parts, or add a rule",
        ),
        (lambda x: SoftmaxOp(x, 1), "no conversion to partition; run decompose first"),
    ):
        module, _ = net()
        (conv,) = [op for op in module.walk() if isinstance(op, ConvOp)]
        op = kind(conv.image)
        op.location = named("odd")
        conv.parent.insert_op_before(op, conv)
        with pytest.raises(InputError, match=f"{op.name} at odd: {problem}"):
            ConvertNnToPartition().apply(Context(), module)
