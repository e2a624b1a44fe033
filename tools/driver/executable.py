"""A compiled program: runs at every level, and knows its cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from math import prod
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, cast

from ...backends import executable as program_file
from ...backends.target import Target
from ...ir.marks import LEVEL_NAMES, MOST_SEED, TRAINED, UPDATED
from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError, naming_memory_errors
from ...ir.support.garbage import OPEN_FILE_BYTES, collect_if_grown, collection_paused, count_held
from ...ir.support.turns import COMPILING, Turns, computed_once
from .argument_kinds import ARRAYS, COUNT, PATH, TEXT, check_arguments
from .arrays import Array, Tensor, UnknownInputError, checked, listed
from .figures import html_table, rows
from .files import PROGRAM_FILE
from .host_memory import refuse_too_little_for, refuse_too_little_memory
from .not_copied import NotCopied
from .signature import Signature

with deferred(__name__):
    from ...backends.addresses.prove import AddressProof, prove_addresses
    from ...backends.counts import Counts, PhaseCounts, counts
    from ...backends.host.kept_run import KeptRun
    from ...backends.levels import RUNNERS, Runner, initial_states
    from ...backends.machine import Machine
    from ...backends.memory import memory_report
    from ...backends.prices.cost import host_cycles
    from ...backends.prices.price import SuperstepPrice, price, totals
    from ...backends.prices.price_operations import OperationPrice, Priced, price_operations
    from ...dialects.host import optional_inputs
    from ...dialects.levels import level_named
    from ...dialects.random_states import set_seed
    from ...dialects.settable import listed_names
    from ...ir.context import AbeleContext
    from ...ir.instruments.timing import PassTiming
    from ...ir.phases import Phases, several
    from ...ir.upstream import ModuleOp
    from ...passes.planner.relaxed import Relaxed, read_relaxed
    from .context import new_context
    from .keep_plans import KeptPlans
    from .program import check_target, signature, verified_level
    from .program_memory import ProgramMemory
    from .training import Settings, check_loss, check_states, settings_of


MACHINE = LEVEL_NAMES[-1]
"""The level that the machine runs."""

GRAPH = ("vertices", "edges", "connections", "source_edges", "loop_edges", "relayout_elements")
"""The fields of a profile that describe the graph."""


@dataclass(frozen=True)
class Repeated:
    """A run that was made once more.

    Attributes:
        outputs: by name.
        before, after: states by name, as the run before has left them, and as this one has; None if
            there were several runs before.
    """

    outputs: Mapping[str, Array]
    after: Mapping[str, Array]
    before: Mapping[str, Array] | None


@dataclass
class Stages:
    """Seconds of wall-clock time: by stage of compiling and running, and by pass.

    Attributes:
        timings: every run of a pass, in order.
        plans: the program as it was planned; None if it was not planned here.
    """

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    passes: dict[str, float] = field(default_factory=dict[str, float])
    timings: list[PassTiming] = field(default_factory=list[PassTiming])
    plans: KeptPlans | None = None

    def add(self, stage: str, seconds: float) -> None:
        """Add time to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds


Loader: TypeAlias = "Callable[[], ModuleOp]"


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

    def load(self) -> KeptRun | None:
        """The program, ready to run; None if it must be bound."""
        ...

    def save(self, machine: Machine, module: ModuleOp) -> None:
        """Keep a machine's program ready to run, if that is possible."""
        ...


class Executable(NotCopied):
    """A program for one target, at its own level and all levels below.

    Any number of threads may use an executable. Its runs take turns, each from its inputs to its
    outputs, and so does whatever reads or sets its state. Programs of several executables may run
    at the same time. Loading a program waits while another thread compiles; a program of the cache
    that is ready to run does not. A process forks between two turns, and parent and child then have
    a program each, with a state each. An executable is neither copied nor pickled.

    State (weights, counters) keeps its values from one run to the next. Each level has its own
    state, and so has the strict machine.

    Attributes:
        modules: a function per level that returns its module, called once; the machine runs the
            last.
        path: the name of the program in messages.
        reported: the profile from when it was compiled; the sizes in it are not computed again.
        anew: compiles the program again, if it was not compiled here; reports need what only
            compiling knows.
        kept: the file that holds the same program.
    """

    def __init__(
        self,
        target: Target,
        modules: Mapping[str, Loader],
        path: str = "<program>",
        stages: Stages | None = None,
        reported: Mapping[str, object] = MappingProxyType({}),
        anew: Callable[[], Executable] | None = None,
        kept: Path | None = None,
    ) -> None:
        self.target = target
        self.path = path
        self.anew = anew
        self._kept = kept
        self.stages = stages or Stages()
        self._reported = reported
        self._loaders = dict(modules)
        self._modules: dict[str, ModuleOp] = {}
        self._runners: dict[tuple[str, bool], Runner] = {}
        self._seed: int | None = None
        self._last: tuple[str, bool] | None = None
        self._plain_runs = 0
        self._ready: KeptRun | None = None
        self._signature: Signature | None = None
        self.turns = Turns()
        """The turns of threads that run the program, or read or set its state."""
        self.run_file: RunFile | None = None
        """What keeps the program ready to run, if the cache has the program."""

    def __repr__(self) -> str:
        """The program, its target and its levels; nothing is loaded or priced for it."""
        return f"<Executable {self.path} for {self.target.spelling()}: {', '.join(self.levels)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the inputs, the outputs, and the figures of `abele run`."""
        signature = [("inputs", self.inputs), ("outputs", self.outputs)]
        shown = [(name, listed(tensors)) for name, tensors in signature]
        return html_table(f"{self.path} for {self.target.spelling()}", shown + rows(self.profile))

    @property
    def is_from_cache(self) -> bool:
        """Whether the program was kept by the cache, with its figures, and proved before that."""
        return self.anew is not None

    @property
    def is_kept_ready(self) -> bool:
        """Whether the cache has kept this program ready to run, and has loaded it like that."""
        return self._ready is not None

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the program, from its own down."""
        return tuple(level for level in LEVEL_NAMES if level in self._loaders)

    def module_at(self, level: str) -> ModuleOp:
        """The module at a level. Raises InputError if the program has no such level."""
        if level not in self._loaders:
            raise InputError(
                f"{self.path}: no level {level!r}; need one of {', '.join(self.levels)}"
            )
        if level not in self._modules:
            with COMPILING:
                if level not in self._modules:
                    module = self._loaders[level]()
                    if self._seed is not None:
                        set_seed(module, self._seed)
                    self._modules[level] = module
        return self._modules[level]

    def seed_random(self, seed: int) -> None:
        """Draw other random numbers, from the first run on. All state gets its first values back.

        Raises InputError for another seed.

        A program that draws none stays as it is. Nodes of a model that have seeds of their own keep
        them.

        Args:
            seed: 0 to 2^32 - 1; 0 until this is called.
        """
        check_arguments("seed_random", {"seed": COUNT}, locals())
        if not 0 <= seed <= MOST_SEED:
            raise InputError(f"{self.path}: seed {seed}; need 0 to {MOST_SEED}")
        with COMPILING:
            self._seed = seed
            for module in self._modules.values():
                set_seed(module, seed)
            self.reset()

    def check_level(self, level: str) -> None:
        """Raise InputError if the program has no such level, or if its module is damaged.

        A program from the cache is not looked at: a damaged one would be compiled again.
        """
        if level not in self._loaders or not self.is_from_cache:
            _ = self.module_at(level)

    @property
    def signature(self) -> Signature:
        """The inputs and outputs of the program."""
        found = self._signature
        if found is None:
            if self.run_file is not None and self.run_file.exists:
                found = self.run_file.signature
            else:
                with COMPILING:
                    found = signature(self.module_at(MACHINE), self.path)
            self._signature = found
        return found

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the program, in order."""
        return self.signature.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs of the program, in order, each in its largest shape."""
        return self.signature.outputs

    def run(
        self, inputs: Mapping[str, object], *, at: str = MACHINE, strict: bool = False
    ) -> dict[str, Array]:
        """Run the program once, and return its outputs by name.

        An output whose size depends on values is returned without its padding.

        Raises InputError for inputs with wrong names, shapes or dtypes, and if this host has too
        little memory for all tiles. Raises MachineFault as prove_addresses does.

        Args:
            at: the level to run; exchange runs on the machine.
            strict: the machine poisons memory and checks every access, which is slower.
        """
        check_arguments("run", {"inputs": ARRAYS, "at": TEXT}, locals())
        if strict and at != MACHINE:
            raise InputError(f"strict at {at}: the machine runs {MACHINE} only")
        arrays = self._checked(inputs)
        runner = self.prepared(at, strict)
        with self.turns:
            start = perf_counter()
            outputs = runner.run(arrays)
            self.stages.seconds["run"] = perf_counter() - start
            self._plain_runs += (at, strict) == (MACHINE, False)
        return self.signature.trimmed(outputs)

    def _checked(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Inputs as arrays, in the program's order.

        Raises InputError for wrong names, shapes or dtypes, and for an input whose value in the
        model the program was compiled with.
        """
        try:
            return checked(inputs, self.inputs)
        except UnknownInputError:
            self.refuse_optional(inputs.keys() - {each.name for each in self.inputs})
            raise

    def refuse_optional(self, names: Iterable[str]) -> None:
        """Raise InputError if names hold an input that has a value in the model.

        The program was compiled with the model's value, so a run cannot replace it.

        Args:
            names: that no input of the program has.
        """
        unknown = sorted(names)
        if not unknown:
            return
        with COMPILING:
            optional = optional_inputs(self.module_at(MACHINE))
        name = next((each for each in unknown if each in optional), None)
        if name is not None:
            raise InputError(
                f"{self.path}: input {name!r} has a value in the model, with which the program was "
                f"compiled; to give another, compile the model with --value {name}=..., in Python "
                f"compile_model(..., values={{{name!r}: ...}})"
            )

    def repeated(self, inputs: Mapping[str, Array]) -> Repeated | None:
        """Run the machine once more, from the first states, on checked inputs; all states are
        afterwards what they were. None if the machine has not run like this before.

        A check compares such a run, of a program that is warm, with others.
        """
        if not self._plain_runs:
            return None
        loaded = self._runners.get((MACHINE, False))
        if loaded is None:
            # A program that the cache keeps ready to run has no states that change.
            runner = self.prepared()
            with self.turns:
                outputs = runner.run(inputs)
            return Repeated(self.signature.trimmed(outputs), {}, {})
        first = initial_states(self.module_at(MACHINE))
        with self.turns:
            before = dict(loaded.states)
            for name, array in first.items():
                loaded.set_state(name, array)
            try:
                outputs = self.signature.trimmed(loaded.run(inputs))
                after = dict(loaded.states)
            finally:
                for name, array in before.items():
                    loaded.set_state(name, array)
        return Repeated(outputs, after, before if self._plain_runs == 1 else None)

    def prepared(self, at: str = MACHINE, strict: bool = False) -> Ready:
        """What runs a level: the cache's program that is ready to run, or the loaded program."""
        key = at, strict
        if key != (MACHINE, False) or key in self._runners or self.run_file is None:
            return self.runner(at, strict)
        with self.turns:
            if self._ready is None:
                start = perf_counter()
                with naming_memory_errors(f"loading {self.path} at {at}"):
                    tile_bytes = self._reported.get("max_tile_bytes")
                    if isinstance(tile_bytes, int):
                        refuse_too_little_for(self.target, tile_bytes)
                        self._ready = self.run_file.load()
                self.stages.seconds["load"] = perf_counter() - start
            if self._ready is not None:
                self._last = key
                return self._ready
        return self.runner(at, strict)

    def runner(self, at: str = MACHINE, strict: bool = False) -> Runner:
        """The loaded program of a level."""
        found = self._runners.get((at, strict))
        if found is None:
            with COMPILING:
                found = self._runners.get((at, strict)) or self._loaded(at, strict)
        self._last = at, strict
        return found

    def _loaded(self, at: str, strict: bool) -> Runner:
        """Load the program of a level."""
        start = perf_counter()
        with collection_paused(), naming_memory_errors(f"loading {self.path} at {at}"):
            if at == MACHINE:
                refuse_too_little_memory(self.memory, self.path.endswith(PROGRAM_FILE))
                if not self.is_from_cache:
                    _ = self.addresses
            load = RUNNERS[level_named(at)]
            found = load(self.module_at(at), self.target, strict)
            if (at, strict) == (MACHINE, False) and self.run_file is not None:
                self.run_file.save(cast("Machine", found), self.module_at(at))
        self._runners[at, strict] = found
        self.stages.seconds["load"] = perf_counter() - start
        return found

    def step(
        self, inputs: Mapping[str, object], *, at: str = MACHINE, strict: bool = False
    ) -> dict[str, Array]:
        """Do one step of a training program, and return its loss, and its outputs if it has them.

        A program with several steps in a run does all of them; its inputs and results have a first
        axis of steps. Raises InputError for a program that was not compiled with `train`, and
        LossIsNotFinite.

        Args:
            inputs, at, strict: as for run.
        """
        self._listed(TRAINED)
        outputs = self.run(inputs, at=at, strict=strict)
        check_loss(outputs, self.path)
        return outputs

    @property
    def training(self) -> Settings:
        """What the host needs to know of the training. Raises InputError if it is none."""
        self._listed(TRAINED)
        return settings_of(self.module_at(MACHINE))

    def _listed(self, attribute: str) -> tuple[str, ...]:
        found = listed_names(self.module_at(MACHINE), attribute)
        if found is None:
            raise InputError(f"{self.path}: no training program; compile the model with train")
        return found

    @property
    def weights(self) -> dict[str, Array]:
        """The weights of a training program, by name, as the last step has left them."""
        states = self.states
        return {name: states[name] for name in self._listed(TRAINED)}

    @property
    def states(self) -> dict[str, Array]:
        """All that a step of training changes, by name: weights, and what optimisers keep.

        Of the level that was run last; their first values, if none was.
        """
        names = self._listed(UPDATED)
        last = None if self._last is None else self._runners.get(self._last)
        if last is None:
            found = initial_states(self.module_at(MACHINE))
        else:
            with self.turns:
                found = last.states
        # Nothing is left of a weight that nothing reads.
        return {name: found[name] for name in names if name in found}

    def set_states(self, values: Mapping[str, object], *, at: str = MACHINE) -> None:
        """Set what the next step at a level finds in some states, such as those of a checkpoint.

        Raises InputError for names, shapes and element types that the program does not have.
        """
        check_arguments("set_states", {"values": ARRAYS, "at": TEXT}, locals())
        first = initial_states(self.module_at(MACHINE))
        known = {name: first[name] for name in self._listed(UPDATED) if name in first}
        check_states(values, known, self.path)
        tensors = [Tensor(name, a.shape, a.dtype) for name, a in known.items() if name in values]
        arrays = checked(values, tensors)
        runner = self.runner(at)
        with self.turns:
            for name, array in arrays.items():
                runner.set_state(name, array)

    def check_memory(self) -> None:
        """Raise DoesNotFit if the program needs more memory than its target has."""
        problem = self.memory.problem()
        if problem is not None:
            raise problem

    @computed_once
    def addresses(self) -> AddressProof:
        """The proof that the program's addresses suit its lifetimes.

        Raises MachineFault as prove_addresses does.
        """
        return prove_addresses(self.module_at(MACHINE), self.target)

    @property
    def has_run(self) -> bool:
        """Whether anything may have changed a state since it had its first value."""
        return self._last is not None

    def reset(self) -> None:
        """Set all state back to its initial values."""
        with COMPILING:
            self._runners.clear()
            self._last = None
            self._plain_runs = 0

    @property
    def relaxed(self) -> tuple[Relaxed, ...]:
        """The operators for which no plan keeps the memory limit."""
        if self.is_from_cache and not self._reported.get("relaxed_limits"):
            return ()
        return read_relaxed(self.module_at(MACHINE))

    @property
    def profile(self) -> dict[str, Any]:
        """The size and cost of the program, and seconds by stage, including the last run's."""
        return (dict(self._reported) if self.is_from_cache else self._figures) | {
            "seconds": dict(self.stages.seconds),
            "seconds_by_pass": dict(self.stages.passes),
        }

    @computed_once
    def operation_prices(self) -> dict[Priced, OperationPrice]:
        """The cycles and bytes of every copy and compute set, in the order of the program."""
        return price_operations(self.module_at(MACHINE), self.target)

    @computed_once
    def memory(self) -> ProgramMemory:
        """The contents of every tile's memory over time.

        In a notebook, a frame of all tiles with a picture: `exe.memory["live_now"]`, `.plot()`.
        """
        found = memory_report(self.module_at(MACHINE), self.target)
        return ProgramMemory.of(found, lambda: self.report().memory)

    @property
    def timeline(self) -> Any:
        """Every execution of a superstep in order, as a frame with a picture.

        `exe.timeline["cycles"]` is a column of the pandas frame `.frame`; `.plot()` is the picture.
        Raises InputError as `report` does, and if pandas is not installed.
        """
        return self.report().timeline

    @computed_once
    def phases(self) -> Phases:
        """The phases of the operations of a training program; all forward in any other."""
        return Phases.of(self.module_at(MACHINE))

    @computed_once
    def _figures(self) -> dict[str, Any]:
        prices = price(self.module_at(MACHINE), self.target)
        costs = totals(prices)
        memory = self.memory
        return {
            "target": self.target.spelling(),
            "target_label": self.target.label(),
            "tiles": self.target.tiles,
            "chips": self.target.chips,
            "unpriced": self.target.unpriced,
            **(_numbers(self._reported, GRAPH) or self._graph()),
            **vars(costs),
            **self._host(),
            "phases": self._by_phase(prices),
            "tiles_used": memory.tiles_used,
            "max_tile_bytes": memory.max_tile_bytes,
            "fullest_tile": memory.fullest_tile,
            "relaxed_limits": [asdict(each) for each in self.relaxed],
            "ops": _numbers(self._reported.get("ops"), self.levels)
            or {level: _operations(self.module_at(level)) for level in self.levels},
        }

    def _host(self) -> dict[str, int]:
        """The bytes that a run takes from the host and gives to it, and the cycles of both."""
        taken, given = (
            sum(prod(each.shape) * each.dtype.itemsize for each in tensors)
            for tensors in (self.inputs, self.outputs)
        )
        return {
            "host_input_bytes": taken,
            "host_output_bytes": given,
            "host_cycles": host_cycles(taken + given, self.target),
        }

    @computed_once
    def _counts(self) -> Counts:
        return counts(self.module_at(MACHINE))

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

    def report(self) -> Any:
        """The report of the program: a notebook shows its page, and each table is a frame.

        `exe.report().operations` is a table, `.memory` has the memory of every tile, `.timeline`
        every execution of a superstep, and `.save(DIR)` writes what `abele report` does.
        Raises InputError for a program that does not reach the machine.
        """
        return self._report

    @computed_once
    def _report(self) -> Any:
        # A room above this one draws it, and most programs are never drawn.
        view = import_module("...views.report.notebook", __name__)
        return view.notebook_report(self if self.anew is None else self.anew())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program with all its levels to an .abele file.

        Equal programs make equal files: seconds of compiling are left out. Raises InputError.
        """
        check_arguments("save", {"path": PATH}, locals())
        try:
            self.write(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """As save. Raises OSError if the system refuses, and InputError."""
        kept, file = self._kept, self.run_file
        # A seed changes the program.
        if kept is not None and file is not None and self._seed is None:
            if program_file.copied(kept, path, file.digest):
                return
        with COMPILING:
            others = {level: self.module_at(level) for level in self.levels if level != MACHINE}
            profile = self._reported if self.is_from_cache else self._figures
            program_file.save(
                path, self.module_at(MACHINE), self.target, levels=others, profile=profile
            )


def load_executable(
    path: str | os.PathLike[str],
    target: str | Target | None = None,
    context: Callable[[], AbeleContext] = new_context,
) -> Executable:
    """The program of an .abele file. Each module is parsed on first use.

    Raises InputError, DoesNotFit, and MachineFault as prove_addresses does.

    Args:
        target: must equal the program's own, if given.
        context: returns a context with the program's dialects.
    """
    path = os.fspath(path)
    collect_if_grown()
    start = perf_counter()
    program = program_file.load(path)
    count_held(OPEN_FILE_BYTES)
    check_target(program.target, target, path)
    loaders = {level: partial(_parsed, program, level, context) for level in program.texts}
    exe = Executable(program.target, loaders, path, reported=program.profile)
    with COMPILING, collection_paused():
        exe.check_memory()
        _ = exe.addresses
    exe.stages.add("read", perf_counter() - start)
    return exe


def _parsed(
    program: program_file.ProgramFile, level: str, context: Callable[[], AbeleContext]
) -> ModuleOp:
    """The module at a level of a program file, verified. Raises InputError."""
    module = program.module_at(level, context())
    found = verified_level(module, f"{program.path}:{level}.mlir")
    if found.name != level:
        raise InputError(f"{program.path}: {level}.mlir is of level {found}")
    return module


def _numbers(reported: object, names: Sequence[str]) -> dict[str, int] | None:
    """The reported numbers with these names; None unless all of them are there."""
    if not isinstance(reported, Mapping):
        return None
    found = {name: cast(Mapping[str, object], reported).get(name) for name in names}
    numbers = {name: n for name, n in found.items() if type(n) is int and n >= 0}
    return numbers if len(numbers) == len(names) else None


def _operations(module: ModuleOp) -> int:
    return sum(1 for _ in module.walk())
