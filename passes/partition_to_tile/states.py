"""States and constants: variables that keep their value from run to run.

A load gives the value that a state had when the run began. So where a state is loaded after it may
have been stored to, its old value is copied at the beginning of the run. A state in remote memory
is on the tiles only from a load to the last reader of the loaded value.
"""

from __future__ import annotations

from ...dialects import control, partition, tile
from ...dialects.control import run_around
from ...dialects.home import handed_down, is_remote
from ...dialects.partition import partition_type
from ...ir.provenance import locate
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..analysis.states_in_place import loaded_first, states_in_place
from .conversion import ToTile
from .io_tiles import load, store


def convert_state(op: partition.StateOp, new: ToTile) -> None:
    """`partition.state @w : tensor <T, L> = ...` becomes `tile.variable @w : T layout L state`, or
    `tile.remote @w : T` if its home is remote memory."""
    if is_remote(op):
        state = tile.RemoteOp(op.sym_name.data, op.type.tensor, op.initial)
        locate(state, op)
        new.remote[state.symbol] = state
        new.types[state.symbol] = op.type
        return
    variable = new.declare(op.sym_name.data, op.type, op.initial, state=True)
    variable.attributes |= handed_down(op)


def convert_load(op: partition.LoadOp, new: ToTile) -> None:
    """A load becomes nothing: its value is in the state, or in the copy of the old value. A load
    from remote memory becomes `tile.load @w -> @w.loaded`, or a copy of the old value.
    """
    state, type_ = op.state.string_value(), partition_type(op.result)
    new.where[op.result] = old = new.before.get(state, state)
    if state not in new.remote or (state in new.before and new.types[old] == type_):
        return
    new.where[op.result] = variable = new.fresh(type_, f"{state}.loaded")
    if state in new.before:
        new.copy(old, variable)
    else:
        _load(state, variable, new)


def convert_store(op: partition.StoreOp, new: ToTile) -> None:
    """`partition.store %0 -> @w` becomes `tile.copy [@x] -> @w`, or nothing if %0 is in @w. A store
    to remote memory becomes `tile.store @x -> @w`."""
    state, value = op.state.string_value(), new.where[op.value]
    if state in new.remote:
        if new.aside is None:
            new.add(tile.StoreOp(value, state, new.remote[state].tensor))
        else:
            store(new.aside, value, state, new)
    else:
        new.copy(value, state)


def _load(state: str, variable: str, new: ToTile) -> None:
    """Load a state from remote memory into a variable."""
    if new.aside is None:
        new.add(tile.LoadOp(state, variable, new.remote[state].tensor))
    else:
        load(new.aside, state, variable, new)


def convert_constant(op: partition.ConstantOp, new: ToTile) -> None:
    """`partition.constant blob <...>` becomes `tile.variable @c ... = blob <...>`."""
    name = new.fresh(partition_type(op.result))
    new.variables[-1].properties["initial"] = op.value
    new.variables[-1].attributes |= handed_down(op)
    new.where[op.result] = name


def keep_old_values(module: ModuleOp, new: ToTile) -> None:
    """Declare variables for the old values of states that are read after the store."""
    found = states_in_place(module, ENTRY)
    new.written |= {v: state for v, state in found.written.items() if state not in new.remote}
    ops = list(module.walk())
    stores = (op.state.string_value() for op in ops if isinstance(op, partition.StoreOp))
    # A load from remote memory makes a copy, which needs to come before the stores alone.
    settled = (found.uncopied - new.remote.keys()) | (
        loaded_first(module, ENTRY) & new.remote.keys()
    )
    stored = set(stores) - settled
    for op in ops:
        if isinstance(op, partition.LoadOp):
            name = op.state.string_value()
            if name in stored and name not in new.before:
                new.began[name] = run_around(op)
                new.source = op
                new.before[name] = new.fresh(new.types[name], f"{name}.before")


def copy_old_values(run: control.RepeatOp | None, new: ToTile) -> None:
    """Copy the old values of states where a run begins.

    Args:
        run: the loop whose iterations are the runs; None for the run itself.
    """
    for state, variable in new.before.items():
        if new.began[state] is not run:
            continue
        if state in new.remote:
            _load(state, variable, new)
        else:
            new.copy(state, variable)
