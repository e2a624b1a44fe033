"""The size and price of a compiled program, and the proof of its addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import TYPE_CHECKING, Any, cast

from ...backends.target import Target
from ...ir.support.deferred import deferred
from ...ir.support.turns import computed_once
from .modules import Modules

if TYPE_CHECKING:
    from ...ir.upstream import ModuleOp

with deferred(__name__):
    from ...backends.addresses.prove import AddressProof, prove_addresses
    from ...backends.counts import Counts, PhaseCounts, counts
    from ...backends.feeding import feeding, items_of
    from ...backends.memory import MemoryReport, memory_report
    from ...backends.prices.cost import host_cycles
    from ...backends.prices.energy import run_joules
    from ...backends.prices.price import (
        ProgramPrice,
        SuperstepPrice,
        ZonePrice,
        program_price,
        totals,
    )
    from ...backends.prices.price_operations import OperationPrice, Priced, price_operations
    from ...ir.phases import Phases, several
    from ...passes.planner.relaxed import Relaxed, read_relaxed
    from ..importers.notes import read_notes, write_notes
    from .energy import energy_figures
    from .recomputation.record import Recomputed, read_recomputed

GRAPH = ("vertices", "edges", "connections", "source_edges", "loop_edges", "relayout_elements")
"""The fields of a profile that describe the graph."""

REMOTE = ("remote_cycles", "remote_hidden_cycles")
"""The fields of a profile that say how long loads from remote memory and stores to it take."""


class Analyses:
    """The size and the price of a program, and a proof of its addresses.

    Each is computed when it is first asked for.

    Attributes:
        reported: the profile from when the program was compiled; the sizes in it are not computed
            again.
        is_known: whether the cache has kept the program: all of `reported` holds, and the addresses
            were proved.
    """

    def __init__(
        self, modules: Modules, target: Target, reported: Mapping[str, object], is_known: bool
    ) -> None:
        self.reported = reported
        self.is_known = is_known
        self._modules = modules
        self._target = target
        self._is_noted = False

    @property
    def tile_bytes(self) -> int | None:
        """The bytes of the fullest tile, if they are known without the program."""
        found = self.reported.get("max_tile_bytes")
        return found if isinstance(found, int) else None

    @computed_once
    def memory(self) -> MemoryReport:
        """The contents of every tile's memory over time."""
        return memory_report(self._modules.machine, self._target)

    @computed_once
    def addresses(self) -> AddressProof:
        """The proof that the program's addresses suit its lifetimes.

        Raises MachineFault as prove_addresses does.
        """
        return prove_addresses(self._modules.machine, self._target)

    @computed_once
    def operation_prices(self) -> dict[Priced, OperationPrice]:
        """The cycles and bytes of every copy and compute set, in the order of the program."""
        return price_operations(self._modules.machine, self._target)

    @computed_once
    def price(self) -> ProgramPrice:
        """The price of every superstep, and what each chip does."""
        return program_price(self._modules.machine, self._target)

    @computed_once
    def phases(self) -> Phases:
        """The phases of the operations of a training program; all forward in any other."""
        return Phases.of(self._modules.machine)

    @property
    def relaxed(self) -> tuple[Relaxed, ...]:
        """The operators for which no plan keeps the memory limit."""
        if self.is_known and not self.reported.get("relaxed_limits"):
            return ()
        return read_relaxed(self._modules.machine)

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for the user about the model that was read, and about what the compiler chose."""
        if self.is_known and not self._is_noted and not self.reported.get("notes"):
            return ()
        return read_notes(self._modules.last)

    def note(self, line: str) -> None:
        """Record a line for the user on the program, behind those that it has."""
        module = self._modules.last
        write_notes(module, (*read_notes(module), line))
        self._is_noted = True

    @property
    def recomputed(self) -> tuple[Recomputed, ...]:
        """What the compiler chose to compute again instead of keeping it."""
        if self.is_known and not self.reported.get("recomputed"):
            return ()
        return read_recomputed(self._modules.machine)

    @property
    def figures(self) -> Mapping[str, Any]:
        """The fields of a profile, except its seconds."""
        # The compiler records its choices after it has compared the figures of its trials.
        if self.is_known:
            return {**self.reported, "notes": list(self.notes)} if self._is_noted else self.reported
        chosen = {"recomputed": list(map(asdict, self.recomputed)), "notes": list(self.notes)}
        return {**self._figures, **chosen}

    @computed_once
    def _figures(self) -> dict[str, Any]:
        whole = self.price
        prices = whole.supersteps
        memory, levels = self.memory, self._modules.levels
        return {
            "target": self._target.spelling(),
            "target_label": self._target.label(),
            "tiles": self._target.tiles,
            "chips": self._target.chips,
            "unpriced": self._target.unpriced,
            **(_numbers(self.reported, GRAPH) or self._graph()),
            **vars(totals(prices)),
            "by_chip": [_of_chip(each) for each in whole.chips],
            **dict(zip(REMOTE, whole.remote_cycles, strict=True)),
            **self._host(totals(prices).cycles),
            **self._feeding(totals(prices).cycles),
            **energy_figures(run_joules(self._modules.machine, whole, self._target), self._target),
            "phases": self._by_phase(prices),
            "tiles_used": memory.tiles_used,
            "max_tile_bytes": memory.max_tile_bytes,
            "remote_bytes": memory.remote_bytes,
            "fullest_tile": memory.fullest_tile,
            "relaxed_limits": [asdict(each) for each in self.relaxed],
            "ops": _numbers(self.reported.get("ops"), levels)
            or {level: _operations(self._modules.at(level)) for level in levels},
        }

    def _feeding(self, cycles: int) -> dict[str, Any]:
        """The items per second of the machine and of what feeds it, and the least of these."""
        taken, given = self._host_bytes()
        items = items_of([each.shape for each in self._modules.signature.inputs])
        found = feeding(items, cycles, taken, given, self._target)
        return {
            "items": items,
            "items_per_s": found.items_per_s,
            "bound_by": found.bound_by,
            "rates": dict(found.rates),
        }

    def _host(self, cycles: int) -> dict[str, int]:
        """The bytes that a run takes from the host and gives to it, and the cycles of both.

        Of these cycles, as many as a run takes are hidden if the machine has I/O tiles.
        """
        taken, given = self._host_bytes()
        moving = host_cycles(taken + given, self._target)
        return {
            "host_input_bytes": taken,
            "host_output_bytes": given,
            "host_cycles": moving,
            "host_hidden_cycles": min(moving, cycles) if self._target.io_tiles else 0,
        }

    def _host_bytes(self) -> tuple[int, int]:
        """The bytes that a run takes from the host, and those that it gives to it."""
        signature = self._modules.signature
        taken, given = (
            sum(prod(each.shape) * each.dtype.itemsize for each in tensors)
            for tensors in (signature.inputs, signature.outputs)
        )
        return taken, given

    @computed_once
    def _counts(self) -> Counts:
        return counts(self._modules.machine)

    def _graph(self) -> dict[str, int]:
        return {name: getattr(self._counts, name) for name in GRAPH}

    def _by_phase(self, prices: Sequence[SuperstepPrice]) -> dict[str, dict[str, int]]:
        """The price and the size of each phase of a training program; {} for any other."""
        of = [self.phases.phase(each.origin) for each in prices]
        return {
            phase: vars(totals([p for p, own in zip(prices, of, strict=True) if own == phase]))
            | vars(self._counts.phases.get(phase, PhaseCounts()))
            for phase in several(of)
        }


def _of_chip(price: ZonePrice) -> dict[str, int]:
    return {
        "chip": price.chip,
        "compute_cycles": price.busy.compute,
        "exchange_cycles": price.busy.exchange,
        "sync_cycles": price.busy.sync,
        "waiting_cycles": price.waiting_cycles,
        "end": price.end,
    }


def _numbers(reported: object, names: Sequence[str]) -> dict[str, int] | None:
    """The reported numbers with these names; None unless all of them are there."""
    if not isinstance(reported, Mapping):
        return None
    found = {name: cast(Mapping[str, object], reported).get(name) for name in names}
    numbers = {name: n for name, n in found.items() if type(n) is int and n >= 0}
    return numbers if len(numbers) == len(names) else None


def _operations(module: ModuleOp) -> int:
    return sum(1 for _ in module.walk())
