"""Training programs: what is checked before one is compiled, and after each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute

from ...dialects.levels import NN
from ...ir.context import AbeleContext
from ...ir.errors import InputError
from ...ir.suggestions import suggestion
from ...ir.upstream import ModuleOp, ModulePass
from ...ir.verify import verify
from ...passes.train import LOSS, RATE, Train
from .program import Program

Training = Train
"""How a program is trained: what compile_model takes as `train`."""

Array = NDArray[Any]


class LossIsNotFinite(InputError):
    """The loss of a step is not a number, or is infinite. The weights have taken that step."""


def make_train(
    training: Train, program: Program, pipeline: Sequence[ModulePass], context: AbeleContext
) -> None:
    """Turn a program into one that trains, before its first pass.

    So the program at nn is a step of training, which every level can be compared with. Raises
    InputError if the program is at another level, or cannot be trained.
    """
    if program.level != NN:
        raise InputError(f"{program.path}: train: the program is at {program.level}; need {NN}")
    if any(isinstance(each, Train) for each in pipeline):
        raise InputError(f"{program.path}: train is asked for twice, as an option and as a pass")
    training.apply(context, program.module)
    verify(program.module, NN.legal)


def states_listed(module: ModuleOp, attribute: str) -> tuple[str, ...] | None:
    """The names of states in an attribute of a training program; None if it is none."""
    given = module.attributes.get(attribute)
    if not isinstance(given, ArrayAttr):
        return None
    listed = cast("ArrayAttr[Attribute]", given).data
    return tuple(each.data for each in listed if isinstance(each, StringAttr))


def check_states(values: Mapping[str, object], known: Mapping[str, Array], path: str) -> None:
    """Raise InputError for a state that a step does not change."""
    for name in values:
        if name not in known:
            raise InputError(
                f"{path}: no state {name!r}{suggestion(name, list(known))}; a step changes "
                f"{', '.join(known)}"
            )


def check_loss(outputs: Mapping[str, Array], path: str) -> None:
    """Raise LossIsNotFinite if a loss is not a finite number."""
    loss = outputs.get(LOSS)
    if loss is not None and not np.isfinite(loss.astype(np.float64)).all():
        wrong = loss.ravel()[~np.isfinite(loss.ravel())][0]
        raise LossIsNotFinite(
            f"{path}: the loss is {wrong}, and the weights have taken this step; a smaller "
            f"learning rate (learning_rate, or the input {RATE!r}) or clip_norm may help"
        )
