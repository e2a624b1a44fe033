from collections import Counter
from fnmatch import fnmatch

import numpy as np
import pytest
from some_tensors import context
from training import training_step

from abele.backends.target import resolve_target
from abele.dialects.structured import Structured
from abele.ir.provenance import origin
from abele.ir.upstream import ModuleOp
from abele.ir.xdsl.walk import operations
from abele.passes.plans.fused import FusedGroups
from abele.passes.recompute import Recompute
from abele.tools import compile_model
from abele.tools.driver.recomputation.memory_over_time import (
    Asked,
    MemoryOverTime,
    memory_over_time,
    operands,
)

TARGET = "tiny:8"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> ModuleOp:
    """A program at nn with plans."""
    path = tmp_path_factory.mktemp("step") / "step.mlir"
    path.write_text(training_step(6, 8, 16))
    kept = compile_model(path, TARGET, unbounded=True, cache=False).stages.plans
    assert kept is not None
    return kept.module


def fused(module: ModuleOp) -> ModuleOp:
    """A copy of a module in which each group is one operation."""
    module = module.clone()
    FusedGroups(module).fuse()
    return module


@pytest.fixture
def memory(planned: ModuleOp) -> MemoryOverTime:
    found = memory_over_time(fused(planned), resolve_target(TARGET))
    assert found is not None
    return found


def named(memory: MemoryOverTime, *nodes: str) -> frozenset:
    return frozenset(op for op in memory.candidates if origin(op) in nodes)


@pytest.mark.parametrize("nodes", [["conv3+tanh3"], ["conv1+tanh1", "conv2+tanh2"], ["conv*"]])
def test_the_estimate_copies_what_the_pass_copies(planned, memory, nodes: list[str]):
    ops = frozenset(
        op for op in memory.candidates if any(fnmatch(origin(op) or "", n) for n in nodes)
    )
    made = Counter(origin(op) for op, _ in memory.with_again(Asked(late=ops)).copies)
    assert made
    module = planned.clone()
    Recompute(tuple(origin(op) or "" for op in ops)).apply(context(), module)
    before, after = (
        Counter(origin(op) for op in operations(fused(each)) if isinstance(op, Structured))
        for each in (planned, module)
    )
    assert after - before == made


def test_a_value_that_is_computed_again_is_not_live_while_it_waits(memory):
    (op,) = named(memory, "conv2+tanh2")
    before, after = memory.with_again(Asked()), memory.with_again(Asked(late=frozenset([op])))
    place = after.copies[-1][1]
    first, *_ = memory.values[op].readers
    between = slice(memory.at[first] + 1, memory.at[place])
    # A copy of the weight, in the layout that the convolution reads, waits no longer either.
    ((shared,),) = [memory.relaid[s] for s in operands(op) if s in memory.relaid]
    assert memory.at[shared.readers[0]] < between.start
    assert memory.at[shared.readers[1]] >= between.stop
    assert (before.live - after.live)[between].tolist() == [
        memory.values[op].bytes + shared.bytes
    ] * (between.stop - between.start)
    assert after.cycles == memory.cycles[op] * len(after.copies) + shared.cycles


def test_the_estimated_peak_is_what_the_program_takes(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(training_step(6, 8, 16))
    exe = compile_model(path, TARGET, unbounded=True, cache=False)
    kept = exe.stages.plans
    assert kept is not None
    found = memory_over_time(fused(kept.module), exe.target)
    assert found is not None
    takes = exe.memory.max_tile_bytes - exe.target.memory.reserved_bytes
    assert found.with_again().peak == pytest.approx(takes, rel=0.1)


def test_a_copy_that_operators_share_waits_unless_the_late_one_copies_again(memory):
    (shared, *_), *_ = memory.relaid.values()
    first, last = shared.readers
    reader = memory.when.ops[last]
    assert (reader, shared) in list(memory.next_readers(memory.at[first] + 1))
    before, after = memory.with_again(), memory.with_again(Asked(anew=frozenset([reader])))
    less = np.zeros_like(before.live)
    less[memory.at[first] + 1 : memory.at[last]] = shared.bytes
    assert (before.live - after.live).tolist() == less.tolist()
    assert after.cycles == shared.cycles > 0
