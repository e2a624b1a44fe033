"""Operations between the processes that run one program. abele runs a program as one process."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerType,
    Signedness,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Data
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ...ir.support.number_kinds import is_whole
from ...ir.upstream import AttrParser, Printer, VerifyException
from ..dense import array_of_dense
from .base import INTEGER, NumberArray, StablehloOp, need_element, need_length, need_shape

UI32 = IntegerType(32, Signedness.UNSIGNED)


@irdl_attr_definition
class ChannelHandleAttr(Data[tuple[int, int]]):
    """The number and the kind of the channel that an operation between processes uses.

    Example: #stablehlo.channel_handle<handle = 1, type = 0>
    """

    name = "stablehlo.channel_handle"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, int]:
        """Read both numbers."""
        found: list[int] = []
        with parser.in_angle_brackets():
            for i, word in enumerate(("handle", "type")):
                if i:
                    parser.parse_punctuation(",")
                parser.parse_keyword(word)
                parser.parse_punctuation("=")
                found.append(parser.parse_integer())
        return found[0], found[1]

    def print_parameter(self, printer: Printer) -> None:
        """Print both numbers."""
        printer.print_string(f"<handle = {self.data[0]}, type = {self.data[1]}>")


def _need_rows(what: str, array: NumberArray, length: int | None = None) -> None:
    """Raise VerifyException unless an array has rows of integers, all of a given length."""
    fits = array.ndim == 2 and is_whole(array.dtype) and length in (None, array.shape[1])
    if not fits:
        need = "rows of integers" if length is None else f"rows of {length} integers"
        kind = f"{array.dtype.name}{list(array.shape)}"
        raise VerifyException(f"{what} is {kind}; need {need}")


class CollectiveOp(StablehloOp, ABC):
    """An operation on values of all processes of a group.

    Attributes:
        inputs: the values of this process.
        made: the results of this process, one for each value.
    """

    inputs = var_operand_def(TensorType)
    made = var_result_def(TensorType)

    def verify_(self) -> None:
        """Check also that there is one result for each value."""
        super().verify_()
        need_length("the results", self.made, len(self.inputs))


class GroupedOp(CollectiveOp, ABC):
    """An operation in groups of processes.

    Attributes:
        replica_groups: the numbers of the processes of each group, a row each.
        channel_handle: the channel.
    """

    replica_groups = prop_def(DenseIntOrFPElementsAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)

    @property
    def groups(self) -> NumberArray:
        """The numbers of the processes of each group, a row each."""
        return array_of_dense(self.replica_groups)

    def verify_(self) -> None:
        """Check also that the groups are rows of integers."""
        super().verify_()
        _need_rows("replica_groups", self.groups)


@irdl_op_definition
class AllReduceOp(GroupedOp):
    """Merge the values of all processes, element by element.

    Example: %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> () }) : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        use_global_device_ids: whether the numbers are those of devices.
        computation: merges two elements.
    """

    name = "stablehlo.all_reduce"
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def()


@irdl_op_definition
class AllGatherOp(GroupedOp):
    """Join the values of all processes along an axis.

    Example: %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<0> :
    tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        all_gather_dim: the axis.
        use_global_device_ids: whether the numbers are those of devices.
    """

    name = "stablehlo.all_gather"
    all_gather_dim = prop_def(INTEGER)
    use_global_device_ids = opt_prop_def(UnitAttr)


@irdl_op_definition
class AllToAllOp(GroupedOp):
    """Give each process one part of each value, and join the parts that this process is given.

    Example: %1 = "stablehlo.all_to_all"(%0) <{split_dimension = 0 : i64, concat_dimension = 0 :
    i64, split_count = 1 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<4xf32>) ->
    tensor<4xf32>

    Attributes:
        split_dimension: the axis along which values are cut.
        concat_dimension: the axis along which parts are joined.
        split_count: the number of parts.
    """

    name = "stablehlo.all_to_all"
    split_dimension = prop_def(INTEGER)
    concat_dimension = prop_def(INTEGER)
    split_count = prop_def(INTEGER)


@irdl_op_definition
class ReduceScatterOp(GroupedOp):
    """Merge the values of all processes, of which each one keeps its part.

    Example: %1 = "stablehlo.reduce_scatter"(%0) <{scatter_dimension = 0 : i64, replica_groups =
    dense<0> : tensor<1x1xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> () }) : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        scatter_dimension: the axis along which the merged value is cut.
        use_global_device_ids: whether the numbers are those of devices.
        computation: merges two elements.
    """

    name = "stablehlo.reduce_scatter"
    scatter_dimension = prop_def(INTEGER)
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def()


@irdl_op_definition
class CollectiveBroadcastOp(GroupedOp):
    """The value of the first process of the group.

    Example: %1 = "stablehlo.collective_broadcast"(%0) <{replica_groups = dense<0> :
    tensor<1x1xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.collective_broadcast"


@irdl_op_definition
class CollectivePermuteOp(CollectiveOp):
    """The value of another process; zeros where none sends to this one.

    Example: %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<0> :
    tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        source_target_pairs: the process that sends and the one that is sent to, a row each.
        channel_handle: the channel.
    """

    name = "stablehlo.collective_permute"
    source_target_pairs = prop_def(DenseIntOrFPElementsAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)

    @property
    def pairs(self) -> NumberArray:
        """The process that sends and the one that is sent to, a row each."""
        return array_of_dense(self.source_target_pairs)

    def verify_(self) -> None:
        """Check also that the pairs are rows of two integers."""
        super().verify_()
        _need_rows("source_target_pairs", self.pairs, 2)


class NumberOp(StablehloOp, ABC):
    """The number of this process.

    Attributes:
        result: of ui32, without axes.
    """

    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the result."""
        super().verify_()
        need_shape("the result", self.result, ())
        need_element("the result", self.result, UI32)


@irdl_op_definition
class PartitionIdOp(NumberOp):
    """The number of this process among those that share the work on one batch.

    Example: %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
    """

    name = "stablehlo.partition_id"


@irdl_op_definition
class ReplicaIdOp(NumberOp):
    """The number of this process among those that work on batches of their own.

    Example: %0 = "stablehlo.replica_id"() : () -> tensor<ui32>
    """

    name = "stablehlo.replica_id"


GROUPED = (AllReduceOp, AllGatherOp, AllToAllOp, ReduceScatterOp, CollectiveBroadcastOp)
"""Those in groups of processes."""

COLLECTIVES = (*GROUPED, CollectivePermuteOp, PartitionIdOp, ReplicaIdOp)
"""All of them."""
