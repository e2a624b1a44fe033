"""The states that a training step changes: weights, and the state of optimisers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.well_known import TRAINED, UPDATED
from .arrays import Array, Tensor, checked
from .modules import Modules
from .runners import Runners

if TYPE_CHECKING:
    from ...dialects.block_inputs import BlockInput
    from .training import Settings

with deferred(__name__):
    from ...backends.levels import initial_states
    from ...dialects.block_inputs import block_states, decoded, encoded
    from ...dialects.settable import listed_names
    from .training import check_states, settings_of


class TrainedStates:
    """The states of a training program. Each use of another program raises InputError."""

    def __init__(self, modules: Modules, runners: Runners) -> None:
        self._modules = modules
        self._runners = runners

    def check(self) -> None:
        """Raise InputError if the program does not train."""
        _ = self._listed(TRAINED)

    @property
    def settings(self) -> Settings:
        """What the host has to know about the training."""
        self.check()
        return settings_of(self._modules.machine)

    @property
    def weights(self) -> dict[str, Array]:
        """The weights, by name, as the last step has left them."""
        states = self.values
        return {name: states[name] for name in self._listed(TRAINED) if name in states}

    @property
    def values(self) -> dict[str, Array]:
        """All that a step changes, by name.

        Of the level that was run last; their first values, if none was.
        """
        names = self._listed(UPDATED)
        found = self._runners.states()
        # Nothing is left of a weight that nothing reads.
        held = {name: found[name] for name in names if name in found}
        return decoded(self._blocks, held)

    def set(self, values: Mapping[str, object], at: str) -> None:
        """Set the values that the next step at a level finds in some states.

        Raises InputError for names, shapes and element types that the program does not have.
        """
        first = initial_states(self._modules.machine)
        blocks = self._blocks
        known = {name: first[name] for name in self._listed(UPDATED) if name in first}
        known = decoded(blocks, known)
        check_states(values, known, self._modules.path)
        wanted = {n: Tensor(n, a.shape, a.dtype) for n, a in known.items() if n in values}
        for each in blocks:
            for name in {*each.names} & wanted.keys():
                tensor = wanted[name]
                shape = (each.lists.most, *tensor.shape[1:])
                wanted[name] = replace(tensor, shape=shape, open_axes=(0,))
        given = checked(values, wanted.values())
        for each in blocks:
            missing = [name for name in each.names if name not in given]
            if 0 < len(missing) < len(each.names):
                raise InputError(
                    f"{self._modules.path}: state {missing[0]!r} is missing; need "
                    f"{', '.join(each.names)} together"
                )
        set_now = [each for each in blocks if each.names[0] in given]
        self._runners.set_states(encoded(set_now, given, "states"), at)

    @property
    def _blocks(self) -> tuple[BlockInput, ...]:
        """The states that are lists of blocks at the host."""
        return block_states(self._modules.machine)

    def _listed(self, attribute: str) -> tuple[str, ...]:
        found = listed_names(self._modules.machine, attribute)
        if found is None:
            raise InputError(
                f"{self._modules.path}: no training program; compile the model with train"
                + (", or keep a weight" if attribute == UPDATED else "")
            )
        return found
