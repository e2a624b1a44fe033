"""Keep states in remote memory, and bring them to the tiles right before they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from xdsl.ir import Block, Operation

from ..dialects import nn
from ..dialects.home import is_remote, keep_remote
from ..dialects.levels import NN
from ..dialects.settable import listed_names
from ..ir.edit import Edit, source_at
from ..ir.node_names import EVERY
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.support.suggestions import suggestion
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from ..ir.well_known import TRAINED
from ..ir.xdsl.around import in_block
from ..ir.xdsl.walk import operations
from .analysis.waiting import Moments, Reader, moments
from .plans.fused import FusedGroups
from .recompute import Shapes

OPTIMIZER = "optimizer"
"""Stands for the states that training has added for weights, such as moments."""


@dataclass(frozen=True)
class KeepRemote(ModulePass):
    """Keep states in remote memory instead of on the tiles: loads and stores for memory. nn -> nn.

    A load of such a state moves to right before the first operation that reads it. Readers after
    each long wait, as the pass recompute sees it, get a load of their own. So the tiles hold the
    state only while it is used. A store moves to right after the operation that computes the new
    value, if it is the only store of the state; but all loads of a state in its block stay before
    the store, because a load gives the value that the state had when the run began.

        nn.state @w                          nn.state @w {home = "remote"}
        %w = nn.load @w                      %a = nn.tanh %x
        %a = nn.tanh %x                      %w = nn.load @w
        %b = nn.add %a, %w                   %b = nn.add %a, %w
        %c = nn.exp %b                       nn.store %b, @w
        nn.store %b, @w                      %c = nn.exp %b

    Attributes:
        states: names of states, or patterns with *; or `optimizer`, which stands for the states
            that training has added for weights, such as moments. All states if none is given.
    """

    name = "keep-remote"
    takes = NN
    skips_other_levels = True

    states: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a name that matches no state."""
        for state in chosen(self.states or (EVERY,), op):
            if not is_remote(state) and may_rewrite():
                with Edit(HOME, state) as edit:
                    keep_remote(state)
                    edit.modified(state)
        remote = {
            each.sym_name.data
            for each in op.body.block.ops
            if isinstance(each, nn.StateOp) and is_remote(each)
        }
        if not remote:
            return
        with FusedGroups(op):
            uses = [
                each
                for each in operations(op)
                if isinstance(each, nn.LoadOp | nn.StoreOp) and each.state.string_value() in remote
            ]
            stores = Counter(o.state.string_value() for o in uses if isinstance(o, nn.StoreOp))
            loads: dict[str, list[nn.LoadOp]] = {}
            for each in uses:
                if isinstance(each, nn.LoadOp):
                    loads.setdefault(each.state.string_value(), []).append(each)
            for each in uses:
                if isinstance(each, nn.StoreOp) and stores[name := each.state.string_value()] == 1:
                    _store_early(each, loads.get(name, ()))
            for block in dict.fromkeys(each.parent for each in uses):
                if block is not None:
                    _load_late(block, remote)


def chosen(names: Sequence[str], module: ModuleOp) -> list[nn.StateOp]:
    """The states with these names, in the order of the module.

    Raises InputError for a name or pattern that matches none.
    """
    states = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, nn.StateOp)}
    found: set[str] = set()
    for name in names:
        if name == OPTIMIZER and name not in states:
            weights = set(listed_names(module, TRAINED) or ())
            own = {each for each in states if each.rpartition(".")[0] in weights}
            problem = "no state that training has added for a weight; need a step of training"
        else:
            own = {each for each in states if fnmatchcase(each, name)}
            problem = f"no state of that name{suggestion(name, states)}"
        if not own and name != EVERY:
            raise InputError(f"pass '{KeepRemote.name}': states: {name}: {problem}")
        found |= own
    return [op for name, op in states.items() if name in found]


def _store_early(store: nn.StoreOp, loads: Sequence[nn.LoadOp]) -> None:
    """Move a store to right behind the operation in its block that computes the new value, or
    behind the last load of the state, if that comes later.

    Args:
        loads: all loads of the state.
    """
    maker, block = store.stored.owner, store.parent
    if not isinstance(maker, Operation) or block is None or maker.parent is not block:
        return
    loading = {in_block(load, block) for load in loads}
    behind = store.prev_op
    while behind is not None and behind is not maker and behind not in loading:
        behind = behind.prev_op
    if behind is None or behind is store.prev_op or not may_rewrite():
        return
    with Edit(STORE, store) as edit:
        store.detach()
        block.insert_op_after(store, behind)
        edit.modified(store)


def _load_late(block: Block, remote: set[str]) -> None:
    """Load states of remote memory right before they are read, again after each long wait."""
    times = moments(block)
    # The first operation of the block that stores to a state, or contains such a store.
    first: dict[str, int] = {}
    for i, op in enumerate(times.ops):
        for each in op.walk():
            if isinstance(each, nn.StoreOp):
                first.setdefault(each.state.string_value(), i)
    for op in times.ops:
        if isinstance(op, nn.LoadOp) and (name := op.state.string_value()) in remote:
            last = first.get(name, len(times.ops))
            readers = [*times.readers_in_any_shape(op.result)]
            if times.index[op] < last and readers and may_rewrite():
                _load_for_each_stay(op, readers, times, last)


def _load_for_each_stay(
    load: nn.LoadOp, readers: Sequence[Reader], times: Moments, last: int
) -> None:
    """Replace a load by one for each stay of its readers.

    Args:
        last: the index of the first store to the state, which comes after all its loads.
    """
    with Edit(LOAD, load) as edit:
        for stay in times.stays(readers):
            _load_for(load, stay, times.ops[min(stay[0].at, last)], edit)
        if not any(load.result.uses):
            edit.erase(load)


def _load_for(load: nn.LoadOp, readers: Sequence[Reader], before: Operation, edit: Edit) -> None:
    """Load a state again for some readers.

    Args:
        before: the operation right before which it is loaded.
    """
    copy = load.clone()
    edit.insert(copy, InsertPoint.before(before))
    shapes = Shapes({load.result: copy.result}, copy, edit)
    for each in readers:
        user, index = each.use.operation, each.use.index
        edit.set_operand(user, index, shapes.of(user.operands[index]))
    for shape in shapes.left:
        edit.erase(shape)


HOME = source_at("keep a state in remote memory", keep_remote)
LOAD = source_at("load a state late", _load_for_each_stay)
STORE = source_at("store a state early", _store_early)
