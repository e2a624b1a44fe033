"""The proof that a program at exchange never mixes up the bytes of its variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...dialects.exchange import VariableOp
from ...ir.geometry.tiles import TileSets
from ...ir.provenance import origin, place
from ...ir.upstream import ModuleOp
from ..faults import MachineFault
from ..functions import functions_of
from ..meetings import check_meetings
from ..target import Target
from .boxes import Boxes, Integers, meetings
from .flow import END, Access, Flow, Life, flow_of
from .places import check_places


@dataclass(frozen=True)
class AddressProof:
    """The extent of a proof: the numbers of variables and of supersteps."""

    variables: int
    supersteps: int

    def __str__(self) -> str:
        return f"{self.variables} variables, {self.supersteps} supersteps"


def prove_addresses(module: ModuleOp, target: Target) -> AddressProof:
    """Prove that the addresses of a program of exchange suit its lifetimes and supersteps.

    In every run, whatever its inputs are and whichever way its loops and branches go:

    - each variable is aligned, and inside the memory of the target's tiles;
    - each read finds the value that was last written to the variable: nothing has written to its
      bytes since, and something has written it before;
    - in a phase, no two operations write to one byte, and no operation reads a byte that another
      operation writes. A vertex set may overwrite an operand if each point reads only the element
      that it writes;
    - states and constants hold their values after the run, and every output has been written;
    - chips between which a superstep moves words, or which the host joins, meet at its sync.

    A variable owns whole words of ALIGNMENT bytes on each of its tiles, also where its block is
    smaller than the largest one. The time is about linear in the number of accesses.
    Raises MachineFault for a value that nothing has written, if there is one, and otherwise for the
    first fault in program order. Raises InputError for a module without an entry function, or with
    a call that cannot be made.
    """
    variables = {v.symbol: v for v in module.body.block.ops if isinstance(v, VariableOp)}
    check_places(variables, target)
    check_meetings(module, variables, target)
    flow = flow_of(variables, functions_of(module))
    placed = _Placed(flow)
    for checks in _CHECKS:
        faults = [fault for check in checks for fault in check(placed)]
        if faults:
            raise min(faults, key=lambda fault: fault.phase).described()
    return AddressProof(len(variables), flow.supersteps)


@dataclass(frozen=True)
class _Fault:
    """A fault.

    Attributes:
        phase: the phase in which it happens.
        described: makes the exception.
    """

    phase: int
    described: Callable[[], MachineFault]


class _Placed:
    """A flow, and the bytes of its variables as arrays."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.variables = list(flow.variables.values())
        places = [
            (v.start, v.start + v.bytes_per_tile, *v.placed.tiles.span) for v in self.variables
        ]
        # Outputs are numbered after the variables, and have no bytes.
        places += [(0, 0, 0, 0)] * (len(flow.names) - len(places))
        start, end, first, last = np.array(places, np.int64).reshape(-1, 4).T
        self._low, self._high = np.stack((start, first)), np.stack((end, last))
        self._tiles = TileSets([v.placed.tiles for v in self.variables])
        self.writes = self._of_accesses(flow.writes)
        # The control program reads predicates between phases.
        self.phase_reads = [each for each in flow.reads if each.step is not None]
        self.reads = self._of_accesses(self.phase_reads)
        self.lives = self.boxes(
            _column(life.variable for life in flow.lives),
            _column(life.first for life in flow.lives),
            _column(life.last for life in flow.lives),
        )

    def boxes(self, variables: Integers, first: Integers, last: Integers) -> Boxes:
        """The boxes of variables in spans of phases, the last phase included."""
        low = np.concatenate((first[None], self._low[:, variables]))
        high = np.concatenate((last[None] + 1, self._high[:, variables]))
        return Boxes(low, high)

    def _of_accesses(self, accesses: Sequence[Access]) -> Boxes:
        phase = _column(each.phase for each in accesses)
        return self.boxes(_column(each.variable for each in accesses), phase, phase)

    def on_one_tile(self, bad: np.ndarray, left: Integers, right: Integers) -> np.ndarray:
        """Which pairs of variables are bad: those that share a tile, of the given ones.

        The ranges of tiles of each pair overlap, but tiles of other chips may lie between them.

        Args:
            bad: pairs that are bad if they share a tile, (pairs,). It is changed.
            left, right: the variables of each pair, (pairs,).
        """
        if not self._tiles.are_ranges:
            at = np.flatnonzero(bad)
            bad[at] = self._tiles.meet(left[at], right[at])
        return bad

    def shared(self, left: int, right: int) -> tuple[int, tuple[int, int]]:
        """The first tile that two variables share, and the range of bytes that they share there."""
        low = np.maximum(self._low[:, left], self._low[:, right])
        high = np.minimum(self._high[:, left], self._high[:, right])
        one, other = (self.variables[i].placed.tiles for i in (left, right))
        tiles = one.of(np.arange(one.count))
        tile = tiles[other.cells_on(tiles) >= 0].min()
        return int(tile), (int(low[0]), int(high[0]))

    def own(self, variable: int) -> tuple[int, tuple[int, int]]:
        """The first tile of a variable, and its range of bytes."""
        (start, tile), end = self._low[:, variable], self._high[0, variable]
        return int(tile), (int(start), int(end))


def _column(numbers: Iterator[int]) -> Integers:
    return np.fromiter(numbers, np.int64)


# Checks


def _at_load(placed: _Placed) -> Iterator[_Fault]:
    """Faults of this kind: two states or constants share bytes."""
    held = [i for i, v in enumerate(placed.variables) if v.initial is not None]
    number = np.array(held, np.int64)
    boxes = placed.boxes(number, 0 * number, 0 * number)
    for left, right in meetings(boxes, boxes):
        bad = placed.on_one_tile(left < right, number[left], number[right])
        for i, j in _first(left, right, bad, 0 * left):
            yield _Fault(-1, lambda i=held[i], j=held[j]: _both_held(placed, i, j))


def _unwritten(placed: _Placed) -> Iterator[_Fault]:
    """Faults of this kind: a value that is needed has never been written."""
    flow = placed.flow
    for variable, reader in flow.unwritten.items():
        if variable < len(placed.variables) and not placed.variables[variable].bytes_per_tile:
            continue
        phase = _after_all(flow) if reader == END else flow.reads[reader].phase
        yield _Fault(phase, lambda v=variable, r=reader: _never_written(placed, v, r))


def _one_writer(placed: _Placed) -> Iterator[_Fault]:
    """Faults of this kind: two operations of a phase write to one byte."""
    writes = placed.flow.writes
    own = _column(each.variable for each in writes)
    for left, right in meetings(placed.writes, placed.writes):
        bad = placed.on_one_tile(left < right, own[left], own[right])
        for i, j in _first(left, right, bad, placed.writes.low[0, left]):
            first, second = writes[i], writes[j]
            yield _Fault(
                first.phase, lambda a=second, b=first: _in_one_phase(placed, a, b, "writes")
            )


def _reads_settled_bytes(placed: _Placed) -> Iterator[_Fault]:
    """Faults of this kind: an operation reads a byte that its phase writes, other than in place."""
    writes, reads = placed.flow.writes, placed.phase_reads
    harmless = np.array([read.harmless for read in reads], bool)
    numbers = {each: n for n, each in enumerate({w.op: None for w in writes})}
    writer = _column(numbers[each.op] for each in writes)
    reader = _column(numbers.get(each.op, -1) for each in reads)
    written = _column(each.variable for each in writes)
    read_from = _column(each.variable for each in reads)
    for left, right in meetings(placed.writes, placed.reads):
        bad = ~(harmless[right] & (writer[left] == reader[right]))
        bad = placed.on_one_tile(bad, written[left], read_from[right])
        for i, j in _first(left, right, bad, placed.writes.low[0, left]):
            write, read = writes[i], reads[j]
            yield _Fault(read.phase, lambda r=read, w=write: _in_one_phase(placed, r, w, "reads"))


def _keeps_values(placed: _Placed) -> Iterator[_Fault]:
    """Faults of this kind: an operation writes to bytes of another variable whose value is still
    needed.
    """
    writes, lives = placed.flow.writes, placed.flow.lives
    own = _column(each.variable for each in writes)
    other = _column(each.variable for each in lives)
    for left, right in meetings(placed.lives, placed.writes):
        bad = placed.on_one_tile(other[left] != own[right], other[left], own[right])
        for i, j in _first(left, right, bad, placed.writes.low[0, right]):
            life, write = lives[i], writes[j]
            yield _Fault(write.phase, lambda w=write, o=life: _destroys(placed, w, o))


_CHECKS: tuple[tuple[Callable[[_Placed], Iterator[_Fault]], ...], ...] = (
    (_at_load, _unwritten),
    (_one_writer, _reads_settled_bytes, _keeps_values),
)
"""The checks, in two groups: values that were never written are reported before all other faults.

Within a group, the first fault in program order is reported; in one phase, that of the first check.
"""


def _first(
    left: Integers, right: Integers, bad: np.ndarray, phase: Integers
) -> Iterator[tuple[int, int]]:
    """The bad pair with the earliest phase; nothing if no pair is bad."""
    at = np.flatnonzero(bad)
    if len(at):
        best = at[np.lexsort((right[at], left[at], phase[at]))[0]]
        yield int(left[best]), int(right[best])


def _after_all(flow: Flow) -> int:
    return max((each.phase for each in (*flow.reads, *flow.writes)), default=0) + 1


# Messages


def _both_held(placed: _Placed, i: int, j: int) -> MachineFault:
    first, second = placed.variables[i], placed.variables[j]
    tile, addresses = placed.shared(i, j)
    return MachineFault(
        f"@{second.symbol} at {place(second)}: {_bytes(tile, addresses)} hold @{first.symbol} too, "
        "and both have a value before the first run",
        variable=second.symbol,
        tile=tile,
        addresses=addresses,
        node=origin(second),
    )


def _never_written(placed: _Placed, variable: int, reader: int) -> MachineFault:
    flow = placed.flow
    name = flow.names[variable]
    sometimes = any(each.variable == variable for each in flow.writes)
    if reader != END:
        how = "not written before on every path" if sometimes else "never written"
        return _fault(placed, flow.reads[reader], "reads", placed.own(variable), how)
    if variable >= len(placed.variables):
        return MachineFault(f'output "{name}": not written on every path through @main')
    v = placed.variables[variable]
    return MachineFault(
        f"@{name} at {place(v)}: a state without a value before the first run; need a write on "
        "every path",
        variable=name,
        node=origin(v),
    )


def _in_one_phase(placed: _Placed, own: Access, other: Access, verb: str) -> MachineFault:
    who = "it overwrites" if own.op is other.op else f"{_who(other)} writes"
    name = placed.flow.names[other.variable]
    as_other = "" if other.variable == own.variable else f" as @{name}"
    return _fault(
        placed,
        own,
        verb,
        placed.shared(own.variable, other.variable),
        f"which {who}{as_other} in the same phase",
    )


def _destroys(placed: _Placed, write: Access, life: Life) -> MachineFault:
    flow = placed.flow
    name = flow.names[life.variable]
    if life.reader == END:
        kind = "state" if placed.variables[life.variable].state is not None else "constant"
        why = f"the bytes of @{name}; a {kind} must hold after every run"
    else:
        read = flow.reads[life.reader]
        step = "" if read.step is None else f" in superstep @{read.step.sym_name.data}"
        why = f"the bytes of @{name}, which {_who(read)}{step} reads later"
    return _fault(placed, write, "writes", placed.shared(write.variable, life.variable), why)


def _fault(
    placed: _Placed,
    access: Access,
    verb: str,
    where: tuple[int, tuple[int, int]],
    problem: str,
) -> MachineFault:
    tile, addresses = where
    name = placed.flow.names[access.variable]
    step = None if access.step is None else access.step.sym_name.data
    at = "" if step is None else f"superstep @{step}: "
    return MachineFault(
        f"{at}{_who(access)} {verb} {_bytes(tile, addresses)} (@{name}), {problem}",
        superstep=step,
        op=access.op.name,
        variable=name,
        tile=tile,
        addresses=addresses,
        node=origin(access.op),
    )


def _bytes(tile: int, addresses: tuple[int, int]) -> str:
    return f"bytes {addresses[0]}..{addresses[1] - 1} of tile {tile}"


def _who(access: Access) -> str:
    return f"{access.op.name} at {place(access.op)}"
