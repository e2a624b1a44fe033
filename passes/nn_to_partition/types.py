"""The types at partition of values of nn: each tensor gets a layout.

The operands and results of a computation get theirs from its plan, in `partition.ComputeOp`. All
other types are made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Attribute, SSAValue

from ...dialects import control, nn
from ...dialects.abele import Plan
from ...dialects.dtypes import element_type
from ...dialects.partition import PartitionTensor, laid_out
from ...ir.support.errors import InputError
from ..plans.derive import movement_result_layout
from ..plans.homes import Homes
from ..plans.parts import reader_or_writer


def tensor_of(value: SSAValue) -> TensorType[Attribute]:
    """The type of a value at nn. Raises InputError if it is not a tensor."""
    return _tensor(value.type)


def _tensor(type_: Attribute) -> TensorType[Attribute]:
    if not isinstance(type_, TensorType):
        raise InputError(f"value of type {type_} at nn; need a tensor")
    return cast(TensorType[Attribute], type_)


@dataclass(frozen=True)
class Types:
    """The types of values that no plan lays out.

    Attributes:
        homes: where the inputs, states and constants of the program lie.
    """

    homes: Homes

    def near_reader(self, value: SSAValue) -> PartitionTensor:
        """A value that a function is given lies near its first reader."""
        tensor = tensor_of(value)
        return laid_out(tensor, self.homes.argument(value, tensor))

    def state(self, op: nn.StateOp) -> PartitionTensor:
        """A state lies at its home. One in remote memory has no layout, and its type has linear
        order."""
        tensor = TensorType(element_type(op.value.array.dtype), op.value.array.shape)
        return laid_out(tensor, self.homes.states[op.sym_name.data])

    def stored(self, op: nn.LoadOp | nn.StoreOp) -> PartitionTensor:
        """A value is loaded from, and stored to, the home of its state.

        From remote memory it is loaded near the tiles on which its first reader wants it.
        """
        value = op.result if isinstance(op, nn.LoadOp) else op.stored
        name, tensor = op.state.string_value(), tensor_of(value)
        if name in self.homes.remote and isinstance(op, nn.LoadOp):
            return laid_out(tensor, self.homes.argument(value, tensor))
        return laid_out(tensor, self.homes.states[name])

    def constant(self, op: nn.ConstantOp) -> PartitionTensor:
        """A constant lies at its home."""
        return laid_out(tensor_of(op.result), self.homes.constant(op))

    def moved(self, value: SSAValue, plan: Plan) -> PartitionTensor:
        """The result of a movement lies as its plan says."""
        tensor = tensor_of(value)
        return laid_out(tensor, movement_result_layout(tensor.get_shape(), plan))

    def carried(
        self,
        before: PartitionTensor,
        argument: SSAValue,
        yielded: SSAValue,
        functions: Mapping[str, FunctionType],
    ) -> PartitionTensor:
        """What a loop carries lies where a function takes or makes it, or where the loop updates
        it, or else as its initial value does.

        Args:
            before: the type of the initial value.
            argument: the value in the body of the loop.
            yielded: the value that an iteration leaves.
            functions: the signatures of the functions that have been converted.
        """
        call = reader_or_writer(argument, yielded)
        if call is not None and call.function in functions:
            signature = functions[call.function]
            type_ = (signature.inputs if call.takes else signature.outputs).data[call.number]
            assert isinstance(type_, PartitionTensor)
            if self.homes.parts.around(argument).has(type_.layout.data):
                return type_
        home = self.homes.updated(argument, yielded)
        return before if home is None else laid_out(before.tensor, home)

    def iteration_number(self, number: SSAValue) -> PartitionTensor:
        """The number of an iteration lies on every tile of its function."""
        return laid_out(control.ITERATION_NUMBER, self.homes.iteration_number(number))
