"""Control flow, and operations that only pass values on."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Region
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)

from ...ir.upstream import VerifyException
from ..source_types import element_of, shape_of
from .base import PureOp, ReturnOp, StablehloOp, need_element, need_length, need_shape


def _check_returns(what: str, region: Region, types: Sequence[Attribute]) -> None:
    """Raise VerifyException unless a region is one block that returns values of these types."""
    blocks = tuple(region.blocks)
    end = blocks[0].last_op if len(blocks) == 1 else None
    if not isinstance(end, ReturnOp):
        raise VerifyException(f"{what}: need one block that ends with stablehlo.return")
    found = [value.type for value in end.values]
    if found != list(types):
        listed = [", ".join(map(str, each)) for each in (found, types)]
        raise VerifyException(f"{what} returns {listed[0]}; need {listed[1]}")


class BranchingOp(StablehloOp, ABC):
    """An operation that computes one of its regions.

    Attributes:
        made: what the region returns.
    """

    made = var_result_def()

    def verify_(self) -> None:
        """Check also what the regions return."""
        super().verify_()
        for i, region in enumerate(self.regions):
            _check_returns(f"region {i}", region, [each.type for each in self.made])
            need_length(f"the arguments of region {i}", region.block.args, 0)


@irdl_op_definition
class IfOp(BranchingOp):
    """Compute the first region where a condition holds, and the second one otherwise.

    Example: %1 = "stablehlo.if"(%0) ({ "stablehlo.return"(%a) : (tensor<f32>) -> () }, {
    "stablehlo.return"(%b) : (tensor<f32>) -> () }) : (tensor<i1>) -> tensor<f32>

    Attributes:
        pred: the condition, without axes.
        true_branch: computed if it holds.
        false_branch: computed otherwise.
    """

    name = "stablehlo.if"
    pred = operand_def(TensorType)
    true_branch = region_def()
    false_branch = region_def()

    def verify_(self) -> None:
        """Check also the condition."""
        super().verify_()
        need_shape("pred", self.pred, ())
        need_element("pred", self.pred, i1)


@irdl_op_definition
class CaseOp(BranchingOp):
    """Compute the region of a number; the last one for a number that no region has.

    Example: %1 = "stablehlo.case"(%0) ({ "stablehlo.return"(%a) : (tensor<f32>) -> () }, {
    "stablehlo.return"(%b) : (tensor<f32>) -> () }) : (tensor<i32>) -> tensor<f32>

    Attributes:
        index: the number, without axes.
        branches: the regions.
    """

    name = "stablehlo.case"
    index = operand_def(TensorType)
    branches = var_region_def()

    def verify_(self) -> None:
        """Check also the number."""
        super().verify_()
        need_shape("index", self.index, ())
        need_element("index", self.index, i32)
        if not self.branches:
            raise VerifyException("no regions; need one or more")


@irdl_op_definition
class WhileOp(StablehloOp):
    """Compute a region again and again as long as a condition holds.

    Example: %1 = "stablehlo.while"(%0) ({
    ^bb0(%a: tensor<i1>):
    "stablehlo.return"(%a) : (tensor<i1>) -> () }, {
    ^bb1(%b: tensor<i1>):
    %c = "stablehlo.not"(%b) : (tensor<i1>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> () }) : (tensor<i1>) -> tensor<i1>

    Attributes:
        operand: the first values.
        made: the last values.
        cond: whether to go on, from the present values.
        body: the next values, from the present ones.
    """

    name = "stablehlo.while"
    operand = var_operand_def()
    made = var_result_def()
    cond = region_def()
    body = region_def()

    def verify_(self) -> None:
        """Check also the regions."""
        super().verify_()
        types = [each.type for each in self.operand]
        if [each.type for each in self.made] != types:
            raise VerifyException("the results have other types than the operands")
        for what, region in (("cond", self.cond), ("body", self.body)):
            if len(tuple(region.blocks)) != 1:
                raise VerifyException(f"{what}: need one block")
            if [each.type for each in region.block.args] != types:
                raise VerifyException(f"{what} takes other types than the operands'")
        _check_returns("body", self.body, types)
        end = self.cond.block.last_op
        if (
            not isinstance(end, ReturnOp)
            or len(end.values) != 1
            or element_of(end.values[0]) != i1
            or shape_of(end.values[0])
        ):
            raise VerifyException("cond returns no truth value without axes")


class PassingOp(PureOp, ABC):
    """An operation that only passes values on.

    Attributes:
        inputs: the values.
        made: the same values.
    """

    inputs = var_operand_def()
    made = var_result_def()


@irdl_op_definition
class OptimizationBarrierOp(PassingOp):
    """The same values, which a compiler must have computed all before any is read.

    Example: %1 = "stablehlo.optimization_barrier"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.optimization_barrier"

    def verify_(self) -> None:
        """Check also the types."""
        super().verify_()
        if [each.type for each in self.inputs] != [each.type for each in self.made]:
            raise VerifyException("the results have other types than the operands")


@irdl_op_definition
class CustomCallOp(PassingOp):
    """Call a function of a library by its name.

    Example: %1 = "stablehlo.custom_call"(%0) <{call_target_name = "Sharding"}> :
    (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        call_target_name: the name of what is called.
        has_side_effect: whether it does more than to compute its results.
        backend_config: what else it is told.
        api_version: how it is called.
        called_computations: the functions that it may call.
        operand_layouts: how its operands must lie.
        result_layouts: how its results must lie.
        output_operand_aliases: which results take the place of operands.
    """

    name = "stablehlo.custom_call"
    call_target_name = prop_def(StringAttr)
    has_side_effect = opt_prop_def(IntegerAttr.constr(i1))
    backend_config = opt_prop_def(Attribute)
    api_version = opt_prop_def(IntegerAttr.constr(i32))
    called_computations = opt_prop_def(Attribute)
    operand_layouts = opt_prop_def(Attribute)
    result_layouts = opt_prop_def(Attribute)
    output_operand_aliases = opt_prop_def(Attribute)


@irdl_op_definition
class CompositeOp(PassingOp):
    """An operation with a name of its own that a function of the program defines.

    Example: %1 = "stablehlo.composite"(%0) <{name = "my.op", decomposition = @my_op,
    composite_attributes = {}, version = 0 : i32}> : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        name: its name.
        composite_attributes: what else it is told.
        decomposition: the function.
        version: of its meaning.
    """

    name = "stablehlo.composite"
    called_name = prop_def(StringAttr, prop_name="name")
    composite_attributes = opt_prop_def(DictionaryAttr)
    decomposition = prop_def(FlatSymbolRefAttrConstr)
    version = opt_prop_def(IntegerAttr.constr(i32))


CONTROL = (
    IfOp,
    CaseOp,
    WhileOp,
    OptimizationBarrierOp,
    CustomCallOp,
    CompositeOp,
    ReturnOp,
)
"""All of them."""
