"""The loaded programs of an executable, which run and have a state each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, cast

from ...backends.target import Target
from ...ir.support.deferred import deferred
from ...ir.support.errors import naming_memory_errors
from ...ir.support.garbage import collection_paused
from ...ir.support.turns import COMPILING, Turns
from .analyses import Analyses
from .arrays import Array
from .files import PROGRAM_FILE
from .host_memory import refuse_too_little_for, refuse_too_little_memory
from .modules import MACHINE, Modules
from .signature import Signature
from .stages import Stages

if TYPE_CHECKING:
    from ...backends.host.read_bound_program import BoundProgram
    from ...backends.machine import Machine
    from ...ir.upstream import ModuleOp

with deferred(__name__):
    from ...backends.levels import Runner, initial_states, loaded
    from ...dialects.levels import level_named


class Ready(Protocol):
    """A program that is ready to run."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Run @main once; outputs by name."""
        ...


class RunFile(Protocol):
    """A file that may keep a program ready to run, as that of the cache does."""

    @property
    def digest(self) -> str:
        """The digest of the program."""
        ...

    @property
    def exists(self) -> bool:
        """Whether the file is there, and may be used."""
        ...

    @property
    def signature(self) -> Signature:
        """The inputs and outputs of the program, if it is ready to run."""
        ...

    def load(self) -> BoundProgram | None:
        """The program, ready to run; None if it must be bound."""
        ...

    def save(self, machine: Machine, module: ModuleOp) -> None:
        """Keep a machine's program ready to run, if that is possible."""
        ...


@dataclass(frozen=True)
class Repeated:
    """A run that was repeated.

    Attributes:
        results: the results of the repeated run, by name.
        before: the states that the earlier run left, by name; None after several earlier runs.
        after: the states that the repeated run left, by name; None after several earlier runs.
    """

    results: Mapping[str, Array]
    after: Mapping[str, Array]
    before: Mapping[str, Array] | None


class Runners:
    """The loaded programs of an executable: one for each level, and one for the strict machine.

    Attributes:
        turns: the turns of threads that run a program, or read or set its state.
        file: the file that keeps the program ready to run, if the cache has the program.
        last: the level of the last run, and whether the strict machine ran it; None while all
            states have their first values.
    """

    def __init__(
        self, modules: Modules, target: Target, analyses: Analyses, stages: Stages
    ) -> None:
        self.turns = Turns()
        self.file: RunFile | None = None
        self.last: tuple[str, bool] | None = None
        self._modules = modules
        self._target = target
        self._stages = stages
        self._analyses = analyses
        self._runners: dict[tuple[str, bool], Runner] = {}
        self._ready: BoundProgram | None = None
        self._plain_runs = 0

    @property
    def is_kept_ready(self) -> bool:
        """Whether the cache has kept this program ready to run, and has loaded it like that."""
        return self._ready is not None

    def run(
        self, inputs: Mapping[str, Array], level: str = MACHINE, strict: bool = False
    ) -> Mapping[str, Array]:
        """Run a level once, on checked inputs; all results by name."""
        ready = self.prepared(level, strict)
        with self.turns:
            start = perf_counter()
            results = ready.run(inputs)
            self._stages.seconds["run"] = perf_counter() - start
            self._plain_runs += (level, strict) == (MACHINE, False)
        return results

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The supersteps whose timetables the strict machine has not checked, because they have too
        many messages; none before it is loaded."""
        strict = self._runners.get((MACHINE, True))
        found: tuple[str, ...] = getattr(strict, "unchecked", ())
        return found

    def repeated(self, inputs: Mapping[str, Array]) -> Repeated | None:
        """Run the machine once more on checked inputs, from the first states.

        Afterwards all states are what they were. Returns None if the machine has not run in this
        way before.

        A check compares such a run, of a program that is warm, with others.
        """
        if not self._plain_runs:
            return None
        loaded = self._runners.get((MACHINE, False))
        if loaded is None:
            # A program that the cache keeps ready to run has no states that change.
            ready = self.prepared()
            with self.turns:
                results = ready.run(inputs)
            return Repeated(results, {}, {})
        first = initial_states(self._modules.machine)
        with self.turns:
            before = dict(loaded.states)
            for name, array in first.items():
                loaded.set_state(name, array)
            try:
                results = loaded.run(inputs)
                after = dict(loaded.states)
            finally:
                for name, array in before.items():
                    loaded.set_state(name, array)
        return Repeated(results, after, before if self._plain_runs == 1 else None)

    def prepared(self, level: str = MACHINE, strict: bool = False) -> Ready:
        """The runner of a level: the cache's program, if that is ready, or the loaded program."""
        key = level, strict
        if key != (MACHINE, False) or key in self._runners or self.file is None:
            return self.at(level, strict)
        with self.turns:
            if self._ready is None:
                start = perf_counter()
                with naming_memory_errors(f"loading {self._modules.path} at {level}"):
                    tile_bytes = self._analyses.tile_bytes
                    if tile_bytes is not None:
                        refuse_too_little_for(self._target, tile_bytes)
                        self._ready = self.file.load()
                self._stages.seconds["load"] = perf_counter() - start
            if self._ready is not None:
                self.last = key
                return self._ready
        return self.at(level, strict)

    def at(self, level: str = MACHINE, strict: bool = False) -> Runner:
        """The loaded program of a level."""
        found = self._runners.get((level, strict))
        if found is None:
            with COMPILING:
                found = self._runners.get((level, strict)) or self._loaded(level, strict)
        self.last = level, strict
        return found

    def _loaded(self, level: str, strict: bool) -> Runner:
        """Load the program of a level."""
        start = perf_counter()
        with collection_paused(), naming_memory_errors(f"loading {self._modules.path} at {level}"):
            if level == MACHINE:
                self._check_machine()
            module = self._modules.at(level)
            found = loaded(level_named(level), module, self._target, strict)
            if (level, strict) == (MACHINE, False) and self.file is not None:
                self.file.save(cast("Machine", found), module)
        self._runners[level, strict] = found
        self._stages.seconds["load"] = perf_counter() - start
        return found

    def _check_machine(self) -> None:
        """Raise unless this host can hold the program's tiles, and its addresses are right."""
        is_file = self._modules.path.endswith(PROGRAM_FILE)
        refuse_too_little_memory(self._analyses.memory, is_file)
        if not self._analyses.is_known:
            _ = self._analyses.addresses

    def states(self) -> Mapping[str, Array]:
        """The states of the level that was run last; their first values, if none was."""
        last = None if self.last is None else self._runners.get(self.last)
        if last is None:
            return initial_states(self._modules.machine)
        with self.turns:
            return last.states

    def set_states(self, values: Mapping[str, Array], level: str) -> None:
        """Set the values that the next run of a level finds in some states."""
        runner = self.at(level)
        with self.turns:
            for name, array in values.items():
                runner.set_state(name, array)

    def reset(self) -> None:
        """Forget all loaded programs, and so their states."""
        self._runners.clear()
        self.last = None
        self._plain_runs = 0
