"""Several programs of one model on one machine: each run picks one, and weights are shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backends.codelets.conversion import converted, float_limits
from ...backends.residents import Footprint, Resident, Switch, Tiles, footprint, switches
from ...dialects.block_inputs import block_states
from ...dialects.exchange import VariableOp
from ...dialects.settable import listed_names
from ...dialects.steps import Remote, first_values
from ...ir.blob import Blob
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.number_formats import Overflow, limited
from ...ir.support.number_kinds import is_floating
from ...ir.support.turns import Turns
from ...ir.well_known import TRAINED, UPDATED
from ...passes.round_stores import rule_of
from .argument_kinds import NONE, SIZES, Kind, by_name, check_arguments
from .arrays import as_array, listed
from .compile import compile_model
from .executable import MACHINE, Executable
from .not_copied import NotCopied
from .request import RUNS
from .run_lengths import LengthBoundsError

if TYPE_CHECKING:
    from ...backends.target import Target
    from ...dialects.host import KeptSize
    from ..importers.front_ends import Model


KINDS: Mapping[str, Kind] = {
    "programs": Kind(
        by_name(lambda value: isinstance(value, Executable)),
        "executables by name; Session.compiled takes the options of compile_model",
    ),
    "alone": SIZES | NONE,
}
"""The kinds of Session's arguments, by parameter."""


class Session(NotCopied):
    """Programs of one model that take turns on one machine.

    Changing from one program to another moves the code of the new one, and what is not on the tiles
    yet, over the link of the host (`host.bytes_per_cycle` of the target). `history` has each
    change, `cycles` counts all runs with their changes, and `costs()` is a table of what changes
    cost. `Session.compiled` compiles the programs so that weights stay on the tiles.

    Any number of threads may use a session. Its runs take turns, with the changes of programs, so
    each finds the states that the run before it has left. A session is neither copied nor pickled.

    Raises InputError for programs that do not belong together.

    Attributes:
        programs: by name, all for the same target, such as one for each batch size, or one that
            trains and one that is used afterwards. They share states of equal names: what one has
            trained, the others compute with. So equal names must have equal shapes, element types
            and first values. A program may have trained before it joins a session: the others then
            start with its weights. States that keep values with bounds, such as the cache of a
            decoder, may have different largest shapes. They move from program to program as far as
            their elements exist, and are empty when a session begins. A state that only programs
            see may be float32 in one and narrower in another, where precisions differ: it is cast
            when it moves.
        alone: the cycles of a run of programs that were compiled without regard to the others, as
            far as they are known, for reports.
    """

    def __init__(
        self, programs: Mapping[str, Executable], alone: Mapping[str, int] | None = None
    ) -> None:
        check_arguments("Session", KINDS, locals())
        self._turns = Turns()
        self.programs = dict(programs)
        self.alone = dict(alone or {})
        if not self.programs:
            raise InputError("session: no program; need at least one")
        self.target = next(iter(self.programs.values())).target
        for name, exe in self.programs.items():
            if exe.target != self.target:
                raise InputError(
                    f"session: {name} is for {exe.target.spelling()}; need {self.target.spelling()}"
                    ", like the others"
                )
            exe.check_memory()
        self._shapes = {name: _shapes(exe) for name, exe in self.programs.items()}
        self._types = {name: _types(exe) for name, exe in self.programs.items()}
        self._rules = {name: rule_of(exe.module_at(MACHINE)) for name, exe in self.programs.items()}
        kept = [each for exe in self.programs.values() for each in exe.signature.kept_sizes]
        self._held = {each.held for each in kept}
        self._kept = {each.state for each in kept} | self._held
        self._footprints = {
            name: footprint(exe.module_at(MACHINE), exe.target)
            for name, exe in self.programs.items()
        }
        # Places of blocks change only by the host, together with values that runs change.
        self._written = {
            name: _written(found) | _places(self.programs[name])
            for name, found in self._footprints.items()
        }
        self._states = _shared_states(self.programs, kept, self._unseen())
        _check_training(self.programs)
        _share_values(self.programs)
        self._tiles = Tiles(self.target, self._footprints)
        # By program and whether its machine is strict: that one has states of its own.
        self._stale: dict[tuple[str, bool], set[str]] = {
            (name, strict): self._kept & shapes.keys()
            for name, shapes in self._shapes.items()
            for strict in (False, True)
        }
        self._last: tuple[str, bool] | None = None
        self._begin()
        self.history: list[Switch] = []
        self.cycles = 0

    @classmethod
    def compiled(
        cls,
        model: Model | None,
        programs: Mapping[str, Mapping[str, Any]],
        target: str | Target | None = None,
        *,
        runs: float = RUNS,
        compare: bool = False,
        **options: Any,
    ) -> Session:
        """The session of programs of a model, each compiled beside those before it.

        Raises InputError and DoesNotFit as compile_model does.

        Args:
            model: None if each program has its own.
            programs: by name, the options of compile_model in which each program differs, such as
                {"one": {"batch": 1}, "four": {"batch": 4}}, and "model" if it has one of its own.
                The first program gets the plans that it would get alone. Each further one leaves
                weights in the layouts and at the addresses that they have in the programs before
                it, where that pays.
            options: the options that all programs have in common.
            runs: the runs between two changes that are expected. A weight stays if the runs between
                two changes lose fewer cycles by its layout than loading it takes; with inf, only
                what costs nothing stays.
            compare: compile each further program alone too, for reports.
        """
        made: dict[str, Executable] = {}
        alone: dict[str, int] = {}
        for name, own in programs.items():
            every: dict[str, Any] = {"model": model, "target": target, **options, **own}
            if every["model"] is None:
                raise InputError(f"session: no model for {name!r}; give one for all, or its own")
            if compare and made:
                alone[name] = compile_model(**every).profile["cycles"]
            made[name] = compile_model(**every, beside=tuple(made.values()), runs=runs)
            if len(made) == 1:
                alone[name] = made[name].profile["cycles"]
        return cls(made, alone)

    def __repr__(self) -> str:
        """The programs, and the one that the tiles hold."""
        on = f", {self.current} on the tiles" if self.current else ""
        return f"<Session of {', '.join(self.programs)} for {self.target.spelling()}{on}>"

    @property
    def current(self) -> str:
        """The name of the program that the tiles hold; "" before the first run."""
        return self._tiles.current

    def pick(self, inputs: Mapping[str, object]) -> str:
        """The name of the program that takes inputs of these names and shapes.

        Of several programs whose sizes have bounds, it is the smallest one that has room, also for
        what programs keep on the device.

        Raises InputError if there is none, or if there are several.
        """
        given = {name: as_array(value, repr(name)).shape for name, value in inputs.items()}
        found = [name for name, exe in self.programs.items() if exe.signature.takes(given)]
        # Programs for several bounds take the same inputs. The smallest one has least to do.
        found.sort(key=self._room)
        held, problem = self._held_now(), None
        for name in found:
            try:
                self.programs[name].signature.check_lengths(inputs, held)
            except InputError as error:
                # Of all problems, bounds say least: another program has others.
                if problem is None or isinstance(problem, LengthBoundsError):
                    problem = error
                continue
            alike = [other for other in found if self._room(other) == self._room(name)]
            if len(alike) == 1:
                return name
            raise InputError(f"session: {', '.join(alike)} all take these inputs; name one of them")
        if problem is not None:
            raise InputError(f"session: no program takes these lengths: {problem}")
        shapes = ", ".join(f"{name!r} {list(shape)}" for name, shape in given.items()) or "none"
        known = "; ".join(f"{name}: {listed(exe.inputs)}" for name, exe in self.programs.items())
        raise InputError(f"session: no program takes inputs {shapes}; there are {known}")

    def _room(self, name: str) -> int:
        """The elements of a program's inputs in their largest shapes, and of what it keeps."""
        exe, shapes = self.programs[name], self._shapes[name]
        kept = sum(prod(shapes[state]) for state in {e.state for e in exe.signature.kept_sizes})
        return sum(prod(each.shape) for each in exe.inputs) + kept

    def _held_now(self) -> dict[str, int]:
        """How many elements of kept values exist, by the state that holds the number."""
        with self._turns:
            found = {name: int(self._states[name]) for name in self._held}
            if self._last is not None:
                name, strict = self._last
                found |= self.programs[name].held(strict=strict)
        return found

    def run(
        self, inputs: Mapping[str, object], program: str = "", *, strict: bool = False
    ) -> dict[str, Array]:
        """Run a program once, and return its outputs by name.

        Raises InputError as pick and Executable.run do.

        Args:
            program: its name; "" for the one that takes inputs of these shapes.
            strict: the same as for Executable.run.
        """
        name = program or self.pick(inputs)
        if name not in self.programs:
            raise InputError(f"session: no program {name!r}; there are {', '.join(self.programs)}")
        exe, here = self.programs[name], (name, strict)
        # Both may wait for a thread that compiles. Runs of other programs need not wait with them.
        runner, profile = exe.runners.at(strict=strict), exe.profile
        with self._turns:
            if self._kept and name != (program or self.pick(inputs)):
                # Meanwhile, another thread's run has changed what is kept.
                return self.run(inputs, strict=strict)
            if self._last is not None and self._last != here:
                self._hand_on(self._last[0], self._left(*self._last))
            with exe.runners.turns:
                for state in sorted(self._stale[here]):
                    shape, dtype = self._shapes[name][state], self._types[name][state]
                    value = fitted(self._states[state], shape)
                    runner.set_state(state, _cast(value, dtype, self._rules[name]))
                self._stale[here].clear()
                outputs = exe.run(inputs, strict=strict)
            self._last = here
            done = self._tiles.switch(name)
            if done.before != done.after:
                self.history.append(done)
            self._tiles.ran()
            self.cycles += done.cycles + profile["cycles"] + profile["host_cycles"]
        return outputs

    def _unseen(self) -> set[str]:
        """The states that programs write, and that the host neither reads nor sets."""
        seen = {
            name
            for exe in self.programs.values()
            for name in listed_names(exe.module_at(MACHINE), UPDATED) or ()
        }
        return {name for written in self._written.values() for name in written} - seen

    def _begin(self) -> None:
        """Hand on what programs have trained before.

        Raises InputError if two of them have reached different values of one state.
        """
        reached: dict[str, tuple[str, bytes]] = {}
        for name, exe in self.programs.items():
            if exe.runners.last is None or not listed_names(exe.module_at(MACHINE), UPDATED):
                continue
            states = exe.runners.states()
            for state in sorted(self._written[name] & states.keys()):
                value = states[state].tobytes()
                other, known = reached.setdefault(state, (name, value))
                if known != value:
                    raise InputError(
                        f"session: {other} and {name} have both trained state {state!r}, to "
                        "different values; call reset() of the program whose training is not needed"
                    )
            self._hand_on(name, states)

    def _left(self, name: str, strict: bool) -> dict[str, Array]:
        """The values that the runs of a program left in the states that it writes."""
        runners = self.programs[name].runners
        with runners.turns:
            runner = runners.at(strict=strict)
            return {state: runner.state(state) for state in self._written[name]}

    def _hand_on(self, name: str, states: Mapping[str, Array]) -> None:
        """Keep the states that a program writes, for all programs that have them."""
        written = self._written[name] & states.keys()
        self._states.update({state: states[state] for state in written})
        for (other, _), stale in self._stale.items():
            stale |= written & self._shapes[other].keys()

    def costs(self) -> tuple[Switch, ...]:
        """The cost of each change between two programs, if only the first one ran, and once."""
        return switches(self.target, self._footprints)

    def summary(self) -> str:
        """Two tables as text: what a run of each program costs, and what each change moves."""
        changes = [CHANGE_COLUMNS, *self.change_rows()]
        return "\n\n".join(map(_aligned, ([PROGRAM_COLUMNS, *self.program_rows()], changes)))

    def program_rows(self) -> list[tuple[str, ...]]:
        """A row of text for each program, under PROGRAM_COLUMNS.

        `alone` is the cycles of a run of the program that is compiled without regard to the others;
        `?` if nobody knows them.
        """
        found: list[tuple[str, ...]] = []
        for name, exe in self.programs.items():
            cycles, alone = exe.profile["cycles"], self.alone.get(name)
            known = ("?", "?")
            if alone is not None:
                known = f"{alone:,}", f"{(cycles / alone - 1) * 100:+.1f} %"
            held = self._footprints[name]
            size = megabytes(held.resident_bytes)
            found.append((name, f"{cycles:,}", *known, f"{len(held.residents)}", size))
        return found

    def change_rows(self) -> list[tuple[str, ...]]:
        """A row of text for each change between two programs, under CHANGE_COLUMNS.

        `runs` are those of the program that comes which take as long as the change.
        """
        found: list[tuple[str, ...]] = []
        for each in self.costs():
            sizes = (each.stay_bytes, each.in_bytes, each.out_bytes, each.code_bytes)
            found.append(
                (
                    f"{each.before} -> {each.after}",
                    f"{each.stay}",
                    f"{each.moved}",
                    *map(megabytes, sizes),
                    f"{each.cycles:,}",
                    f"{each.cycles / self.target.clock_hz * 1e3:.3f}",
                    f"{each.cycles / self.programs[each.after].profile['cycles']:.1f}",
                )
            )
        return found

    def weights(self) -> str:
        """A table as text: whether each state and constant stays on the tiles, the largest first.

        Each program says how it holds the value, compared with the first program that has it: it
        `stays`, or lies at another `address` or in another `layout`, or `-` if it does not have it.
        """
        return _aligned([("weight", "bytes", *self.programs), *self.weight_rows()])

    def weight_rows(self) -> list[tuple[str, ...]]:
        """The rows of weights()."""
        held: dict[tuple[str, int], dict[str, Resident]] = {}
        for name, found in self._footprints.items():
            # A program may hold a constant several times.
            count: dict[str, int] = {}
            for each in found.residents:
                number = count[each.value] = count.get(each.value, 0) + 1
                held.setdefault((each.value, number), {})[name] = each
        rows: list[tuple[int, tuple[str, ...]]] = []
        for by_program in held.values():
            first, *_ = by_program.values()
            said = (_compared(first, by_program.get(name)) for name in self.programs)
            rows.append((first.bytes, (first.name, f"{first.bytes:,}", *said)))
        return [row for _, row in sorted(rows, key=lambda row: -row[0])]

    def frame(self) -> Any:
        """The costs as a pandas frame, with seconds by the target's clock."""
        from pandas import DataFrame  # noqa: PLC0415  an optional library

        rows = [
            asdict(each) | {"seconds": each.cycles / self.target.clock_hz} for each in self.costs()
        ]
        return DataFrame(rows)


PROGRAM_COLUMNS = ("program", "cycles", "alone", "more", "weights", "MB")
"""The columns of program_rows."""

CHANGE_COLUMNS = (
    *("change", "stay", "moved", "stay MB", "in MB", "out MB", "code MB"),
    *("cycles", "ms", "runs"),
)
"""The columns of change_rows."""


def megabytes(size: int) -> str:
    """A number of bytes in MB, as text; to the nearest kB if it is less than one MB."""
    return f"{size / 1e6:.{1 if size >= 1e6 or not size else 3}f}"


def _compared(first: Resident, other: Resident | None) -> str:
    """How a program holds a value, compared with the first program that has it."""
    if other is None:
        return "-"
    if other is first:
        return "first"
    if other.place == first.place:
        return "stays"
    return "address" if other.place.layout == first.place.layout else "layout"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text as a table; the first column stands at the left, the others at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _written(found: Footprint) -> set[str]:
    """The states that a run of a program may change."""
    return {each.value for each in found.residents if each.is_state and each.is_written}


def _places(exe: Executable) -> set[str]:
    """The states of a program that hold rows and columns of blocks."""
    blocks = block_states(exe.module_at(MACHINE))
    return {name for each in blocks for names in each.tier_names for name in names[1:]}


def _shapes(exe: Executable) -> dict[str, tuple[int, ...]]:
    """The shape of each state of a program."""
    return {name: first.shape for name, first in first_values(exe.module_at(MACHINE)).items()}


def _types(exe: Executable) -> dict[str, np.dtype[Any]]:
    """The element type of each state of a program."""
    return {name: blob.array.dtype for name, blob in _first_values(exe).items()}


def _cast(array: Array, dtype: np.dtype[Any], rule: Overflow) -> Array:
    """An array in another type, as a program casts it.

    Args:
        rule: how the target casts numbers that are too large for a narrower type.
    """
    made = converted(array, dtype)
    if made.itemsize >= array.itemsize or rule is Overflow.INFINITY:
        return made
    wide = converted(made, np.dtype(np.float64))
    return converted(limited(wide, float_limits(dtype).largest, rule), dtype)


def fitted(array: Array, shape: tuple[int, ...]) -> Array:
    """An array in another shape of as many axes: its first elements, followed by zeros."""
    if array.shape == shape:
        return array
    found = np.zeros(shape, array.dtype)
    both = tuple(slice(min(n, m)) for n, m in zip(array.shape, shape, strict=True))
    found[both] = array[both]
    return found


def _first_values(exe: Executable) -> dict[str, Blob]:
    """The first value of each state of a program."""
    return {name: first.blob for name, first in first_values(exe.module_at(MACHINE)).items()}


def _shared_states(
    programs: Mapping[str, Executable], kept: Sequence[KeptSize], unseen: set[str]
) -> dict[str, Array]:
    """The first values of all states. Raises InputError if two programs differ in one.

    A kept value may differ in its size along axes with padding, and in how many elements exist at
    first: then there are as few as in any program.

    Args:
        unseen: states that may be floats of several types: a program may keep one in 16 bits.
    """
    held = {each.held for each in kept}
    padded: dict[str, set[int]] = {}
    for each in kept:
        padded.setdefault(each.state, set()).add(each.axis)
    found: dict[str, tuple[str, Blob]] = {}
    for name, exe in programs.items():
        for state, value in _first_values(exe).items():
            other, known = found.setdefault(state, (name, value))
            if state in held and value.array < known.array:
                found[state] = name, value
            elif state not in held and not _alike(
                *(_narrow(known, value) if state in unseen else (known, value)),
                padded.get(state, set()),
            ):
                raise InputError(
                    f"session: state {state!r} differs between {other} and {name}; need programs "
                    "of one model"
                )
    return {state: value.array for state, (_, value) in found.items()}


def _alike(value: Blob, other: Blob, padded: set[int]) -> bool:
    """Whether two first values are equal, or empty and equal but for their sizes along axes."""
    if value == other or not padded:
        return value == other
    shapes = value.array.shape, other.array.shape
    return value.array.dtype == other.array.dtype and all(
        n == m or axis in padded for axis, (n, m) in enumerate(zip(*shapes, strict=True))
    )


def _narrow(value: Blob, other: Blob) -> tuple[Blob, Blob]:
    """Two arrays of floats in the narrower one of their types; other arrays as they are."""
    dtypes = value.array.dtype, other.array.dtype
    if dtypes[0] == dtypes[1] or not all(map(is_floating, dtypes)):
        return value, other
    narrower = min(dtypes, key=lambda dtype: dtype.itemsize)
    return Blob(value.array.astype(narrower)), Blob(other.array.astype(narrower))


def _share_values(programs: Mapping[str, Executable]) -> None:
    """Let memory hold equal constants and first values of programs once."""
    found: dict[Blob, Blob] = {}
    for exe in programs.values():
        for v in exe.module_at(MACHINE).body.block.ops:
            if isinstance(v, VariableOp | Remote) and v.initial is not None:
                blob = v.initial.data
                first = found.setdefault(blob, blob)
                if first is not blob:
                    blob.share(first)


def _check_training(programs: Mapping[str, Executable]) -> None:
    """Raise InputError if one program trains weights that another one has as constants."""
    for name, exe in programs.items():
        module = exe.module_at(MACHINE)
        if not listed_names(module, UPDATED):
            continue
        trained = set(listed_names(module, TRAINED) or ())
        for other, its in programs.items():
            missing = sorted(trained - _shapes(its).keys())
            if missing:
                raise InputError(
                    f"session: {name} trains {missing[0]!r}, which {other} does not have as a "
                    "state; compile it with train=Training(update=False)"
                )
