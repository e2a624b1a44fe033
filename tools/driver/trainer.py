"""Training steps on samples, one after another. An interrupted step counts as not done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...dialects.levels import NN, PARTITION
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.support.turns import Turns
from ...passes.train import LOSS, RATE
from .checkpoints import Checkpoint
from .executable import Executable
from .not_finite import all_finite, first_not_finite, first_not_finite_in_bits, same_states
from .samples import Samples
from .training import LossIsNotFinite
from .validation import Figures, Validation

NonFinite = Literal["stop", "skip"]
"""What to do about a step after which the loss, or a weight, is not finite."""


@dataclass(frozen=True)
class Row:
    """The record of a step.

    Attributes:
        rate: the learning rate, if the host gives it.
        figures: the figures of validation, if it was run after this step.
    """

    step: int
    loss: float
    rate: float | None = None
    figures: Figures | None = None


@dataclass(frozen=True)
class Reached:
    """The progress of training: how many steps are done, and the states that they left."""

    step: int
    states: Mapping[str, Array]


class Trainer:
    """Does the steps of a training program.

    Raises InputError for another program, and for labels that are no classes.

    Attributes:
        exe: the program.
        samples: the samples to learn from, as samples_of returns them.
        seed: the seed of their order.
        rate: the function from a step to its learning rate, for a program that takes it as an
            input.
        non_finite: what to do about a step after which the loss or a state is not finite: stop
            there, or go on from the states before it.
        warn: a function that is called with a line for each such step that is skipped.
        steps: how many steps a run of the program does.
        reached: the progress of training. It changes all at once at the end of a run, so an
            interruption leaves it as it was before the run.
    """

    def __init__(
        self,
        exe: Executable,
        samples: Samples,
        seed: int = 0,
        *,
        rate: Callable[[int], float] | None = None,
        non_finite: NonFinite = "stop",
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._turns = Turns()
        samples.check_labels(exe.training)
        self.exe, self.samples, self.seed = exe, samples, seed
        self.rate, self.non_finite, self.warn = rate, non_finite, warn
        self.steps = exe.training.steps
        self.reached = Reached(0, exe.states)
        self._rows: dict[int, Row] = {}

    def resume(self, checkpoint: Checkpoint, path: str = "checkpoint") -> None:
        """Go on from a checkpoint, in its order of samples. Raises InputError for one of another
        program."""
        known, given = self.reached.states, checkpoint.states
        other = "it is of another model, or of another optimizer"
        for name, array in known.items():
            if name not in given:
                raise InputError(f"{path}: no state {name!r} in the checkpoint; {other}")
            found = given[name]
            if found.shape != array.shape or found.dtype != array.dtype:
                raise InputError(
                    f"{path}: state {name!r} is {found.dtype.name}{list(found.shape)}, and the "
                    f"program's is {array.dtype.name}{list(array.shape)}; {other}"
                )
        for name in given:
            if name not in known:
                near = suggestion(name, list(known))
                raise InputError(f"{path}: the program has no state {name!r}{near}; {other}")
        with self._turns:
            self.exe.set_states(given)
            self.seed = checkpoint.seed
            self.reached = Reached(checkpoint.step, self.exe.states)

    @property
    def checkpoint(self) -> Checkpoint:
        """A checkpoint of the states after the last whole step."""
        return Checkpoint(self.reached.step, self.seed, self.reached.states)

    def step(self) -> float:
        """Do the steps of a run, and return the mean of their losses.

        Threads that call this take turns. Raises LossIsNotFinite if asked to stop there.
        """
        with self._turns:
            return self._step()

    def _step(self) -> float:
        before, count = self.reached, self.steps
        rates = None if self.rate is None else [self.rate(before.step + i) for i in range(count)]
        batches = [self.samples.at(before.step + i, self.seed) for i in range(count)]
        inputs = {name: np.stack([each[name] for each in batches]) for name in batches[0]}
        if rates is not None:
            inputs[RATE] = np.array(rates, np.float32)
        if count == 1:
            inputs = {name: array[0] for name, array in inputs.items()}
        found = self.exe.run(inputs)[LOSS].reshape(count, -1)
        losses = [float(np.mean(each, dtype=np.float64)) for each in found]
        loss = float(np.mean(losses))
        states: Mapping[str, Array] = self.exe.states
        wrong = next((name for name, each in states.items() if not all_finite(each)), None)
        if not np.isfinite(loss) or wrong is not None:
            first = next((i for i, each in enumerate(losses) if not np.isfinite(each)), count - 1)
            what = f"the loss is {losses[first]:.6g}" + (
                f" and {wrong!r} is not finite" if wrong else ""
            )
            where = self._where(inputs, before.states)
            message = f"step {before.step + first + 1}: {what}; {where}"
            self.exe.set_states(before.states)
            if self.non_finite == "stop":
                the_step = "this step" if count == 1 else f"step {before.step + 1}"
                finite = all(map(all_finite, inputs.values()))
                helps = (
                    "A smaller learning rate or clip_norm may help"
                    if finite
                    else "Mend the samples"
                )
                raise LossIsNotFinite(
                    f"{self.exe.path}: {message}. The weights are those before {the_step}. "
                    f"{helps}; skipping leaves such steps out"
                )
            self.warn(f"{message}; skipped")
            states = before.states
        # The row comes first: one of a step that did not happen is not among `rows`.
        for i, each in enumerate(losses, 1):
            rate = None if rates is None else rates[i - 1]
            self._rows[before.step + i] = Row(before.step + i, each, rate)
        self.reached = Reached(before.step + count, states)
        return loss

    @property
    def rows(self) -> list[Row]:
        """The record of each step that was done here, in order."""
        return [row for step, row in self._rows.items() if step <= self.reached.step]

    def judge(self, validation: Validation) -> Figures:
        """The figures of samples for validation, which become part of the last row.

        Raises InputError if the program that is judged has other weights.
        """
        missing = sorted(set(self.exe.weights) - set(validation.exe.states))
        if missing:
            raise InputError(f"validation: no weight {missing[0]!r} in the program that is judged")
        figures = validation.figures(self.reached.states)
        last = self._rows[self.reached.step]
        self._rows[last.step] = replace(last, figures=figures)
        return figures

    def _where(self, inputs: Mapping[str, Array], states: Mapping[str, Array]) -> str:
        """The operation that made the first value that is not finite, in words."""
        if NN.name not in self.exe.levels:
            return "the program has no level nn, in which its operation could be found"
        module = self.exe.module_at(NN.name)
        found = first_not_finite(module, inputs, states) if same_states(module, states) else ""
        # What only rounding makes infinite is found in the program that rounds as the machine does.
        if not found and PARTITION.name in self.exe.levels:
            found = first_not_finite_in_bits(self.exe.module_at(PARTITION.name), inputs, states)
        return found or "only the machine's order of rounding makes it so, not the reference"
