"""Turns generated programs into training steps: a random program, a loss and an optimiser.

Training steps contain backward operators, weights that are read forward and backward and then
replaced, and updates that may move between these reads. Other programs rarely do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr

from ....dialects import nn
from ....ir.support.errors import InputError
from ....ir.upstream import ModuleOp
from ....ir.well_known import TRAINED
from ....passes.gradients.loss_scale import Scaling
from ....passes.gradients.losses import LOSSES, REDUCTIONS
from ....passes.gradients.optimizers import OPTIMIZERS
from ....passes.gradients.program import entry_of, inputs_of, outputs_of, states_of
from ....passes.gradients.way import is_float
from ....passes.train import RATE, SETTINGS, Train
from ...driver.arrays import Array
from ...driver.program import signature
from .program import Program
from .sketch import Data
from .values import values_of

WEIGHTS = 0.5
"""How often an input of floats becomes a weight."""

TRIED = 5
"""How many outputs and options are tried: not every program has a gradient."""

SCALINGS: tuple[Scaling, ...] = ("static", "static", "static", "unit")
"""The scalings of gradients. Others differ from these in numbers alone."""


@dataclass(frozen=True)
class Counts:
    """Numbers to choose from; one that is listed twice is drawn twice as often."""

    micro_batches: Sequence[int]
    steps: Sequence[int]


ON_ONE_CHIP = Counts((1, 1, 1, 2, 3, 5), (1, 1, 2, 3))
ON_SEVERAL = Counts((1, 2, 4, 4, 6, 8), (1, 1, 1, 2))
"""The same for machines of several chips, whose pipelines need micro-batches in one step."""

PLAINEST = 1
"""The seed of the plainest step: sgd on the sum of squares, and no input becomes a weight."""

IGNORED = -1
"""The label of positions that the loss ignores."""

NUMBERS: Mapping[str, Sequence[Any]] = {
    "momentum": (0.0, 0.5),
    "dampening": (0.0, 0.25),
    "rate_in_momentum": (False, True),
    "nesterov": (False, True),
    "weight_decay": (0.0, 0.25),
    "beta1": (0.5, 0.75),
    "beta2": (0.75, 0.5),
    "alpha": (0.75, 0.5),
    "epsilon": (0.125, 1e-3),
    "centered": (False, True),
    "epsilon_inside": (False, True),
    "trust": (0.5, 0.001),
}
"""The candidate values of each number of an optimiser, large enough to affect the results."""


def is_step(module: ModuleOp) -> bool:
    """Whether a module is a training step."""
    return TRAINED in module.attributes


def as_step(program: Program, seed: int, data: Data, scaling: Scaling | None = None) -> Program:
    """A training step made from a program of nn; the program itself if it has no gradient.

    Args:
        seed: decides the output that the loss reads, the options of `train`, and the inputs that
            become weights.
        data: the kind of values of new inputs.
        scaling: of gradients; None to let the seed decide.
    """
    random = Random(f"{seed} training")
    scaling = scaling or Random(f"{seed} scaling").choice(SCALINGS)
    plain = seed == PLAINEST
    start = program if plain else _with_more_weights(program, random)
    main = entry_of(start.module)
    assert main is not None
    few = ON_ONE_CHIP if program.target.chips == 1 else ON_SEVERAL
    outputs = [name for name, value in outputs_of(main).items() if is_float(value)]
    if not outputs or not states_of(main):
        return program
    for iteration in range(TRIED):
        name = outputs[-1 - iteration % len(outputs)] if plain else random.choice(outputs)
        module = start.module.clone()
        options = _plain(name) if plain else _options(module, name, random, scaling, few)
        try:
            options.apply(start.context, module)
        except InputError:
            # Not every operator has a gradient, and not every output depends on a weight.
            continue
        inputs = _inputs(module, start.inputs, random, data)
        return Program(
            module,
            program.context,
            inputs,
            program.target,
            sketch=program.sketch,
            plans=program.plans,
        )
    return program


def _with_more_weights(program: Program, random: Random) -> Program:
    """The program with some of its float inputs turned into weights."""
    module, inputs = program.module.clone(), dict(program.inputs)
    main = entry_of(module)
    assert main is not None
    block = main.body.block
    first = block.first_op
    assert first is not None
    for name, value in zip(inputs_of(main), tuple(main.args), strict=True):
        if not is_float(value) or random.random() >= WEIGHTS:
            continue
        state = f"of_{name}"
        blob = program.context.blobs.add(inputs.pop(name))
        module.body.block.insert_op_before(nn.StateOp(state, blob), main)
        load = nn.LoadOp(state, nn.tensor_of(value))
        block.insert_op_before(load, first)
        value.replace_all_uses_with(load.result)
        block.erase_arg(value)
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, inputs))
    main.update_function_type()
    return Program(module, program.context, inputs, program.target)


def _plain(output: str) -> Train:
    return Train(
        loss="mean_square", reduction="sum", output=output, learning_rate=0.5, batch_statistics=0.0
    )


def losses_of(shape: Sequence[int]) -> list[str]:
    """The losses that fit an output of a shape."""
    has_labels = len(shape) > 1 and shape[1] > 0
    # A label of frames is another class than the blank.
    has_frames = len(shape) == 3 and 0 not in shape and shape[2] > 1
    return [
        name
        for name, each in LOSSES.items()
        if (has_labels or not each.has_classes) and (has_frames or not each.has_frames)
    ]


def _options(module: ModuleOp, output: str, random: Random, scaling: Scaling, few: Counts) -> Train:
    """Random options of `train` for a program.

    Args:
        few: numbers of micro-batches and of steps to choose from.
    """
    main = entry_of(module)
    assert main is not None
    shape = nn.shape_of(outputs_of(main)[output])
    loss = random.choice(losses_of(shape))
    labels = LOSSES[loss].has_classes
    optimizer = random.choice(("sgd", *OPTIMIZERS))
    numbers = {name: random.choice(NUMBERS[name]) for name in OPTIMIZERS[optimizer].reads}
    numbers["nesterov"] = bool(numbers.get("nesterov") and numbers["momentum"])
    micro_batches = random.choice(few.micro_batches) if shape and shape[0] else 1
    steps = random.choice(few.steps)
    axes: tuple[str, ...] = ()
    if micro_batches > 1:
        given = {name: nn.shape_of(value) for name, value in inputs_of(main).items()}
        axes = tuple(f"{n}:none" for n, each in given.items() if each[:1] != shape[:1])
    return Train(
        loss=loss,
        optimizer=optimizer,
        output=output,
        reduction=random.choice(REDUCTIONS),
        learning_rate=random.choice((0.5, 0.25, 0.1)),
        schedule=random.random() < 0.25,
        clip_norm=random.choice((0.0, 0.0, 2.0)),
        batch_statistics=random.choice((0.0, 0.25)),
        outputs=random.random() < 0.5,
        micro_batches=micro_batches,
        batch_axes=axes,
        recompute=random.random() < 0.5,
        steps=steps,
        scaling=scaling,
        ignore_index=IGNORED if labels and random.random() < 0.25 else None,
        label_smoothing=0.25 if labels and random.random() < 0.25 else 0.0,
        **numbers,
    )


def _inputs(
    module: ModuleOp, given: Mapping[str, Array], random: Random, data: Data
) -> dict[str, Array]:
    """Inputs of a training step: the program's inputs for each part of a batch, and new inputs."""
    settings = module.attributes[SETTINGS]
    assert isinstance(settings, DictionaryAttr)
    classes, steps = settings.data.get("classes"), settings.data["steps"]
    assert isinstance(steps, IntegerAttr)
    several = steps.value.data > 1
    is_ctc = settings.data["loss"] == StringAttr("ctc")
    made: dict[str, Array] = {}
    for each in signature(module).inputs:
        new = values_of(each.shape, each.dtype, random.randrange(1 << 30), data)
        old = given.get(each.name)
        if old is None and each.name == RATE:
            new = np.full(each.shape, random.choice((0.5, 0.25)), each.dtype)
        elif old is None and isinstance(classes, IntegerAttr):
            least = IGNORED if "ignored" in settings.data else 0
            seed = random.randrange(1 << 30)
            labels = np.random.default_rng(seed).integers(least, classes.value.data, each.shape)
            new = labels.astype(each.dtype)
        elif old is None and is_ctc and each.dtype == np.int32:
            # Class 0 is the blank, and -1 follows the labels.
            seed = random.randrange(1 << 30)
            said = np.random.default_rng(seed).integers(0, 2, each.shape, np.int32)
            new = np.sort(2 * said - 1, -1)[..., ::-1].copy()
        elif old is not None and old.shape == each.shape:
            new = old
        elif old is not None and old.dtype.kind in "iub":
            # Integers may be indices, which have a range.
            shape = each.shape[1:] if several else each.shape
            if old.shape != shape:
                old = np.concatenate([old] * (shape[0] // old.shape[0]))
            new = np.broadcast_to(old, each.shape).copy()
        made[each.name] = new
    return made
