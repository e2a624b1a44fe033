"""Makes pipelines of generated programs: stages, and micro-batches where a program has a loop."""

from __future__ import annotations

from random import Random

from ....ir.geometry.pipeline import ScheduleName
from ....ir.phases import FORWARD, Phases
from ....ir.provenance import origin_names
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModuleOp
from ....passes.assign_stages import AssignStages
from ....passes.decompose import Decompose
from ....passes.gradients.program import entry_of
from ....passes.pipeline_stages import PipelineStages
from ....passes.pipelining.stages import loop_over_micro_batches, operations_of
from ....passes.replicas.written import replicas_of
from .decisions import decide_stages
from .program import Program
from .training import is_step

PIPELINED = 0.6
"""How often a program for several chips becomes a pipeline."""

MOST_CUTS = 2

SCHEDULED: tuple[ScheduleName, ...] = ("grouped", "grouped", "interleaved", "sequential")
"""Schedules, which are tried in random order. Grouped pipelines have the deepest stashes."""

RECOMPUTED = 0.3
"""How often backward stages compute again what they read."""

MIRRORED = 0.8
"""How often the backward stages of a step of training mirror its forward stages."""


def pipelined(program: Program) -> Program:
    """The program of nn, or one that means the same, whose operations are stages of a pipeline.

    The seed of its sketch decides whether, and how: the stages, their chips, the schedule and what
    is computed again. Replicas of the program become copies of the pipeline. Programs for one chip
    are unchanged.
    """
    sketch, target = program.sketch, program.target
    if sketch is None or target.chips == 1:
        return program
    random = Random(f"{sketch.seed} pipeline")
    if random.random() >= PIPELINED:
        return program
    found = program.clone()
    replicas = replicas_of(found.module)
    chips = target.chips // replicas
    Decompose().apply(found.context, found.module)
    is_mirrored = is_step(found.module) and random.random() < MIRRORED
    if not (is_mirrored and _mirror(found, chips, random)):
        decide_stages(found.module, chips, random)
    for schedule in random.sample(SCHEDULED, len(SCHEDULED)):
        made = found.clone()
        try:
            PipelineStages(schedule, random.random() < RECOMPUTED, replicas).apply(
                made.context, made.module
            )
        except InputError:
            # Too few micro-batches for this schedule, or a loop that stores.
            continue
        return made
    return program


def _mirror(program: Program, chips: int, random: Random) -> bool:
    """Cut a step of training before random nodes, as users do. Returns whether that is possible."""
    names = _nodes(program.module)
    cuts = tuple(random.sample(names, min(random.randint(1, MOST_CUTS), len(names))))
    own = tuple(random.randrange(chips) for _ in range(len(cuts) + 1))
    if not cuts:
        return False
    try:
        AssignStages(cuts, chips=own, target=program.target.spelling()).apply(
            program.context, program.module
        )
    except (InputError, DoesNotFit):
        # A node of the backward part, or the first one.
        return False
    return True


def _nodes(module: ModuleOp) -> list[str]:
    """The names of the forward nodes of a micro-batch but the first one, in the order of the
    program."""
    main = entry_of(module)
    assert main is not None
    loop = loop_over_micro_batches(main)
    block = main.body.block if loop is None else loop.body.block
    phases = Phases.of(module)
    forward = [op for op in operations_of(block) if phases.phase(op) == FORWARD]
    names = (name for op in forward for name in origin_names(op) if "/" not in name)
    _, *rest = dict.fromkeys(names) or ("",)
    return rest
