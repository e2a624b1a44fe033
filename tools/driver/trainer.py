"""Training steps on samples, one after another. An interrupted step counts as not done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...dialects.levels import NN
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.support.turns import Turns
from ...passes.gradients.loss_scale import LARGE, STATE
from ...passes.train import LOSS, RATE
from .checkpoints import Checkpoint
from .executable import Executable
from .not_finite import advice, all_finite, first_not_finite
from .samples import Samples
from .training import LossIsNotFinite
from .validation import Figures, Validation

if TYPE_CHECKING:
    from .health.recorder import HealthRecorder

NonFinite = Literal["stop", "skip"]
"""What to do about a step after which the loss, or a weight, is not finite."""


@dataclass(frozen=True)
class Row:
    """The record of a step.

    Attributes:
        rate: the learning rate, if the host gives it.
        figures: the figures of validation, if it was run after this step.
        scale: the automatic loss scale of this step; None if it is not known, because it was
            another step of the same run.
        large: how many elements of its gradients, times the scale, were large; None if it is not
            known.
    """

    step: int
    loss: float
    rate: float | None = None
    figures: Figures | None = None
    scale: float | None = None
    large: int | None = None


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
        health: what records the health of steps; also that of a run that is not finite.
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
        health: HealthRecorder | None = None,
    ) -> None:
        self._turns = Turns()
        samples.check_labels(exe.training)
        self.exe, self.samples, self.seed = exe, samples, seed
        self.rate, self.non_finite, self.warn, self.health = rate, non_finite, warn, health
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
        made = states = self.exe.states
        wrong = next((name for name, each in states.items() if not all_finite(each)), None)
        is_finite = bool(np.isfinite(loss)) and wrong is None
        if self.health is not None:
            numbers = range(before.step + 1, before.step + count + 1)
            self.health.record(inputs, before.states, numbers, every=not is_finite)
        if not is_finite:
            self._refuse(inputs, losses, wrong)
            states = before.states
        # The row comes first: one of a step that did not happen is not among `rows`.
        for i, each in enumerate(losses, 1):
            rate = None if rates is None else rates[i - 1]
            scale = before.states.get(STATE) if i == 1 else None
            large = made.get(LARGE) if i == count else None
            self._rows[before.step + i] = Row(
                before.step + i,
                each,
                rate,
                scale=None if scale is None else float(scale),
                large=None if large is None else int(large),
            )
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

    def _refuse(
        self, inputs: Mapping[str, Array], losses: Sequence[float], state: str | None
    ) -> None:
        """Go back to the states before a run that is not finite.

        Raises LossIsNotFinite if asked to stop there.

        Args:
            losses: of the steps of the run.
            state: the first state that is not finite after it, if there is one.
        """
        before, found, where = self.reached, None, "the program has no level nn, in which its "
        if NN.name in self.exe.levels:
            found = first_not_finite(self.exe, inputs, before.states)
            where = "only the machine's order of rounding makes it so, not the reference"
        else:
            where += "operation could be found"
        last = len(losses) - 1
        first = next((i for i, each in enumerate(losses) if not np.isfinite(each)), last)
        if found is not None:
            where = found.text
            first = first if found.step is None else min(first, found.step)
        what = f"the loss is {losses[first]:.6g}"
        if state is not None:
            what += f" and {state!r} is not finite"
        message = f"step {before.step + first + 1}: {what}; {where}"
        self.exe.set_states(before.states)
        if self.non_finite == "skip":
            self.warn(f"{message}; skipped")
            return
        the_step = "this step" if len(losses) == 1 else f"step {before.step + 1}"
        helps = "Mend the samples"
        if all(map(all_finite, inputs.values())):
            helps = advice(found, self.exe.training)
        raise LossIsNotFinite(
            f"{self.exe.path}: {message}. The weights are those before {the_step}. {helps}; "
            "skipping leaves such steps out"
        )
