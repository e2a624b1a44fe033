"""Convert nn to partition: from operators on whole tensors to computes on blocks with layouts."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.ir import Operation

from ..dialects import control, nn
from ..dialects.levels import NN, PARTITION
from ..dialects.structured import Movement, Reinterpretation, Structured
from ..ir.conversion import Patterns, replace_body
from ..ir.upstream import Context, ModuleOp, ModulePass
from .nn_to_partition.control_flow import (
    convert_call,
    convert_function,
    convert_if,
    convert_repeat,
    convert_while,
)
from .nn_to_partition.conversion import ToPartition
from .nn_to_partition.operators import (
    convert_movement,
    convert_reinterpretation,
    convert_structured,
)
from .nn_to_partition.states import convert_constant, convert_load, convert_state, convert_store
from .nn_to_partition.types import Types
from .plans.fused import FusedGroups
from .plans.homes import Homes
from .plans.planned import target_of

PATTERNS: Patterns[ToPartition] = Patterns(
    (Structured, convert_structured),
    (Movement, convert_movement),
    (Reinterpretation, convert_reinterpretation),
    (nn.StateOp, convert_state),
    (nn.LoadOp, convert_load),
    (nn.StoreOp, convert_store),
    (nn.ConstantOp, convert_constant),
    (func.FuncOp, convert_function),
    (func.CallOp, convert_call),
    (control.RepeatOp, convert_repeat),
    (control.WhileOp, convert_while),
    (control.IfOp, convert_if),
)
"""What converts each kind of operation. Terminators are converted with their regions."""


@dataclass(frozen=True)
class ConvertNnToPartition(ModulePass):
    """Apply the plans: make computes, combine partials, and relayout operands. nn -> partition.

    Every tensor gets a layout. A plan decides those of the operands and results of its operator.
    Inputs, states and constants lie where their readers want them, as far as these agree. Where a
    value lies otherwise than a reader needs, a relayout is added: once for all readers, and before
    a loop that does not change the value.
    """

    name = "convert-nn-to-partition"
    takes = NN
    decided = "planned"
    leaves = PARTITION

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        with FusedGroups(op):
            types = Types(Homes(op, target_of(op)))
            new = ToPartition(PATTERNS, types)
            # A call needs to know how its function takes and leaves values.
            functions = dict.fromkeys(types.homes.parts.functions.values())
            made: dict[Operation, Operation] = {}
            for each in (*functions, *(o for o in op.body.block.ops if o not in functions)):
                new.convert(each)
                last = new.block.last_op
                assert last is not None
                made[each] = last
            for each in op.body.block.ops:
                made[each].detach()
                new.block.add_op(made[each])
            replace_body(op, new.block)
