"""The options that make a model train, as every compiling command takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args, get_origin

import typer

from ...ir.support.deferred import deferred, itself
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...passes.gradients.choices import (
    DEFAULT_LOSS,
    DEFAULT_OPTIMIZER,
    LOSS_NAMES,
    OPTIMIZER_NAMES,
)

with deferred(__name__):
    from ...ir.pass_options import dashed, option_types
    from ...passes.train import Train

TrainFlag = Annotated[
    bool,
    typer.Option(
        "--train",
        help="Compile a step of training: forward, backward, and the update of the weights.",
    ),
]
LossName = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="NAME",
        help=f"With --train: {', '.join(LOSS_NAMES)}. Default: {DEFAULT_LOSS}.",
    ),
]
OptimizerName = Annotated[
    str | None,
    typer.Option(
        "--optimizer",
        metavar="NAME",
        help=f"With --train: {', '.join(OPTIMIZER_NAMES)}. Default: {DEFAULT_OPTIMIZER}.",
    ),
]
TrainingNumbers = Annotated[
    list[str] | None,
    typer.Option(
        "--training",
        metavar="NAME=VALUE",
        help="With --train: an option of the pass train, such as learning-rate=0.01, "
        "momentum=0.9 or freeze=REGEX. May be repeated.",
    ),
]

TRUTH = {"true": True, "false": False}


def given_training(
    wanted: bool, loss: str | None, optimizer: str | None, options: Sequence[str] | None
) -> Train | None:
    """The training that options ask for; None if they ask for none. Raises InputError."""
    given = {"--loss": loss, "--optimizer": optimizer, "--training": options}
    if not wanted:
        alone = next((name for name, value in given.items() if value), None)
        if alone is not None:
            raise InputError(f"{alone} without --train; need both, or neither")
        return None
    found: dict[str, object] = {}
    if loss is not None:
        found["loss"] = loss
    if optimizer is not None:
        found["optimizer"] = optimizer
    types = option_types(itself(Train))
    for each in options or ():
        name, equals, text = each.partition("=")
        field = name.replace("-", "_")
        if not equals or field not in types:
            near = suggestion(name, [dashed(known) for known in types])
            raise InputError(
                f"--training {each}: need NAME=VALUE, with an option of the pass train{near}"
            )
        value = _parsed(each, text, types[field])
        if isinstance(value, tuple):
            before = found.get(field, ())
            assert isinstance(before, tuple)
            found[field] = (*before, *value)
        elif field in found:
            raise InputError(f"--training {each}: {name} is given twice; need one value")
        else:
            found[field] = value
    training = Train(**found)  # pyright: ignore[reportArgumentType]
    training.check()
    return training


def _parsed(option: str, text: str, hint: object) -> object:
    """The value of an option, by its type."""
    kinds = get_args(hint) or (hint,)
    if get_origin(hint) is Literal:
        if text not in kinds:
            raise InputError(f"--training {option}: need {' or '.join(map(str, kinds))}")
        return text
    if str in kinds:
        return (text,) if ... in kinds else text
    if bool in kinds:
        if text not in TRUTH:
            raise InputError(f"--training {option}: need true or false")
        return TRUTH[text]
    kind = int if int in kinds else float
    try:
        return kind(text)
    except ValueError:
        what = "an integer" if kind is int else "a number"
        raise InputError(f"--training {option}: need {what}") from None
