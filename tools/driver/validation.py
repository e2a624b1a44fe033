"""Validation: the loss and metrics of samples that training does not see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...passes.train import LOSS
from .executable import Executable
from .metrics import accuracy, area_under_curve, mean_loss
from .samples import Samples


@dataclass(frozen=True)
class Figures:
    """The loss and metrics of some samples.

    Attributes:
        accuracy, auc: None where they have no meaning.
    """

    loss: float
    accuracy: float | None
    auc: float | None

    def __str__(self) -> str:
        text = f"loss {self.loss:.6g}"
        if self.accuracy is not None:
            text += f", accuracy {self.accuracy:.2%}"
        return text if self.auc is None else f"{text}, AUC {self.auc:.4f}"


class Validation:
    """A program that is used after training, and the samples that it is judged by.

    Raises InputError for samples that do not suit the program.

    Every sample is counted once: the last batch is filled up with copies of its last sample, whose
    results are left out.

    Attributes:
        exe: the program, compiled with Training(update=False, outputs=True, reduction="none").
    """

    def __init__(self, exe: Executable, samples: Samples) -> None:
        self.exe, self.samples, self.settings = exe, samples, exe.training
        samples.check_labels(self.settings)
        self.batch = samples.batch
        for tensor in exe.outputs:
            if tensor.name in (LOSS, self.settings.output) and tensor.shape[:1] != (self.batch,):
                raise InputError(
                    f"validation: {tensor} does not have the {self.batch} samples of a batch along "
                    "its first axis"
                )

    def figures(self, states: Mapping[str, Array]) -> Figures:
        """The figures of a program with these weights."""
        known = self.exe.states
        self.exe.set_states({name: a for name, a in states.items() if name in known})
        settings = self.settings
        losses: list[Array] = []
        outputs: list[Array] = []
        for begin in range(0, self.samples.count, self.batch):
            chosen = np.arange(begin, begin + self.batch).clip(max=self.samples.count - 1)
            found = self.exe.run(self.samples.take(chosen))
            left = min(self.samples.count - begin, self.batch)
            losses.append(found[LOSS][:left])
            outputs.append(found[settings.output][:left])
        every, output = np.concatenate(losses), np.concatenate(outputs)
        target = self.samples.arrays[settings.target]
        return Figures(
            mean_loss(every, target, settings),
            accuracy(output, target, settings),
            area_under_curve(output, target, settings),
        )
