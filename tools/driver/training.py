"""Training programs: what is checked before one is compiled, and after each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, IntegerAttr, StringAttr

from ...dialects.levels import NN
from ...ir.context import AbeleContext
from ...ir.pass_manager import parse_pipeline
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.upstream import ModuleOp, ModulePass
from ...ir.verify import verify
from ...ir.well_known import ASKED
from ...passes.pipelines import PASSES
from ...passes.train import LOSS, RATE, SETTINGS, Train
from .program import ReadProgram

Training = Train
"""How a program is trained: what compile_model takes as `train`."""


class LossIsNotFinite(InputError):
    """Raised if the loss of a step is NaN or infinite. The message says which weights are left."""


def make_train(
    training: Train, program: ReadProgram, pipeline: Sequence[ModulePass], context: AbeleContext
) -> None:
    """Turn a program into one that trains, before its first pass.

    So the program at nn is a step of training, which every level can be compared with. Raises
    InputError if the program is at another level, or cannot be trained.
    """
    if program.level != NN:
        raise InputError(f"{program.path}: train: the program is at {program.level}; need {NN}")
    if any(isinstance(each, Train) for each in pipeline):
        raise InputError(f"{program.path}: train is asked for twice, as an option and as a pass")
    program.module.attributes.pop(ASKED, None)
    training.apply(context, program.module)
    verify(program.module, NN)


@dataclass(frozen=True)
class Settings:
    """What the host needs to know of a program's training.

    Attributes:
        loss, learning_rate, output, target: the options of the pass `train`.
        inside: whether the softmax or sigmoid that makes the output is part of the loss.
        classes: how many labels there are; 0 if the target has none.
        ignored: the label of positions that do not count.
        steps: how many steps a run takes.
        loss_scale: the loss scale, or that of the first step.
        rates: how the learning rate changes, as `schedule` takes it; "" if the model does not say.
    """

    loss: str
    learning_rate: float
    output: str
    target: str
    inside: bool
    classes: int = 0
    ignored: int | None = None
    steps: int = 1
    loss_scale: float = 1.0
    rates: str = ""


def settings_of(module: ModuleOp) -> Settings:
    """The settings in a module of a training program."""
    given = module.attributes.get(SETTINGS)
    if not isinstance(given, DictionaryAttr):
        raise InputError(f"the training program has no attribute {SETTINGS}; compile it again")
    found: dict[str, Any] = {}
    for name, value in given.data.items():
        if isinstance(value, StringAttr):
            found[name] = value.data
        elif isinstance(value, IntegerAttr | FloatAttr):
            found[name] = value.value.data
    found["inside"] = bool(found.get("inside"))
    return Settings(**found)


def asked_training(training: Train | None, program: ReadProgram) -> Train | None:
    """How a program is trained: as its attribute asks for, but for the options that are given.

    Returns None if neither asks for training. Raises InputError.

    Args:
        training: the training that the caller gives. An option that differs from its default
            replaces that of the attribute.
    """
    asked = program.module.attributes.get(ASKED)
    if asked is None:
        return training
    try:
        if not isinstance(asked, StringAttr):
            raise ValueError(f"it is {asked}")
        (found,) = parse_pipeline(f"{Train.name}{{{asked.data}}}", PASSES)
        assert isinstance(found, Train)
        found.check()
    except ValueError as error:
        raise InputError(
            f"{program.path}: attribute {ASKED}: {error}; need options of the pass train as text, "
            'such as "loss=mean_square optimizer=adam"'
        ) from None
    if training is None:
        return found
    own = {f.name: getattr(training, f.name) for f in fields(Train) if f.init}
    given = {f.name for f in fields(Train) if f.init and own[f.name] != f.default}
    return replace(found, **{name: own[name] for name in given})


def check_states(values: Mapping[str, object], known: Mapping[str, Array], path: str) -> None:
    """Raise InputError for a state that a step does not change."""
    for name in values:
        if name not in known:
            listed = f"a step changes {', '.join(known)}"
            raise InputError(f"{path}: no state {name!r}{suggestion(name, known, listed)}")


def check_loss(outputs: Mapping[str, Array], path: str) -> None:
    """Raise LossIsNotFinite if a loss is not a finite number."""
    loss = outputs.get(LOSS)
    if loss is not None and not np.isfinite(loss.astype(np.float64)).all():
        wrong = loss.ravel()[~np.isfinite(loss.ravel())][0]
        raise LossIsNotFinite(
            f"{path}: the loss is {wrong}, and the weights have taken this step; a smaller "
            f"learning rate (learning_rate, or the input {RATE!r}) or clip_norm may help"
        )
