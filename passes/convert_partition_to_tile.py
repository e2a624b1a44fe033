"""Convert partition to tile: from values to variables, copies and compute sets."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func

from ..dialects import control, partition
from ..dialects.levels import PARTITION, TILE
from ..ir.conversion import Patterns, replace_body
from ..ir.support.errors import InputError
from ..ir.symbols import symbol_of
from ..ir.upstream import Context, ModuleOp, ModulePass
from ..ir.well_known import ENTRY
from .analysis.calls_in_place import calls_in_place
from .partition_to_tile.control_flow import (
    convert_call,
    convert_function,
    convert_if,
    convert_repeat,
    convert_while,
    declare_function,
)
from .partition_to_tile.conversion import ToTile
from .partition_to_tile.generators import give_generators
from .partition_to_tile.io_tiles import io_tiles_of
from .partition_to_tile.operators import convert_compute, convert_relayout, convert_reshape
from .partition_to_tile.states import (
    convert_constant,
    convert_load,
    convert_state,
    convert_store,
    keep_old_values,
)
from .plans.planned import TARGET, target_of

PATTERNS: Patterns[ToTile] = Patterns(
    (partition.ComputeOp, convert_compute),
    (partition.RelayoutOp, convert_relayout),
    (partition.ReshapeOp, convert_reshape),
    (partition.StateOp, convert_state),
    (partition.LoadOp, convert_load),
    (partition.StoreOp, convert_store),
    (partition.ConstantOp, convert_constant),
    (func.FuncOp, convert_function),
    (func.CallOp, convert_call),
    (control.RepeatOp, convert_repeat),
    (control.WhileOp, convert_while),
    (control.IfOp, convert_if),
)
"""What converts each kind of operation. Terminators are converted with their regions."""


@dataclass(frozen=True)
class ConvertPartitionToTile(ModulePass):
    """Give every value a variable, every relayout a copy, every compute a compute set.

    partition -> tile. The values that loops carry, branches choose and functions take and return
    get variables of their own, which copies fill. A value that an iteration yields is computed
    directly into the variable of the carried value that it replaces, if no operation reads the old
    value later. A load gives the value of the state at the start of the run: a state that is also
    stored to is copied at the start of @main, unless no operation reads its old value after the
    store. A stored value is computed directly into the state if no operation needs the old value.
    States in remote memory are loaded to variables, and stored from variables, both through the I/O
    tiles if the target has any. Vertex sets that
    round by random words of the workers get a state that holds the generators.
    """

    name = "convert-partition-to-tile"
    takes = PARTITION
    leaves = TILE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError if no run can begin in it."""
        convert_to_tile(op)


def convert_to_tile(module: ModuleOp, patterns: Patterns[ToTile] = PATTERNS) -> None:
    """Convert a module in place.

    Raises InputError if no run can begin in it, and for an operation without a pattern.

    Args:
        patterns: abele's, or those of a level of a user's that has further operations:
            `Patterns((TogetherOp, convert_together), *PATTERNS.rows)`.
    """
    ops = list(module.body.block.ops)
    functions = [each for each in ops if isinstance(each, func.FuncOp)]
    if all(each.sym_name.data != ENTRY for each in functions):
        raise InputError(f"the module needs a function @{ENTRY}")
    new = ToTile(patterns, calls_in_place(module, ENTRY))
    new.aside = io_tiles_of(module)
    new.target = target_of(module) if TARGET in module.attributes else None
    new.names.taken.update(filter(None, map(symbol_of, ops)))
    for each in ops:
        if not isinstance(each, func.FuncOp):
            new.convert(each)
    # Values of the entry may live in parameters of other functions.
    for each in sorted(functions, key=lambda op: op.sym_name.data == ENTRY):
        declare_function(each, new)
    keep_old_values(module, new)
    new.keep_in_parameters()
    for each in functions:
        new.convert(each)
    give_generators(module, new)
    first = new.block.first_op
    assert first is not None
    new.block.insert_ops_before([*new.remote.values(), *new.variables], first)
    replace_body(module, new.block)
