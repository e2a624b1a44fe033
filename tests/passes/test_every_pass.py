"""The property that every step of the way down keeps: the program computes the same.

Inputs and weights are small whole numbers, so every level must agree to the bit.
"""

import numpy as np
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp

from abele.backends.evaluate.partition import run_partition
from abele.backends.evaluate.tile import run_tile
from abele.backends.machine import Machine
from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects.program import verify_symbols
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module, print_module
from abele.ir.verify import verify
from abele.passes.pipelines import PASSES

from ..strategies import Program, nn_programs, planned_programs


def apply(program: Program, passes: str) -> None:
    """Run passes; after each, the module verifies, and prints and parses back the same."""
    for each in parse_pipeline(passes, PASSES):
        each.apply(program.context, program.module)
        verify(program.module)
        verify_symbols(program.module)
        text = print_module(program.module)
        assert print_module(parse_module(text, program.context)) == text


def same(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> None:
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert np.array_equal(value, found[name]), name


def run_machine(module: ModuleOp, program: Program) -> dict[str, np.ndarray]:
    machine = Machine(module, resolve_target(program.target), strict=True)
    machine.load()
    return machine.run(program.inputs)


@settings(max_examples=80)
@given(planned_programs())
def test_all_levels_compute_the_same_under_any_legal_plan(program: Program):
    expected = run_reference(program.module, program.inputs).outputs
    apply(program, "convert-nn-to-partition")
    same(expected, run_partition(program.module, program.inputs).outputs)
    apply(program, "convert-partition-to-tile")
    same(expected, run_tile(program.module, program.inputs).outputs)
    apply(program, "schedule-supersteps,allocate")
    same(expected, run_tile(program.module, program.inputs).outputs)
    apply(program, "group-supersteps")
    same(expected, run_tile(program.module, program.inputs).outputs)
    apply(program, "convert-tile-to-exchange")
    same(expected, run_machine(program.module, program))


@settings(max_examples=40)
@given(nn_programs())
def test_the_planners_own_plans_compute_the_same(program: Program):
    expected = run_reference(program.module, program.inputs).outputs
    apply(program, "decompose,fold-constants,eliminate-dead")
    same(expected, run_reference(program.module, program.inputs).outputs)
    apply(program, f'plan-splits{{target="{program.target}"}}')
    apply(
        program,
        "convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps,allocate,"
        "group-supersteps,convert-tile-to-exchange",
    )
    same(expected, run_machine(program.module, program))
