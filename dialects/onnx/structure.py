"""The operations of the dialect that are no operators: weights, ends of graphs, functions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_region_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure

from ...ir.upstream import VerifyException
from ..onnx_level import FUNCTION
from .attributes import TensorAttr
from .base import Node
from .kinds import OfKinds
from .types import SKIPPED, UNKNOWN, agree, code_of_dtype, element_of_code, tensor_of


def type_of_weight(tensor: Attribute) -> Attribute:
    """The type of a weight, as far as its attribute says."""
    if not isinstance(tensor, TensorAttr):
        return UNKNOWN
    array = tensor.array
    return tensor_of(element_of_code(code_of_dtype(array.dtype)), array.shape)


def _need_counts(op: Node, operands: int, results: int) -> None:
    for given, wanted, what in (
        (len(op.operands), operands, "operands"),
        (len(op.results), results, "results"),
    ):
        if given != wanted:
            raise VerifyException(f"{given} {what}; need {wanted}")


class _Nullary(Node):
    """An operation without operands, and with one result."""

    @classmethod
    def operand_range(cls) -> tuple[int, int | None]:
        """The fewest and the most operands."""
        return 0, 0

    @classmethod
    def result_range(cls) -> tuple[int, int | None]:
        """The fewest and the most results."""
        return 1, 1

    def verify_(self) -> None:
        """Check the numbers of operands and results."""
        _need_counts(self, 0, 1)


@irdl_op_definition
class NoneOp(_Nullary):
    """Stand for an optional operand that is left out.

    Example: %0 = onnx.none() : () -> !onnx.skipped
    """

    name = "onnx.none"
    traits = traits_def(Pure())

    def infer_all(self) -> Sequence[Attribute]:
        """The only type of an operand that is left out."""
        return [SKIPPED]

    def infer_for(self, wanted: Sequence[Attribute]) -> Sequence[Attribute]:
        """The only type of an operand that is left out."""
        return [SKIPPED]

    def verify_(self) -> None:
        """Check also the type."""
        super().verify_()
        if self.results[0].type != SKIPPED:
            raise VerifyException(f"result of type {self.results[0].type}; need {SKIPPED}")


@irdl_op_definition
class InitializerOp(_Nullary):
    """A weight of a graph.

    Example: %w = onnx.initializer() {tensor = #onnx.tensor<#abele.blob<"...">, {name = "w"}>} :
    () -> tensor<4xf32>

    Attributes:
        tensor: its elements and its name. A dictionary is a sparse tensor: `values` and `indices`.
    """

    name = "onnx.initializer"
    tensor = prop_def(OfKinds(("TENSOR", "SPARSE_TENSOR")))
    traits = traits_def(Pure())

    def infer_all(self) -> Sequence[Attribute]:
        """The type of the tensor."""
        return self.infer_for(())

    def infer_for(self, wanted: Sequence[Attribute]) -> Sequence[Attribute]:
        """The type of the tensor."""
        return [type_of_weight(self.tensor)]

    def verify_(self) -> None:
        """Check also the type."""
        super().verify_()
        found = type_of_weight(self.tensor)
        if not agree(self.results[0].type, found):
            raise VerifyException(f"result of type {self.results[0].type}; the tensor is {found}")


@irdl_op_definition
class DefaultOp(Node):
    """Give an input of a graph the value that it has if nobody gives another one.

    Example: onnx.default(%w) {tensor = #onnx.tensor<#abele.blob<"...">, {name = "w"}>} :
    (tensor<4xf32>) -> ()

    Attributes:
        tensor: as for onnx.initializer.
    """

    name = "onnx.default"
    tensor = prop_def(OfKinds(("TENSOR", "SPARSE_TENSOR")))

    def verify_(self) -> None:
        """Check the numbers of operands and results."""
        _need_counts(self, 1, 0)


@irdl_op_definition
class ReturnOp(Node):
    """End a graph that is an attribute or a function, and return its outputs.

    Example: onnx.return(%0) {onnx.graph = {name = "then"}} : (tensor<4xf32>) -> ()
    """

    name = "onnx.return"
    traits = traits_def(IsTerminator())


@irdl_op_definition
class FunctionOp(Node):
    """A function of the model, which nodes call by domain and name.

    Attributes:
        fields: what its message says beside the nodes: name, domain, inputs, outputs, attributes,
            opset_import.
        body: its nodes. The arguments are the inputs.
    """

    name = FUNCTION
    fields = prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())

    def verify_(self) -> None:
        """Check the numbers of operands and results."""
        _need_counts(self, 0, 0)


@irdl_op_definition
class NodeOp(Node):
    """A node of a domain that ONNX does not define, such as one of onnxruntime or of the model.

    Example: %1 = onnx.node(%0) {domain = "com.microsoft", op_type = "FastGelu"} :
    (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        domain: of the operator.
        op_type: the operator's name.
        attrs: its attributes by name, if it has any.
        graphs: the names of the attributes that are graphs, in the order of the regions.
    """

    name = "onnx.node"
    domain = prop_def(StringAttr)
    op_type = prop_def(StringAttr)
    attrs = opt_prop_def(DictionaryAttr)
    graphs = opt_prop_def(ArrayAttr[StringAttr])
    bodies = var_region_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Check that each region has a name."""
        named = 0 if self.graphs is None else len(self.graphs.data)
        if named != len(self.regions):
            raise VerifyException(f"{named} names of graphs for {len(self.regions)} regions")


STRUCTURE = (NoneOp, InitializerOp, DefaultOp, ReturnOp, FunctionOp, NodeOp)
