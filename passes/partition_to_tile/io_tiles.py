"""The tiles that are kept aside for traffic with the host and remote memory, and what lies on them.

The host writes inputs to these tiles and reads results from them, while the other tiles compute. At
the beginning of a run a copy brings the inputs to where they are read; from then on, the tiles are
free for those of the next run. At the end another copy takes the results there, where they wait for
the host while the next run computes. So each input and each result has bytes of its own.

States in remote memory go through these tiles too. A load brings a state here, and a copy from here
to where it is read. These tiles do not wait for the others in between: while those compute with one
state, the next one arrives. Two of these states may have the same bytes, one after the other.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import Operation

from ...dialects import tile
from ...dialects.dtypes import numpy_dtype
from ...dialects.home import ADDRESS
from ...dialects.partition import laid_out
from ...dialects.steps import Copy, Load, Store
from ...dialects.variable import Variable
from ...ir.geometry.other_tiles import on_other_tiles
from ...ir.upstream import ModuleOp
from ..plans.planned import TARGET, target_of
from .conversion import IoTiles, ToTile


def io_tiles_of(module: ModuleOp) -> IoTiles | None:
    """The tiles that a program's machine keeps aside; None if there are none."""
    if TARGET not in module.attributes:
        return None
    target = target_of(module)
    return IoTiles(target) if target.io_tiles else None


def _between_runs(io: IoTiles, near: str, host: str, new: ToTile) -> str:
    """A variable on these tiles for a tensor that is in another variable.

    Its bytes are its own, since the host uses them while other runs compute.
    """
    made = _variable(io, near, host, new)
    chips = made.placed.tiles.used_chips(io.target.tiles_per_chip).tolist()
    address = max(io.ends.get(chip, 0) for chip in chips)
    made.attributes[ADDRESS] = IntegerAttr(address, i64)
    io.ends |= dict.fromkeys(chips, address + made.bytes_per_tile)
    return made.symbol


def _variable(io: IoTiles, near: str, host: str, new: ToTile) -> Variable:
    """A variable on these tiles, of the same chips, for a tensor that is in another variable."""
    type_, size, own = new.types[near], io.target.tiles_per_chip, io.target.io_tiles
    itemsize = numpy_dtype(type_.tensor.element_type).itemsize
    layout = on_other_tiles(type_.layout.data, itemsize, size, size - own, own)
    return new.declare(new.names.unused(f"{host}.io"), laid_out(type_.tensor, layout))


def take(io: IoTiles, host: str, parameter: str, new: ToTile) -> None:
    """Take an input from the host, through these tiles."""
    through = _between_runs(io, parameter, host, new)
    new.add(tile.InputOp(host, through, new.types[parameter].tensor))
    new.copy(through, parameter)


def give(io: IoTiles, result: str, host: str, tensor: TensorType, new: ToTile) -> None:
    """Give a result, in its own shape, to the host, through these tiles.

    One that several tiles hold goes directly: a copy would not know which of them owns it.
    """
    if not new.types[result].layout.data.is_partition:
        new.add(tile.OutputOp(result, host, tensor))
        return
    through = _between_runs(io, result, host, new)
    new.copy(result, through)
    new.add(tile.OutputOp(through, host, tensor))


def load(io: IoTiles, state: str, variable: str, new: ToTile) -> None:
    """Load a state from remote memory into a variable, through these tiles."""
    through = _variable(io, variable, state, new).symbol
    op = new.add(tile.LoadOp(state, through, new.remote[state].tensor))
    after = _earlier(io, state, op)
    op.detach()
    if after is not None:
        new.block.insert_op_after(op, after)
    elif new.block.first_op is not None:
        new.block.insert_op_before(op, new.block.first_op)
    else:
        new.block.add_op(op)
    io.loaded.add(through)
    new.copy(through, variable)


def _earlier(io: IoTiles, state: str, load: Operation) -> Operation | None:
    """The operation behind which a state may be loaded; None for the beginning of the block.

    Going back from the load, that is the first of these: another load, so that both come together;
    the first operation that computes with what another load has brought, so that this one comes
    meanwhile; or something that no load may pass, such as a store to the same state.
    """
    compute: Operation | None = None
    op = load.prev_op
    while op is not None:
        match op:
            case Load():
                return op
            case Copy() if compute is not None and set(op.sources) <= io.loaded:
                return compute
            case tile.ComputeSetOp():
                compute = op
            case Store() if op.remote.string_value() != state:
                pass
            case Copy():
                pass
            case _:
                return op
        op = op.prev_op
    return None


def store(io: IoTiles, variable: str, state: str, new: ToTile) -> None:
    """Store a variable to a state in remote memory, through these tiles.

    One that several tiles hold goes directly, as a result does.
    """
    through = variable
    if new.types[variable].layout.data.is_partition:
        through = _variable(io, variable, state, new).symbol
        new.copy(variable, through)
    new.add(tile.StoreOp(through, state, new.remote[state].tensor))
