"""Failing programs become small, stay valid, and say so if they could be smaller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from abele.dialects import nn, partition
from abele.dialects.steps import Copy, Vertices
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.tools.testing import Miscompiled, check_pass, check_pipeline
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.program import Program
from abele.tools.testing.generators.sketch import Sketch, Step
from abele.tools.testing.mutation.trial import operators
from abele.tools.testing.search import progress, shrink
from abele.tools.testing.search.valid import passes_to_the_machine, valid_like

from ..wrong_passes import SwapSub

LIMIT = 20.0

pytestmark = pytest.mark.usefixtures("patient")


def of_operators(*kinds: type, sizes: tuple[int, ...] = (5, 3), target: str = "tiny:7") -> Program:
    """A program of several operations, among them one of each kind."""
    known = default_operators()
    numbers = [known.classes.index(kind) for kind in kinds]
    steps = tuple(Step(number, seed=i) for i, number in enumerate(numbers))
    # A sketch that names its kinds replaces no step by an operation that has more to plan.
    return build(
        Sketch(steps, sizes, target=target, data="normal", seed=4, kinds=tuple(numbers)), known
    )


def has(kind: type) -> Callable[[Program], bool]:
    return lambda program: any(isinstance(op, kind) for op in program.module.walk())


def test_everything_about_a_program_becomes_smaller():
    program = of_operators(nn.AddOp, nn.ExpOp, nn.SubOp, nn.AbsOp)
    found = shrink.smallest(program, "nn", has(nn.SubOp))
    assert found.complete
    assert found.note == ""
    small = found.program
    assert operators(small.module) == 1
    assert small.target.tiles == 1
    assert all((array == 1).all() for array in (*small.inputs.values(), *small.state.values()))


def test_a_program_of_a_lower_level_is_reduced_before_it_is_lowered():
    program = of_operators(nn.AddOp, nn.ExpOp, nn.SubOp, nn.AbsOp)
    below = at_level(program, "partition")
    assert below is not None

    # Only with its source does it fail.
    def fails(candidate: Program) -> bool:
        return candidate.source is not None and has(partition.ComputeOp)(candidate)

    found = shrink.smallest(below, "partition", fails).program
    assert found.source is not None
    assert sum(isinstance(op, partition.ComputeOp) for op in found.module.walk()) == 1


def test_without_time_the_program_is_said_to_be_larger_than_it_could_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shrink, "SHRINKING", 0.0)
    program = of_operators(nn.AddOp, nn.ExpOp, nn.SubOp, nn.AbsOp)
    assert not shrink.smallest(program, "nn", has(nn.SubOp)).complete
    with pytest.raises(Miscompiled, match="not fully reduced: 0 s of CPU time") as caught:
        check_pass(SwapSub(), examples=200, seed=1, folder=tmp_path)
    assert caught.value.note


@pytest.mark.parametrize(
    ("spelling", "smaller"),
    [
        ("tiny:1", []),
        ("tiny:3", ["tiny:1", "tiny:2"]),
        ("tiny:8,workers=1", ["tiny:8", "tiny:1,workers=1", "tiny:2,workers=1"]),
        ("tiny:3,io_tiles=1", ["tiny:3", "tiny:2,io_tiles=1"]),
        ("tiny", []),
    ],
)
def test_smaller_machines(spelling: str, smaller: list[str]):
    assert list(shrink.smaller_machines(spelling))[: len(smaller)] == smaller
    assert spelling not in shrink.smaller_machines(spelling)


@dataclass(frozen=True)
class SwapSubOnTiles(ModulePass):
    """Takes a difference of split tensors to be commutative."""

    name = "swap-sub-on-tiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, partition.ComputeOp) and len(each.operands) == 2:
                left, right = each.operands
                if each.structure().body.function == "sub" and left.type == right.type:
                    each.operands = [right, left]


def test_a_wrong_pass_behind_others_has_a_small_valid_reproducer(tmp_path: Path):
    with pytest.raises(Miscompiled) as caught:
        check_pipeline(
            ["nn", "partition", SwapSubOnTiles(), "tile"], examples=400, seed=4, folder=tmp_path
        )
    found = caught.value
    assert found.blamed == "swap-sub-on-tiles"
    assert operators(found.program.module) <= 2
    loaded, _ = Program.load(tmp_path)
    assert valid_like(loaded, LIMIT)(loaded)
    check_pipeline(list(passes_to_the_machine(loaded)), replay=tmp_path)


def test_a_program_that_reads_elements_nothing_writes_is_not_valid():
    program = at_level(of_operators(nn.ExpOp, nn.SubOp), "grouped")
    assert program is not None
    valid = valid_like(program, LIMIT)
    assert valid(program)
    broken = program.clone()
    for op in tuple(broken.module.walk()):
        if isinstance(op, Vertices | Copy):
            op.detach()
            op.erase()
    assert not valid(broken)


@pytest.mark.parametrize("level", ["nn", "planned", "partition", "plain", "placed", "grouped"])
def test_the_rest_of_the_pipeline_compiles_a_program_of_any_level(level: str):
    program = at_level(of_operators(nn.ExpOp, nn.SubOp), level)
    assert program is not None
    passes = passes_to_the_machine(program)
    report = check_pipeline(list(passes), programs=only(program), examples=1)
    assert report.examples == 1
    assert valid_like(program, LIMIT)(program)


def only(program: Program) -> st.SearchStrategy[Program]:
    return st.builds(program.clone)


def test_values_become_whole_numbers_where_ones_do_not_fail():
    program = of_operators(nn.SubOp)

    def fails(candidate: Program) -> bool:
        return any(np.ptp(array.astype(float)) > 1 for array in candidate.inputs.values())

    found = shrink.smallest(program, "nn", fails).program
    assert all(np.array_equal(array, np.rint(array)) for array in found.inputs.values())


def test_ctrl_c_leaves_the_smallest_program_so_far():
    program = of_operators(nn.AddOp, nn.ExpOp, nn.SubOp, nn.AbsOp)
    seen = list[Program]()

    def fails(candidate: Program) -> bool:
        if len(seen) == 2:
            raise KeyboardInterrupt
        return has(nn.SubOp)(candidate)

    found = shrink.smallest(program, "nn", fails, better=seen.append)
    assert found.program is seen[1]
    assert operators(found.program.module) < operators(program.module)
    assert "not fully reduced: reducing it was stopped" in found.note


def test_a_reproducer_is_valid_where_smaller_programs_are_not():
    program = of_operators(nn.AddOp, nn.ExpOp, nn.SubOp, nn.AbsOp)
    small = shrink.smallest(program, "nn", has(nn.SubOp), valid=has(nn.ExpOp)).program
    assert has(nn.SubOp)(small)
    assert has(nn.ExpOp)(small)
    assert operators(small.module) == 2


def test_the_first_small_program_is_saved_and_shown_while_it_becomes_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(progress, "FIRST", 0.0)
    told = list[str]()

    def tell(text: str) -> None:
        told.append(text)
        Program.load(tmp_path)

    with pytest.raises(Miscompiled) as caught:
        check_pass(SwapSub(), examples=200, seed=1, folder=tmp_path, tell=tell)
    assert caught.value.folder == tmp_path
    (text,) = told
    assert f"saved in {tmp_path}" in text
    assert "nn.sub" in text
    assert "Ctrl-C" in text


def test_reducing_takes_as_long_as_the_caller_gives_it(tmp_path: Path):
    with pytest.raises(Miscompiled, match="not fully reduced: 0 s of CPU time"):
        check_pass(SwapSub(), examples=200, seed=1, folder=tmp_path, reduce_seconds=0.0)
