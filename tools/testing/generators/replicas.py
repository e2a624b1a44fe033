"""Shares the batch of generated programs among the chips of their machines."""

from __future__ import annotations

from random import Random
from typing import get_args

from ....dialects import nn
from ....ir.support.errors import InputError
from ....passes.gradients.program import entry_of, inputs_of
from ....passes.replicas.rounds import Way
from ....passes.replicate import Replicate
from .program import Program

SHARED = 0.9
"""How often a program for several chips is shared among replicas, where a batch can be found."""

WAYS: tuple[Way, ...] = get_args(Way)


def shared(program: Program) -> Program:
    """The program of nn, or one that means the same, whose batch is shared among replicas.

    The seed of its sketch decides whether, and how: which axis of an input counts samples, and in
    which way sums are merged. Programs for one chip are unchanged.
    """
    chips = program.target.chips
    if program.sketch is None or chips == 1:
        return program
    random = Random(f"{program.sketch.seed} replicas")
    if random.random() >= SHARED:
        return program
    replicas = random.choice([n for n in range(2, chips + 1) if chips % n == 0])
    axes = _axes(program, replicas, random)
    if all(axis.endswith(":none") for axis in axes):
        return program
    sharing = Replicate(replicas, random.choice(WAYS), axes, program.target.spelling())
    found = program.clone()
    try:
        sharing.apply(found.context, found.module)
    except InputError:
        # Reshapes may leave a number of samples that the replicas cannot share.
        return program
    return found


def _axes(program: Program, replicas: int, random: Random) -> tuple[str, ...]:
    """For each input an axis that so many replicas can share, as replicate takes them."""
    main = entry_of(program.module)
    assert main is not None
    found: list[str] = []
    for name, value in inputs_of(main).items():
        fit = [i for i, n in enumerate(nn.shape_of(value)) if n and n % replicas == 0]
        found.append(f"{name}:{random.choice(fit) if fit else 'none'}")
    return tuple(found)
