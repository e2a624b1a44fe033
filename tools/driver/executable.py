"""A compiled program: runs at every level, and knows its cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...backends import executable as program_file
from ...backends.target import Target
from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.turns import COMPILING, computed_once
from ...ir.well_known import MOST_SEED
from .analyses import Analyses
from .argument_kinds import ARRAYS, COUNT, PATH, TEXT, check_arguments
from .arrays import Array, Tensor, UnknownInputError, checked, listed
from .modules import MACHINE, Loader, Modules
from .not_copied import NotCopied
from .report_view import FRAMES, VIEWS, ReportView
from .runners import Runners
from .signature import Signature
from .stages import Stages

if TYPE_CHECKING:
    from ...backends.addresses.prove import AddressProof
    from ...backends.prices.price import ProgramPrice
    from ...backends.prices.price_operations import OperationPrice, Priced
    from ...ir.phases import Phases
    from ...ir.upstream import ModuleOp
    from ...passes.planner.relaxed import Relaxed
    from .recomputation.record import Recomputed
    from .training import Settings

with deferred(__name__):
    from ...dialects.host import optional_inputs
    from .figures import html_table, rows
    from .program_memory import ProgramMemory
    from .trained_states import TrainedStates
    from .training import check_loss


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
        target: the machine.
        path: the name of the program in messages.
        anew: compiles the program again, if it was not compiled here; reports need what only
            compiling knows.
        stages: the seconds of compiling and running.
        runners: the loaded programs.
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
        """Load nothing yet.

        Args:
            modules: a function per level that returns its module, called once; the machine runs the
                last.
            reported: the profile from when it was compiled; the sizes in it are not computed again.
            kept: the file that holds the same program.
        """
        self.target = target
        self.path = path
        self.anew = anew
        self.stages = stages or Stages()
        self._kept = kept
        self._modules = Modules(modules, path)
        self._analyses = Analyses(self._modules, target, reported, is_known=anew is not None)
        self.runners = Runners(self._modules, target, self._analyses, self.stages)
        self._signature: Signature | None = None

    def __repr__(self) -> str:
        """The program, its target and its levels; nothing is loaded or priced for it."""
        return f"<Executable {self.path} for {self.target.spelling()}: {', '.join(self.levels)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the inputs, the outputs, and the figures of `abele run`."""
        signature = [("inputs", self.inputs), ("outputs", self.outputs)]
        shown = [(name, listed(tensors)) for name, tensors in signature]
        return html_table(f"{self.path} for {self.target.spelling()}", shown + rows(self.profile))

    # The program

    @property
    def is_from_cache(self) -> bool:
        """Whether the program was kept by the cache, with its figures, and proved before that."""
        return self.anew is not None

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the program, from its own down."""
        return self._modules.levels

    def module_at(self, level: str) -> ModuleOp:
        """The module at a level. Raises InputError if the program has no such level."""
        return self._modules.at(level)

    def check_level(self, level: str) -> None:
        """Raise InputError if the program has no such level, or if its module is damaged.

        A program from the cache is not looked at: a damaged one would be compiled again.
        """
        if level not in self.levels or not self.is_from_cache:
            _ = self.module_at(level)

    @property
    def signature(self) -> Signature:
        """The inputs and outputs of the program."""
        found = self._signature
        if found is None:
            file = self.runners.file
            if file is not None and file.exists:
                found = file.signature
            else:
                found = self._modules.signature
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

    # Running

    def run(
        self, inputs: Mapping[str, object], *, at: str = MACHINE, strict: bool = False
    ) -> dict[str, Array]:
        """Run the program once, and return its outputs by name.

        Inputs and outputs that hold strings are arrays of str; the program computes with integers
        that stand for them. An output whose size depends on values is returned without its padding.
        An input whose size each run chooses may have fewer elements than its shape; the lengths of
        such inputs follow from their shapes, if they are not given. The length of a value that is
        kept on the device follows from what the last run has left of it.

        Raises InputError for inputs with wrong names, shapes or dtypes, and if this host has too
        little memory for all tiles. Raises MachineFault as prove_addresses does.

        Args:
            at: the level to run; exchange runs on the machine.
            strict: the machine poisons memory and checks every access, which is slower.
        """
        check_arguments("run", {"inputs": ARRAYS, "at": TEXT}, locals())
        if strict and at != MACHINE:
            raise InputError(f"strict at {at}: the machine runs {MACHINE} only")
        if not self.signature.kept_sizes:
            return self._told(self.runners.run(self._checked(inputs), at, strict))
        # Waits for a thread that compiles, before the turn.
        _ = self.runners.at(at, strict)
        with self.runners.turns:
            held = self.held(at, strict)
            return self._told(self.runners.run(self._checked(inputs, held), at, strict))

    def _told(self, results: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs as the host sees them, from all results of a run."""
        return self.signature.told(self.signature.trimmed(results))

    def held(self, at: str = MACHINE, strict: bool = False) -> dict[str, int]:
        """How many elements of kept values exist, by the state that holds the number."""
        names = self.signature.first_held
        if not names:
            return {}
        runner = self.runners.at(at, strict)
        with self.runners.turns:
            return {name: int(runner.state(name)) for name in names}

    def _checked(
        self, inputs: Mapping[str, object], held: Mapping[str, int] | None = None
    ) -> dict[str, Array]:
        """Inputs as arrays, as the program takes them.

        Raises InputError for wrong names, shapes or dtypes, for blocks that do not fit into
        buckets, and for an input whose value in the model the program was compiled with.
        """
        try:
            given = checked(self.signature.padded(inputs, held), self.inputs)
            return self.signature.encoded(given)
        except UnknownInputError:
            self.refuse_optional(inputs.keys() - {each.name for each in self.inputs})
            raise

    def refuse_optional(self, names: Iterable[str]) -> None:
        """Raise InputError if names hold an input that has a value in the model.

        The program was compiled with the model's value, so a run cannot replace it.

        Args:
            names: names that no input of the program has.
        """
        unknown = sorted(names)
        if not unknown:
            return
        with COMPILING:
            optional = optional_inputs(self._modules.machine)
        name = next((each for each in unknown if each in optional), None)
        if name is not None:
            raise InputError(
                f"{self.path}: input {name!r} has a value in the model, with which the program was "
                f"compiled; to give another, compile the model with --value {name}=..., in Python "
                f"compile_model(..., values={{{name!r}: ...}})"
            )

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
            self._modules.set_seed(seed)
            self.runners.reset()

    def reset(self) -> None:
        """Set all state back to its initial values."""
        with COMPILING:
            self.runners.reset()

    # Training

    @property
    def _trained(self) -> TrainedStates:
        return TrainedStates(self._modules, self.runners)

    def step(
        self, inputs: Mapping[str, object], *, at: str = MACHINE, strict: bool = False
    ) -> dict[str, Array]:
        """Do one step of a training program, and return its loss, and its outputs if it has them.

        A program with several steps in a run does all of them; its inputs and results have a first
        axis of steps. Raises InputError for a program that was not compiled with `train`, and
        LossIsNotFinite.

        Args:
            inputs, at, strict: the same as for run.
        """
        self._trained.check()
        outputs = self.run(inputs, at=at, strict=strict)
        check_loss(outputs, self.path)
        return outputs

    @property
    def training(self) -> Settings:
        """What the host needs to know of the training. Raises InputError if it is none."""
        return self._trained.settings

    @property
    def weights(self) -> dict[str, Array]:
        """The weights of a training program, by name, as the last step has left them."""
        return self._trained.weights

    @property
    def states(self) -> dict[str, Array]:
        """All that a step of training changes, by name: weights, and what optimisers keep.

        A program compiled with `keep` that changes weights has these too.

        Of the level that was run last; their first values, if none was.
        """
        return self._trained.values

    def set_states(self, values: Mapping[str, object], *, at: str = MACHINE) -> None:
        """Set what the next step at a level finds in some states, such as those of a checkpoint.

        Raises InputError for names, shapes and element types that the program does not have.
        """
        check_arguments("set_states", {"values": ARRAYS, "at": TEXT}, locals())
        self._trained.set(values, at)

    # Analyses

    @property
    def profile(self) -> dict[str, Any]:
        """The size and cost of the program, and seconds by stage, including the last run's."""
        return dict(self._analyses.figures) | {
            "seconds": dict(self.stages.seconds),
            "seconds_by_pass": dict(self.stages.passes),
        }

    @property
    def operation_prices(self) -> dict[Priced, OperationPrice]:
        """The cycles and bytes of every copy and compute set, in the order of the program."""
        return self._analyses.operation_prices

    @property
    def price(self) -> ProgramPrice:
        """The price of every superstep, and what each chip does."""
        return self._analyses.price

    @property
    def relaxed(self) -> tuple[Relaxed, ...]:
        """The operators for which no plan keeps the memory limit."""
        return self._analyses.relaxed

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for the user about the model, such as which of its weights were converted."""
        return self._analyses.notes

    def note(self, line: str) -> None:
        """Record a line for the user on the program, behind those that it has."""
        self._analyses.note(line)
        # The cache's file has no such line.
        self._kept = None

    @property
    def recomputed(self) -> tuple[Recomputed, ...]:
        """What the compiler chose to compute again instead of keeping it, with its effects."""
        return self._analyses.recomputed

    @property
    def phases(self) -> Phases:
        """The phases of the operations of a training program; all forward in any other."""
        return self._analyses.phases

    @computed_once
    def memory(self) -> ProgramMemory:
        """The contents of every tile's memory over time.

        In a notebook, a frame of all tiles with a picture: `exe.memory["live_now"]`, `.plot()`.
        """
        return ProgramMemory.of(self._analyses.memory, lambda: self.report().memory)

    def check_memory(self) -> None:
        """Raise DoesNotFit if the program needs more memory than its target has."""
        problem = self.memory.problem()
        if problem is not None:
            raise problem

    @property
    def addresses(self) -> AddressProof:
        """The proof that the program's addresses suit its lifetimes.

        Raises MachineFault as prove_addresses does.
        """
        return self._analyses.addresses

    # Reports and files

    def report(self) -> ReportView:
        """The report of the program: a notebook shows its page, and each table is a frame.

        `exe.report().operations` is a table, `.memory` has the memory of every tile, `.timeline`
        every execution of a superstep, and `.save(DIR)` writes what `abele report` does.
        Raises InputError for a program that does not reach the machine.
        """
        return self._report

    @computed_once
    def _report(self) -> ReportView:
        return VIEWS["report"](self if self.anew is None else self.anew())

    @property
    def timeline(self) -> Any:
        """Every execution of a superstep in order, as a frame with a picture.

        `exe.timeline["cycles"]` is a column of the pandas frame `.frame`; `.plot()` is the picture.
        Raises InputError as `report` does, and if pandas is not installed.
        """
        return self.report().timeline

    def health(self, inputs: Mapping[str, object]) -> Any:
        """How close the results of the next run come to the limits of their types.

        It is a pandas frame with a row for each operation and type of results: the largest
        magnitude, the shares of zeros, of subnormal numbers and of numbers near the limit, and how
        many are clipped, infinite or NaN. A second machine does the run, so the states of the
        program stay as they are. It takes as much memory of the host as the first one.

        Raises InputError as `run` does, and if pandas is not installed.
        """
        check_arguments("health", {"inputs": ARRAYS}, locals())
        return FRAMES["health"](self, self._checked(inputs, self.held()))

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
        """Write the same file as save. Raises OSError if the system refuses, and InputError."""
        kept, file = self._kept, self.runners.file
        # A seed changes the program.
        if kept is not None and file is not None and self._modules.seed is None:
            if program_file.copied(kept, path, file.digest):
                return
        with COMPILING:
            others = {level: self.module_at(level) for level in self.levels if level != MACHINE}
            program_file.save(
                path,
                self._modules.machine,
                self.target,
                levels=others,
                profile=self._analyses.figures,
            )
