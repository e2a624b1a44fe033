"""Several programs of one model on one machine: each run picks one, and weights are shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...backends.residents import Footprint, Switch, Tiles, footprint, switches
from ...dialects.exchange import VariableOp
from ...dialects.settable import UPDATED, listed_names
from ...ir.blob import Blob
from ...ir.errors import InputError
from ...passes.train import TRAINED
from .arrays import listed
from .executable import MACHINE, Executable

Array = NDArray[Any]


class Session:
    """Programs of one model that take turns on one machine.

    programs: by name, all for the same target, such as one for each batch size, or one that trains
    and one that is used afterwards. They share states of equal names: what one has trained, the
    others compute with. So equal names must have equal shapes, element types and first values. A
    program may have trained before it joins a session: the others then start with its weights.

    Changing from one program to another moves the code of the new one, and what is not on the tiles
    yet, over the link of the host (`host.bytes_per_cycle` of the target). `history` has each
    change, `cycles` counts all runs with their changes, and `costs()` is a table of what changes
    cost.
    Raises InputError for programs that do not belong together.
    """

    def __init__(self, programs: Mapping[str, Executable]) -> None:
        self.programs = dict(programs)
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
        self._states = _shared_states(self.programs)
        _check_training(self.programs)
        self._footprints = {
            name: footprint(exe.module_at(MACHINE), exe.target)
            for name, exe in self.programs.items()
        }
        self._tiles = Tiles(self.target, self._footprints)
        self._written = {name: _written(found) for name, found in self._footprints.items()}
        self._named = {name: _names(exe) for name, exe in self.programs.items()}
        # By program and whether its machine is strict: that one has states of its own.
        self._stale: dict[tuple[str, bool], set[str]] = {
            (name, strict): set() for name in self.programs for strict in (False, True)
        }
        self._last: tuple[str, bool] | None = None
        self._begin()
        self.history: list[Switch] = []
        self.cycles = 0

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

        Raises InputError if there is none, or if there are several.
        """
        given = {name: np.asarray(value).shape for name, value in inputs.items()}
        found = [
            name
            for name, exe in self.programs.items()
            if {each.name: each.shape for each in exe.inputs} == given
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(f"session: {', '.join(found)} all take these inputs; name one of them")
        shapes = ", ".join(f"{name!r} {list(shape)}" for name, shape in given.items()) or "none"
        known = "; ".join(f"{name}: {listed(exe.inputs)}" for name, exe in self.programs.items())
        raise InputError(f"session: no program takes inputs {shapes}; there are {known}")

    def run(
        self, inputs: Mapping[str, object], program: str = "", *, strict: bool = False
    ) -> dict[str, Array]:
        """Run a program once, and return its outputs by name.

        program: its name; "" for the one that takes inputs of these shapes. strict: as for
        Executable.run. Raises InputError as pick and Executable.run do.
        """
        name = program or self.pick(inputs)
        if name not in self.programs:
            raise InputError(f"session: no program {name!r}; there are {', '.join(self.programs)}")
        exe, here = self.programs[name], (name, strict)
        if self._last is not None and self._last != here:
            last, was_strict = self._last
            self._hand_on(last, self.programs[last].runner(strict=was_strict).states)
        runner = exe.runner(strict=strict)
        for state in sorted(self._stale[here]):
            runner.set_state(state, self._states[state])
        self._stale[here].clear()
        outputs = exe.run(inputs, strict=strict)
        self._last = here
        done = self._tiles.switch(name)
        if done.before != done.after:
            self.history.append(done)
        self._tiles.ran()
        self.cycles += done.cycles + exe.profile["cycles"] + exe.profile["host_cycles"]
        return outputs

    def _begin(self) -> None:
        """Hand on what programs have trained before.

        Raises InputError if two of them have reached different values of one state.
        """
        reached: dict[str, tuple[str, bytes]] = {}
        for name, exe in self.programs.items():
            if not exe.has_run or not listed_names(exe.module_at(MACHINE), UPDATED):
                continue
            states = exe.states
            for state in sorted(self._written[name] & states.keys()):
                value = states[state].tobytes()
                other, known = reached.setdefault(state, (name, value))
                if known != value:
                    raise InputError(
                        f"session: {other} and {name} have both trained state {state!r}, to "
                        "different values; call reset() of the program whose training is not needed"
                    )
            self._hand_on(name, states)

    def _hand_on(self, name: str, states: Mapping[str, Array]) -> None:
        """Keep the states that a program writes, for all programs that have them."""
        written = self._written[name] & states.keys()
        self._states.update({state: states[state] for state in written})
        for (other, _), stale in self._stale.items():
            stale |= written & self._named[other]

    def costs(self) -> tuple[Switch, ...]:
        """The cost of each change between two programs, if only the first one ran, and once."""
        return switches(self.target, self._footprints)

    def frame(self) -> Any:
        """The costs as a pandas frame, with seconds by the target's clock."""
        from pandas import DataFrame  # noqa: PLC0415  an optional library

        rows = [
            asdict(each) | {"seconds": each.cycles / self.target.clock_hz} for each in self.costs()
        ]
        return DataFrame(rows)


def _written(found: Footprint) -> set[str]:
    """The states that a run of a program may change."""
    return {each.value for each in found.residents if each.is_state and each.is_written}


def _names(exe: Executable) -> set[str]:
    """The states of a program."""
    return set(_first_values(exe))


def _first_values(exe: Executable) -> dict[str, Blob]:
    """The first value of each state of a program."""
    return {
        v.symbol: v.initial.data
        for v in exe.module_at(MACHINE).body.block.ops
        if isinstance(v, VariableOp) and v.state is not None and v.initial is not None
    }


def _shared_states(programs: Mapping[str, Executable]) -> dict[str, Array]:
    """The first values of all states. Raises InputError if two programs differ in one."""
    found: dict[str, tuple[str, Blob]] = {}
    for name, exe in programs.items():
        for state, value in _first_values(exe).items():
            other, known = found.setdefault(state, (name, value))
            if known != value:
                raise InputError(
                    f"session: state {state!r} differs between {other} and {name}; need programs "
                    "of one model"
                )
    return {state: value.array for state, (_, value) in found.items()}


def _check_training(programs: Mapping[str, Executable]) -> None:
    """Raise InputError if one program trains weights that another one has as constants."""
    for name, exe in programs.items():
        module = exe.module_at(MACHINE)
        if not listed_names(module, UPDATED):
            continue
        trained = set(listed_names(module, TRAINED) or ())
        for other, its in programs.items():
            missing = sorted(trained - _names(its))
            if missing:
                raise InputError(
                    f"session: {name} trains {missing[0]!r}, which {other} does not have as a "
                    "state; compile it with train=Training(update=False)"
                )
