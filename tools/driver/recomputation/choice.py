"""The choice of what to compute again: what costs the fewest cycles per byte at the peak, first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....dialects.structured import Structured
from ....passes.narrow_stashes import StashType
from .memory_over_time import SMALL, Asked, Estimate, MemoryOverTime, operands, sources

TRIED = 8
"""The ways that are tried in each round: those that cost the fewest cycles per byte on their own.

Others follow only if none of these helps. Measured on SqueezeNet, 8 images, mk2, auto:308960:
2,291,877 cycles with 1, 2,285,696 with 8 and with 64.
"""

LONGEST = 12
"""The most operations of a chain whose last value is computed again.

Chosen by judgement: two blocks of a residual network. On SqueezeNet, 2, 12 and 48 choose alike.
"""


@dataclass(frozen=True)
class Chosen:
    """One choice.

    Attributes:
        asked: the operations that it computes again.
        bytes: what it saves on the fullest tile at its fullest moment.
        cycles: what it costs.
    """

    asked: Asked
    bytes: int
    cycles: float


@dataclass(frozen=True, eq=False)
class Candidates:
    """What may be chosen.

    Attributes:
        free: the operations whose values need not be kept.
        usable: the operations that may be repeated on the way to such a value.
        narrow: the operations whose results may wait in narrower types, each with the types.
    """

    free: frozenset[Operation]
    usable: frozenset[Operation]
    narrow: Mapping[Operation, Sequence[StashType]] = field(
        default_factory=dict[Operation, Sequence[StashType]]
    )


def choose(
    memory: MemoryOverTime, bound: int, among: Candidates, schedule: frozenset[Operation]
) -> tuple[list[Chosen], Estimate]:
    """Choices after which the estimated peak is within a bound, and the memory with them.

    If no choices reach it, those that come closest. Chains of values that are all computed again
    are all live again at their first reader, so one way tries values that rely on kept ones first,
    and one begins with a published schedule.

    Args:
        schedule: the operations that it computes again.
    """
    ways: list[tuple[list[Chosen], Estimate]] = []
    begun = one_by_one(memory, schedule & among.free)
    for begin, passes in (([], (True, False)), ([], (False,)), (begun, (True, False))):
        found = [*begin]
        for on_kept in passes:
            _extend(found, memory, bound, among, on_kept=on_kept)
        now = memory.with_again(together(found))
        ways.append(_needed(memory, found, max(bound, now.peak)))
    return min(ways, key=lambda way: (max(way[1].peak, bound), way[1].cycles))


def one_by_one(memory: MemoryOverTime, ops: frozenset[Operation]) -> list[Chosen]:
    """Operations that are computed again as choices of their own, with what each adds to those
    before it.
    """
    found: list[Chosen] = []
    asked = Asked()
    now = memory.with_again(asked)
    for op in memory.candidates:
        if op in ops:
            asked |= (way := Asked(late=frozenset([op])))
            before, now = now, memory.with_again(asked)
            moment = int(np.argmax(before.live))
            saved = int(before.live[moment] - now.live[moment])
            found.append(Chosen(way, max(saved, 0), max(now.cycles - before.cycles, 0.0)))
    return found


def _extend(
    found: list[Chosen], memory: MemoryOverTime, bound: int, among: Candidates, *, on_kept: bool
) -> None:
    """Add choices until the estimated peak is within a bound, or none helps.

    Args:
        on_kept: whether no choice may rely on values of another choice.
    """
    asked = together(found)
    now = memory.with_again(asked)
    while now.peak > bound:
        best = _best(memory, asked, now, bound, among, on_kept)
        if best is None:
            break
        found.append(best)
        asked |= best.asked
        now = memory.with_again(asked)


def together(choices: Sequence[Chosen]) -> Asked:
    """All that some choices compute again."""
    asked = Asked()
    for each in choices:
        asked |= each.asked
    return asked


def _needed(
    memory: MemoryOverTime, choices: list[Chosen], bound: int
) -> tuple[list[Chosen], Estimate]:
    """The choices without those that later ones made needless, the dearest first."""
    kept = list(choices)
    for each in sorted(choices, key=lambda each: -each.cycles):
        rest = [other for other in kept if other is not each]
        after = memory.with_again(together(rest))
        if after.peak <= bound and after.is_legal:
            kept = rest
    return kept, memory.with_again(together(kept))


def _best(
    memory: MemoryOverTime,
    asked: Asked,
    now: Estimate,
    bound: int,
    among: Candidates,
    on_kept: bool,
) -> Chosen | None:
    """The choice that costs the fewest cycles per byte over the bound; None if none helps."""
    moment = int(np.argmax(now.live))
    over = int(now.live[moment]) - bound
    every = _ways(memory, asked, moment, among)
    if on_kept:
        every = (way for way in every if _relies_on_kept(way, asked))
    ways = sorted(every, key=lambda way: _price(memory, way))
    for start in range(0, len(ways), TRIED):
        found: list[tuple[float, Chosen]] = []
        for way in islice(ways, start, start + TRIED):
            after = memory.with_again(asked | way)
            saved = int(now.live[moment] - after.live[moment])
            if saved > 0 and after.is_legal and after.peak <= now.peak:
                cycles = after.cycles - now.cycles
                found.append((cycles / min(saved, over), Chosen(way, saved, cycles)))
        if found:
            return min(found, key=lambda each: each[0])[1]
    return None


def _price(memory: MemoryOverTime, way: Asked) -> float:
    """Roughly, the cycles per byte of a way on its own."""
    if way.anew:
        copies = [c for op in way.anew for s in operands(op) for c in memory.relaid.get(s, ())]
        return sum(each.cycles for each in copies) / sum(each.bytes for each in copies)
    if way.narrow:
        after, before = memory.with_again(way), memory.with_again()
        return after.cycles / max(int((before.live - after.live).max()), 1)
    ops = way.late | way.apart
    size = max(memory.values[op].bytes for op in ops)
    return sum(memory.cycles[op] for op in ops) / size


def _ways(
    memory: MemoryOverTime,
    asked: Asked,
    moment: int,
    among: Candidates,
) -> Iterator[Asked]:
    """The ways not to keep a value, or a copy of one, that is live at a moment."""
    for op in dict.fromkeys(op for op, _ in memory.next_readers(moment)):
        if op in among.free and op not in asked.anew:
            yield Asked(anew=frozenset([op]))
    for op, kinds in among.narrow.items():
        if op not in asked.gives_up and memory.waits_at(op, moment):
            yield from (Asked(narrow=frozenset([(op, kind)])) for kind in kinds)
    for op in memory.waiting(moment):
        if op in asked.gives_up or op not in among.free or not memory.values[op].bytes:
            continue
        if _joins_readers(memory, op):
            yield Asked(apart=frozenset([op]))
        places = memory.late(op)
        chain = _chain(memory, asked, op, places, among.usable) if places else None
        if chain is not None:
            yield Asked(late=frozenset(chain))


def _relies_on_kept(way: Asked, asked: Asked) -> bool:
    """Whether a way and all that is asked for rely on no values of each other."""
    return not any(
        source in other.late
        for one, other in ((way, asked), (asked, way))
        for op in one.late
        for source in sources(op)
    )


def _joins_readers(memory: MemoryOverTime, op: Operation) -> bool:
    """Whether each of several readers of a value can be computed together with a copy of it."""
    if len(op.results) != 1 or len(set(memory.values[op].readers)) < 2:
        return False
    (result,) = op.results
    return all(
        isinstance(use.operation, Structured)
        and use.operation.parent is op.parent
        and use.operation.structure().reads_in_place(use.index)
        for use in result.uses
    )


def _chain(
    memory: MemoryOverTime,
    asked: Asked,
    op: Operation,
    places: Sequence[int],
    usable: frozenset[Operation],
) -> set[Operation] | None:
    """What must be computed again to have a value again at some places; None if that is too much.

    Args:
        places: indices of the block.
    """
    taken = {op}
    waiting = [op]
    while waiting:
        here = waiting.pop()
        for source in sources(here):
            if source in taken or source in asked.late or _exists(memory, source, places, here):
                continue
            if not isinstance(source, Operation) or source not in usable:
                return None
            if source not in memory.cycles or len(taken) == LONGEST:
                return None
            taken.add(source)
            waiting.append(source)
    return taken


def _exists(
    memory: MemoryOverTime, source: SSAValue | Operation, places: Sequence[int], reader: Operation
) -> bool:
    """Whether a value lives at all places anyway, or may live on until then because it is small."""
    if all(memory.lives_at(source, place) for place in places):
        return True
    return SMALL * memory.values[source].bytes <= memory.values[reader].bytes
