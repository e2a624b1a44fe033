"""Mistakes of programs for several chips are planted where they belong, and change a result."""

from functools import cache

import numpy as np
import pytest
from some_tensors import context, module_of
from staged_programs import staged_loop

from abele.backends.addresses.prove import prove_addresses
from abele.backends.faults import MachineFault
from abele.backends.machine import Machine
from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp, VerifyException
from abele.ir.verify import verify
from abele.passes.pipeline_stages import PipelineStages
from abele.passes.pipelines import PASSES
from abele.tools.testing.mutation.chip_classes import CHIP_CLASSES
from abele.tools.testing.mutation.result_mutants import RESULT_CLASSES

SITES = {each.name: each.sites for each in CHIP_CLASSES}

TARGET = "tiny:10,links.topology=ladder,links.chips=2"

T = "tensor<8x4xf32>"
SHARED = f"""
func.func @main(%x: {T}) -> tensor<4xf32> {{
  %0 = nn.tanh %x : ({T}) -> {T} loc("tanh")
  %1 = nn.reduce "sum" %0 axes [0] : ({T}) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}}
"""


@cache
def staged() -> tuple[ModuleOp, dict[str, np.ndarray]]:
    return next(found for seed in range(50) if (found := pipeline_of(seed)) is not None)


def pipeline_of(seed: int) -> tuple[ModuleOp, dict[str, np.ndarray]] | None:
    """A pipeline with a stash of several slots; None if this program has none."""
    module, inputs = staged_loop(seed)
    PipelineStages().apply(context(), module)
    return (module, inputs) if "@stash" in print_module(module) else None


@pytest.mark.parametrize("name", ["left-short-stash", "left-add-twice", "left-stale"])
def test_each_place_of_a_pipeline_gives_a_valid_program_and_some_give_a_wrong_one(name: str):
    module, inputs = staged()
    right = run_reference(module, inputs)
    count = sum(1 for _ in SITES[name](module))
    wrong = 0
    for i in range(count):
        broken = module.clone()
        [*SITES[name](broken)][i]()
        verify(broken)
        try:
            found = run_reference(broken, inputs)
        except InputError:
            # A slot that the table does not have.
            wrong += 1
            continue
        pairs = ((right.outputs, found.outputs), (right.state, found.state))
        wrong += any(not np.array_equal(a[k], b[k]) for a, b in pairs for k in a)
    assert wrong
    assert wrong > count / 2


PASSES_TO_TILE = f'plan-splits{{target="{TARGET}" shard="tanh:d0=2"}},' + ",".join(
    ("convert-nn-to-partition", "convert-partition-to-tile", "schedule-supersteps", "allocate")
)
PASSES_TO_EXCHANGE = "group-supersteps", "convert-tile-to-exchange"


def is_faulty(name: str, behind: str, number: int) -> bool:
    """Whether a program on two chips faults, or computes something else, once it is broken at a
    place behind a pass. Raises IndexError if it has no such place."""
    ctx = context()
    module = module_of(SHARED, ctx)
    for each in parse_pipeline(",".join((PASSES_TO_TILE, *PASSES_TO_EXCHANGE)), PASSES):
        each.apply(ctx, module)
        if each.name == behind:
            [*SITES[name](module)][number]()
    machine = resolve_target(TARGET)
    try:
        prove_addresses(module, machine)
        values = np.arange(32, dtype=np.float32).reshape(8, 4)
        (found,) = Machine(module, machine, strict=True).run({"arg0": values}).values()
    except (MachineFault, VerifyException):
        return True
    return not np.allclose(found, np.tanh(values).sum(0), rtol=1e-4)


def test_cells_in_a_row_are_a_fault():
    assert any(is_faulty("left-straddle", "allocate", i) for i in range(3))


def test_a_chip_that_misses_a_sync_is_a_fault():
    assert is_faulty("left-wrong-group", "group-supersteps", 0)


def test_the_classes_are_planted_in_every_pass():
    assert set(CHIP_CLASSES) <= set(RESULT_CLASSES)
