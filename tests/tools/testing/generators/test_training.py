"""Generated programs that are steps of training."""

from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from lengths import large, lengths
from xdsl.dialects.builtin import f32

from abele.dialects import control, nn
from abele.dialects.levels import NN
from abele.ir.verify import verify
from abele.passes.gradients.losses import LOSSES
from abele.passes.gradients.optimizers import OPTIMIZERS, Numbers
from abele.passes.gradients.program import entry_of, outputs_of
from abele.passes.train import SETTINGS
from abele.tools.testing import Program, bounded_run, check_pass, difference, programs
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.generators.training import (
    NUMBERS,
    PLAINEST,
    as_step,
    is_step,
    losses_of,
)
from abele.tools.testing.oracle.whole_tensors import run_on_whole_tensors
from abele.tools.testing.search.aim import Aim
from abele.tools.testing.search.draw import STEPS, generated
from abele.tools.testing.search.judge import disagreement


def built(number: int) -> Program:
    sketch = replace(random_sketch(Random(f"steps {number}")), training=number + 1)
    return build(sketch, default_operators())


kept = cache(built)
"""The same program each time: no test changes one."""

expected = cache(lambda program: bounded_run(program))
"""What a program computes, for all levels to which a test lowers it."""


def steps(count: int) -> list[Program]:
    """Those of some generated programs that are steps of training."""
    return [program for i in range(count) if is_step((program := kept(i)).module)]


def test_a_third_of_all_programs_have_gradients_and_become_valid_steps():
    some = steps(30)
    assert len(some) >= 10
    for program in some:
        verify(program.module, NN)


def program_for_every_loss() -> Program:
    """A generated program that can be trained, whose results all fit every loss."""
    for number in range(100):
        sketch = random_sketch(Random(f"losses {number}"), 2)
        made = build(replace(sketch, training=0), default_operators(("nn.mul",)), (f32,))
        fits = all(
            set(losses_of(nn.shape_of(each))) == set(LOSSES)
            for each in outputs_of(entry_of(made.module)).values()
        )
        if fits and is_step(as_step(made, PLAINEST, "normal").module):
            return made
    pytest.fail("no generated program has a result that fits every loss")


def test_every_loss_optimizer_and_number_is_drawn():
    """Each loss gives steps that run: none of them has a fault."""
    losses: Counter[str] = Counter()
    program = program_for_every_loss()
    for seed in range(2, 80):
        step = as_step(program, seed, "normal")
        if is_step(step.module):
            loss = step.module.attributes[SETTINGS].data["loss"].data
            losses[loss] += 1
            if losses[loss] == 1:
                outcome = bounded_run(step)
                assert outcome.fault is None
                assert not outcome.dead_fault
    assert set(losses) == set(LOSSES)
    assert set(NUMBERS) == {name for each in OPTIMIZERS.values() for name in each.reads}
    assert set(NUMBERS) == set(Numbers.__dataclass_fields__)


@pytest.mark.parametrize(
    ("shape", "left_out"),
    [
        ((2, 3, 4), set()),
        # The blank is the one class, so a frame cannot be a label.
        ((2, 3, 1), {"ctc"}),
        ((2, 0, 4), {"ctc", "nll", "softmax_cross_entropy"}),
        ((4,), {"ctc", "nll", "softmax_cross_entropy"}),
    ],
)
def test_a_loss_is_drawn_for_outputs_that_have_what_its_target_names(
    shape: tuple[int, ...], left_out: set[str]
):
    assert set(LOSSES) - set(losses_of(shape)) == left_out


def test_a_sketch_is_always_the_same_step():
    for first, second in ((kept(i), built(i)) for i in range(12)):
        assert first.text == second.text
        assert {n: a.tobytes() for n, a in first.inputs.items()} == {
            n: a.tobytes() for n, a in second.inputs.items()
        }


def test_checks_run_steps_of_training_at_every_level():
    report = check_pass("eliminate-dead", examples=3 * STEPS, seed=0)
    assert report.steps >= 1
    assert f"{report.steps} steps of training" in str(report)
    found: list[bool] = []
    generated(
        "tile",
        4 * STEPS,
        0,
        Aim("tile"),
        lambda program: not found.append(is_step(program.source_program().module)),
    )
    assert any(found)
    assert not all(found)


@settings(max_examples=5, deadline=None)
@given(programs("nn", training=True))
def test_a_strategy_may_give_steps_alone(program: Program):
    assert is_step(program.module)
    assert any(isinstance(op, nn.StoreOp) for op in program.module.walk())


@pytest.mark.parametrize("level", ["partition", "tile", "exchange"])
@pytest.mark.parametrize("examples", lengths(5, 12))
def test_steps_of_lower_levels_compute_the_same_as_their_origins(level: str, examples: int):
    compared = 0
    for program in steps(examples):
        lower = at_level(program, level)
        if lower is not None:
            assert lower.level.name == level
            outcome = expected(program)
            assert disagreement(outcome, lower) is None
            compared += outcome.fault is None and not outcome.dead_fault
    assert compared >= examples / 5


@pytest.mark.parametrize("level", [large("partition"), large("tile"), "exchange"])
@pytest.mark.parametrize("examples", lengths(10, 30))
def test_several_steps_in_a_run_compute_the_same_at_each_level(level: str, examples: int):
    compared = 0
    for program in steps(examples):
        loops = (op for op in program.module.walk() if isinstance(op, control.RepeatOp))
        if not any(op.runs is not None for op in loops):
            continue
        lower = at_level(program, level)
        if lower is not None:
            right = expected(program)
            assert disagreement(right, lower) is None
            if right.fault is None and not right.dead_fault:
                found = run_on_whole_tensors(lower, lambda step: None)
                assert difference(right, found) is None
                compared += 1
    assert compared >= examples / 10
