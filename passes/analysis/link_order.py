"""Orders loads from remote memory and stores to it, so that they go on while tiles compute.

A state goes through I/O tiles, which meet the others only in copies. Between two of these meetings,
the I/O tiles load and store, and the others compute, each by themselves; whoever is done first
waits. So a load may come in any turn before the copy that takes its state on, and a store in any
turn after the copy that brings its value. Short turns of computing leave the link behind, and long
ones leave it idle. Here loads move to earlier turns, and stores to later ones, where that lets the
run end earlier and the I/O tiles have the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from xdsl.ir import Block, Operation

from ...backends.prices import cost
from ...backends.prices.price import charge_operation, charged_exchange, no_charge
from ...backends.target import Target
from ...dialects import tile
from ...dialects.home import ADDRESS, number_of
from ...dialects.steps import Copy, Load, Store, Vertices
from ...dialects.variable import Variable

SHARE = 1 / 2
"""The part of the free memory of an I/O tile for states on their way. Where variables of many sizes
come and go, some of the memory lies in gaps."""

FAR = 32
"""How many turns away a load or store may move."""

Movable = Copy | tile.ComputeSetOp | Load | Store


def order_links(block: Block, variables: Mapping[str, Variable], target: Target) -> None:
    """Move the loads and stores of a block, on a machine with I/O tiles.

    Nothing moves past a call, a loop, a branch or the host, and no other operation moves.
    """
    if not any(isinstance(op, Load | Store) for op in block.ops):
        return
    order = _Order(variables, target)
    for is_movable, run in groupby(tuple(block.ops), order.is_movable):
        ops = [op for op in run if isinstance(op, Movable)]
        if is_movable and any(isinstance(op, Load | Store) for op in ops):
            order.improve(block, ops)


@dataclass(eq=False)
class _Link:
    """A load or a store.

    Attributes:
        turn: after the meeting of this number.
        first, last: the turns in which it may be.
        cycles: on the link.
        bytes: on an I/O tile.
        held: the turn from which, or to which, its bytes are held: that of its copy.
        before, after: the other loads and stores of its state that come before and after it.
    """

    op: Load | Store
    turn: int
    first: int
    last: int
    cycles: int
    bytes: int
    held: int
    before: list[_Link] = field(default_factory=list["_Link"])
    after: list[_Link] = field(default_factory=list["_Link"])

    def turns(self, turn: int) -> slice:
        """The turns in which its bytes are held, if it is in a turn."""
        return slice(min(turn, self.held), max(turn, self.held) + 1)

    def allowed(self) -> tuple[int, int]:
        """The first and the last turn in which it may be, beside the others of its state."""
        low = max(self.first, self.turn - FAR, *(each.turn for each in self.before))
        return low, min(self.last, self.turn + FAR, *(each.turn for each in self.after))


@dataclass
class _Turns:
    """The turns of a run of operations; turn 0 is before the first meeting.

    Attributes:
        ops: those of each turn, in order, without loads and stores.
        compute: the cycles in which the others are busy, for each turn.
    """

    ops: list[list[Operation]] = field(default_factory=lambda: [[]])
    compute: list[int] = field(default_factory=lambda: [0])


class _Order:
    """Orders loads and stores on one machine.

    Attributes:
        room: bytes of an I/O tile for states on their way.
    """

    def __init__(self, variables: Mapping[str, Variable], target: Target) -> None:
        self.variables, self.target = variables, target
        first = np.array([v.placed.first_tile for v in variables.values()], np.int64)
        aside = target.are_aside(first)
        self.aside = {n for n, own in zip(variables, aside.tolist(), strict=True) if own}
        ends = [
            address + variables[name].bytes_per_tile
            for name in self.aside
            if (address := number_of(variables[name], ADDRESS)) is not None
        ]
        self.room = int((target.usable_bytes_per_tile - max(ends, default=0)) * SHARE)

    def is_movable(self, op: Operation) -> bool:
        """Whether loads and stores may move past an operation.

        What moves without I/O tiles stays in its place.
        """
        if isinstance(op, Load | Store):
            return self._through(op) in self.aside
        return isinstance(op, Copy | tile.ComputeSetOp)

    @staticmethod
    def _through(op: Load | Store) -> str:
        """The variable on I/O tiles."""
        return op.destination if isinstance(op, Load) else op.source

    def improve(self, block: Block, ops: Sequence[Movable]) -> None:
        """Order the loads and stores among some operations of a block."""
        turns, links = self._read(ops)
        if links is None:
            return
        self._move(turns, links)
        after = ops[-1].next_op
        for op in self._written(turns, links):
            op.detach()
            if after is None:
                block.add_op(op)
            else:
                block.insert_op_before(op, after)

    def _cycles(self, op: Operation) -> int:
        """The cycles of a copy or a compute set by itself."""
        charge = no_charge(self.target.tiles)
        for each in op.walk():
            if isinstance(each, Copy | Vertices):
                charge_operation(each, self.variables, self.target, charge)
        return int((charged_exchange(charge, self.target) + charge.compute).max(initial=0))

    def _link_cycles(self, op: Load | Store) -> int:
        charge = no_charge(self.target.tiles)
        charge_operation(op, self.variables, self.target, charge)
        own = cost.remote_cycles(charge.remote, self.target)
        return int(own.max(initial=0)) + cost.sync_cycles(self.target, "external")

    def _read(self, ops: Sequence[Movable]) -> tuple[_Turns, list[_Link] | None]:
        """The turns and the loads and stores of some operations, as they are.

        Copies from and to I/O tiles begin a turn together if nothing computes between them. None
        if a variable on I/O tiles is used otherwise than by a load and then a copy, or by a copy
        and then a store.
        """
        turns = _Turns()
        if not self._are_used_once(ops):
            return turns, None
        met: dict[str, int] = {}
        placed: list[tuple[Load | Store, int]] = []
        computes = True
        for op in ops:
            if isinstance(op, Load | Store):
                placed.append((op, len(turns.ops) - 1))
                continue
            names = {op.destination, *op.sources} if isinstance(op, Copy) else set[str]()
            if names & self.aside:
                if computes:
                    turns.ops.append([])
                    turns.compute.append(0)
                    computes = False
                met |= dict.fromkeys(names & self.aside, len(turns.ops) - 1)
            else:
                computes = computes or isinstance(op, tile.ComputeSetOp)
                turns.compute[-1] += self._cycles(op)
            turns.ops[-1].append(op)
        links = [self._link(op, at, met, len(turns.ops)) for op, at in placed]
        of_state: dict[str, list[_Link]] = {}
        for each in links:
            others = of_state.setdefault(each.op.remote.string_value(), [])
            each.before += others
            for other in others:
                other.after.append(each)
            others.append(each)
        return turns, links

    def _are_used_once(self, ops: Sequence[Operation]) -> bool:
        """Whether each variable on I/O tiles is used as the passes before use it."""
        uses: dict[str, list[type[Operation] | None]] = {}
        for op in ops:
            if isinstance(op, Load | Store):
                uses.setdefault(self._through(op), []).append(_kind(op))
            for each in op.walk():
                if isinstance(each, Copy | Vertices):
                    for name in {*each.sources, *each.destinations} & self.aside:
                        uses.setdefault(name, []).append(_kind(each))
        usual = ([Load, Copy], [Copy, Store])
        return all(found in usual or len(found) == 1 for found in uses.values())

    def _link(self, op: Load | Store, turn: int, met: Mapping[str, int], count: int) -> _Link:
        own = self._through(op)
        copy = met.get(own, turn)
        if isinstance(op, Load):
            # Not before the first meeting, if it need not: the first reader would wait for it.
            last = copy - 1 if own in met else turn
            first, turn = min(1, last), min(turn, last)
        else:
            first, last = copy, count - 1
        bytes_ = self.variables[own].bytes_per_tile
        return _Link(op, turn, first, last, self._link_cycles(op), bytes_, copy)

    def _move(self, turns: _Turns, links: list[_Link]) -> None:
        """Move loads and stores to turns that let the run end earlier."""
        compute = np.array(turns.compute, np.int64)
        busy, held = np.zeros_like(compute), np.zeros_like(compute)
        for each in links:
            busy[each.turn] += each.cycles
            held[each.turns(each.turn)] += each.bytes

        def waits(turn: int | slice, more: int = 0) -> np.ndarray:
            return np.maximum(busy[turn] + more - compute[turn], 0)

        changed = True
        while changed:
            changed = False
            # The last loads first: they make room for those before them.
            for each in reversed(links):
                low, high = each.allowed()
                gain = int(waits(each.turn) - waits(each.turn, -each.cycles))
                if not gain or low > high:
                    continue
                choices = slice(low, high + 1)
                loss = waits(choices, each.cycles) - waits(choices)
                loss[each.turn - low] = gain
                near = np.abs(np.arange(low, high + 1) - each.turn)
                best = low + int(np.lexsort((near, loss))[0])
                held[each.turns(each.turn)] -= each.bytes
                fits = int(held[each.turns(best)].max()) + each.bytes <= self.room
                if int(loss[best - low]) < gain and fits:
                    busy[each.turn] -= each.cycles
                    busy[best] += each.cycles
                    each.turn, changed = best, True
                held[each.turns(each.turn)] += each.bytes

    @staticmethod
    def _written(turns: _Turns, links: Sequence[_Link]) -> Iterator[Operation]:
        """All operations in their new order.

        Loads and stores come behind the first compute set of their turn, so that it shares a
        superstep with the copies before it.
        """
        of_turn: list[list[Operation]] = [[] for _ in turns.ops]
        for each in links:
            of_turn[each.turn].append(each.op)
        for turn, (ops, own) in enumerate(zip(turns.ops, of_turn, strict=True)):
            first = next((i for i, op in enumerate(ops) if isinstance(op, tile.ComputeSetOp)), None)
            at = len(ops) if first is None else first + 1
            if turn == 0:
                at = 0
            yield from (*ops[:at], *own, *ops[at:])


def _kind(op: Operation) -> type[Operation] | None:
    """Which of the kinds of operations that use variables on I/O tiles one is."""
    return next((each for each in (Load, Store, Copy, Vertices) if isinstance(op, each)), None)
