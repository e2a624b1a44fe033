"""The states that a run may overwrite without a copy of their old values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue, Use

from ...dialects import partition
from ...dialects.control import run_around
from ...ir.upstream import ModuleOp
from ...ir.xdsl.around import function_around, nearest
from .calls import calls_of
from .carried_in_place import overwriting, reads_of


@dataclass(frozen=True)
class StatesInPlace:
    """The states that need no copy.

    Attributes:
        uncopied: states whose old value no operation reads after the store.
        written: for each value that may be computed or copied directly into a state, the state's
            name. The value is stored to the state, or further updates of it at indices are.
    """

    uncopied: frozenset[str]
    written: Mapping[SSAValue, str]


def states_in_place(module: ModuleOp, entry: str) -> StatesInPlace:
    """The states of a module at partition that a run may overwrite in place.

    Such a state is stored to once in a run, by an operation of the entry function, of a loop of
    runs in it, or of a function that the entry calls once, after all reads of its old value. The
    new value may be computed into the state if all reads of the old value come before the
    computation, or are the computation itself and read in place.
    """
    ops = list(module.walk())
    body = next(
        op.body.block for op in ops if isinstance(op, func.FuncOp) and op.sym_name.data == entry
    )
    stores: dict[str, list[partition.StoreOp]] = {}
    reads: dict[str, list[Use]] = {}
    calls = calls_of(module)
    for op in ops:
        if isinstance(op, partition.StoreOp):
            stores.setdefault(op.state.string_value(), []).append(op)
        elif isinstance(op, partition.LoadOp):
            reads.setdefault(op.state.string_value(), []).extend(reads_of(op.result))
    uncopied: set[str] = set()
    written: dict[SSAValue, str] = {}
    positions: dict[Block | None, dict[Operation, int]] = {
        body: {op: i for i, op in enumerate(body.ops)}
    }
    for name, found in stores.items():
        store, old = found[0], reads.get(name, [])
        run, called = run_around(store), _only_call(store, calls, positions[body])
        block = body if run is None else run.body.block
        if called is not None:
            block = store.parent
        if block not in positions:
            positions[block] = {op: i for i, op in enumerate(block.ops)} if block else {}
        position = positions[block]
        if called is not None:
            # What other functions read counts where they are called.
            others = [use for use in old if _position(use.operation, position) is None]
            old = [use for use in old if use not in others]
            ends = [_last_time(use.operation, calls, positions[body]) for use in others]
            if any(end is None or end >= called for end in ends):
                continue
        at = [_position(use.operation, position) for use in old]
        if len(found) > 1 or store not in position or None in at:
            continue
        last = max((i for i in at if i is not None), default=-1)
        if last > position[store]:
            continue
        uncopied.add(name)
        for value in overwriting(store.value, old, position):
            written.setdefault(value, name)
    return StatesInPlace(frozenset(uncopied), written)


def _only_call(
    op: Operation,
    calls: Mapping[str, list[func.CallOp]],
    position: Mapping[Operation, int],
) -> int | None:
    """The position in the entry of the only call of an operation's function; None if it is called
    otherwise, or if the operation is no operation of its body.

    Args:
        calls: of each function, by its name.
        position: the positions of the operations of the entry.
    """
    function = op.parent_op()
    if not isinstance(function, func.FuncOp) or len(calls.get(function.sym_name.data, ())) != 1:
        return None
    return position.get(calls[function.sym_name.data][0])


def _last_time(
    op: Operation,
    calls: Mapping[str, list[func.CallOp]],
    position: Mapping[Operation, int],
) -> int | None:
    """The position in the entry of the last operation that runs another one, itself or by a call.

    None if functions that it calls call the function of the operation.

    Args:
        calls: of each function, by its name.
        position: the positions of the operations of the entry.
    """
    own = _position(op, position)
    if own is not None:
        return own
    outer = function_around(op)
    if outer is None:
        return None
    found = [_position(call, position) for call in calls.get(outer.sym_name.data, ())]
    return None if None in found else max((i for i in found if i is not None), default=-1)


def loaded_first(module: ModuleOp, entry: str) -> frozenset[str]:
    """The states that a run stores to only after all loads of it, in program order.

    Loads and stores are in the entry function, in a loop of runs in it, or in functions that the
    entry calls. One in a branch or in another loop counts as the whole branch or loop.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    main = next(op.body.block for op in functions if op.sym_name.data == entry)
    order = _Order(main, calls_of(module))
    last: dict[str, _Moment] = {}
    first: dict[str, _Moment] = {}
    elsewhere: set[str] = set()
    for op in module.walk():
        if not isinstance(op, partition.LoadOp | partition.StoreOp):
            continue
        name, times = op.state.string_value(), order.times(op)
        if times is None:
            elsewhere.add(name)
        elif isinstance(op, partition.LoadOp):
            last[name] = max(last.get(name, times[1]), times[1])
        else:
            first[name] = min(first.get(name, times[0]), times[0])
    return frozenset(
        name
        for name, at in first.items()
        if name not in elsewhere and (name not in last or last[name] < at)
    )


_Moment = tuple[int, int]
"""A position in the body of a run, and one in the function that it calls once there, or 0."""


@dataclass
class _Order:
    """When a run executes operations.

    Attributes:
        main: the body of the entry function.
        calls: of each function, by its name.
    """

    main: Block
    calls: Mapping[str, list[func.CallOp]]
    positions: dict[Block, dict[Operation, int]] = field(
        default_factory=dict[Block, dict[Operation, int]]
    )

    def times(self, op: Operation) -> tuple[_Moment, _Moment] | None:
        """The first and the last time at which a run executes an operation; None if that is
        unknown, because another function or a loop calls its function."""
        run = run_around(op)
        own = _position(op, self._in(self.main if run is None else run.body.block))
        if own is not None:
            return (own, 0), (own, 0)
        outer = function_around(op)
        if outer is None:
            return None
        calls = [self._in(self.main).get(c) for c in self.calls.get(outer.sym_name.data, ())]
        known = [at for at in calls if at is not None]
        if not known or len(known) < len(calls):
            return None
        inside = _position(op, self._in(outer.body.block))
        if len(known) == 1 and inside is not None:
            return (known[0], inside), (known[0], inside)
        # Between two calls, it may come before and after any other operation of the function.
        return (min(known), 0), (max(known), len(self._in(outer.body.block)))

    def _in(self, block: Block) -> dict[Operation, int]:
        """The positions of the operations of a block."""
        if block not in self.positions:
            self.positions[block] = {op: i for i, op in enumerate(block.ops)}
        return self.positions[block]


def _position(op: Operation, position: Mapping[Operation, int]) -> int | None:
    """The position of an operation, or of the nearest operation around it that has one; None if
    none has.
    """
    outer = nearest(op, position)
    return None if outer is None else position[outer]
