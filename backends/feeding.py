"""How many items a second a program takes: what the machine computes, and what feeds it.

An item is a sample of a batch, such as an image. Storage, host, network and machine work at the
same time, each on items of its own, so the slowest of them decides. Parts of an installation whose
facts are not given (see `Host` and `Storage` in facts.py) limit nothing.

A machine without I/O tiles takes inputs before a run and gives results after it, and computes
nothing meanwhile. With I/O tiles, the link brings the inputs of the next run and takes the results
of the last one while a run computes, so the link is one more part. Of N runs, the inputs of the
first and the results of the last one are not hidden. A transfer waits for the host before it begins
and after it has ended; if the host prefetches inputs, they wait only after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .prices.cost import host_cycles
from .target import Target

MACHINE, LINK, NETWORK, HOST, STORAGE = "machine", "link", "network", "host", "storage"


@dataclass(frozen=True)
class Feeding:
    """The items that each part of an installation handles in a second.

    Attributes:
        items: of one run.
        rates: items a second by part, the machine first; without parts of which nothing is known.
    """

    items: int
    rates: Mapping[str, float]

    @property
    def bound_by(self) -> str:
        """The slowest part; the machine if another one is as slow."""
        return min(self.rates, key=lambda part: self.rates[part])

    @property
    def items_per_s(self) -> float:
        """The items that all parts together handle in a second."""
        return self.rates[self.bound_by]


def items_of(shapes: Sequence[tuple[int, ...]]) -> int:
    """The number of items in inputs: the first size, if all inputs that have axes share it; else 1.

    Args:
        shapes: of the inputs.
    """
    first = {shape[0] for shape in shapes if shape}
    return first.pop() if len(first) == 1 and 0 not in first else 1


def feeding(
    items: int, cycles: int, input_bytes: int, output_bytes: int, target: Target
) -> Feeding:
    """The items a second of a program, of the machine and of what feeds it.

    Args:
        items: of one run.
        cycles: of one run, without transfers to and from the host.
        input_bytes, output_bytes: that one run takes from the host, and gives to it.
    """
    seconds = cycles / target.clock_hz
    moving = link_seconds(input_bytes, output_bytes, target)
    rates: dict[str, float] = {}
    if not target.io_tiles:
        seconds += moving
    elif moving:
        rates[LINK] = items / moving
    # A program that does nothing takes a cycle, so that all rates are numbers.
    rates = {MACHINE: items / max(seconds, 1 / target.clock_hz), **rates}
    of_bytes = {NETWORK: target.host.link_gbytes, STORAGE: target.storage.gbytes}
    if target.host.items_per_s:
        rates[HOST] = target.host.items_per_s
    for part, gbytes in of_bytes.items():
        if gbytes and input_bytes:
            rates[part] = gbytes * 1e9 * items / input_bytes
    return Feeding(items, rates)


def link_seconds(input_bytes: int, output_bytes: int, target: Target) -> float:
    """The seconds in which the inputs and results of a run cross the link to the host."""
    moving = host_cycles(input_bytes + output_bytes, target)
    waits = (2 - bool(target.host.prefetch)) * bool(input_bytes) + 2 * bool(output_bytes)
    return moving / target.clock_hz + waits * target.host.latency_ns * 1e-9
