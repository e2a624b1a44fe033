"""Random programs are shared among replicas, and bugs that are planted in their sums are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lengths import lengths
from xdsl.ir import SSAValue

from abele.dialects import nn
from abele.ir.errors import InputError
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes import replicate
from abele.passes.gradients.emit import Emitter
from abele.passes.replicas.rounds import METHODS, Method, summed
from abele.passes.replicas.written import replicas_of
from abele.passes.replicate import Replicate
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.search.contracts import with_apply

CHIPS = "tiny:32,links.topology=ladder,links.chips=4"

Sum = Callable[[Emitter, SSAValue, Method], SSAValue]


def shared(ctx: Context, op: ModuleOp) -> None:
    """Share the batch of a program among as many replicas as it can, merging sums in some way."""
    if replicas_of(op) > 1:
        # The kit has shared it already.
        return
    way = METHODS[len(str(op)) % len(METHODS)]
    for replicas in (4, 2):
        try:
            Replicate(replicas, way, (), CHIPS).apply(ctx, op)
            return
        except InputError:
            continue


def sharing() -> ModulePass:
    return with_apply(Replicate(), shared)


@pytest.mark.parametrize("examples", lengths(16, 60))
def test_programs_mean_the_same_shared_among_replicas(examples: int):
    report = check_pass(sharing(), examples=examples, seed=1, training=True)
    assert report.changed > examples / 12
    assert report.steps > examples / 12


def add_a_part_twice(emit: Emitter, parts: SSAValue, method: Method) -> SSAValue:
    total = summed(emit, parts, method)
    shape = nn.shape_of(parts)
    first = emit(nn.SliceOp(parts, (0,) * len(shape), (1,) * len(shape), (1, *shape[1:])))
    return emit(nn.AddOp(total, emit.reshaped(first, shape[1:])))


def leave_out_a_round(emit: Emitter, parts: SSAValue, method: Method) -> SSAValue:
    count, *shape = nn.shape_of(parts)
    zeros = (0,) * len(shape)
    rest = emit(nn.SliceOp(parts, (1, *zeros), (1,) * (len(shape) + 1), (count - 1, *shape)))
    return summed(emit, rest, method)


@pytest.mark.parametrize("wrong", [add_a_part_twice, leave_out_a_round])
def test_the_kit_finds_a_planted_bug(wrong: Sum, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replicate, "summed", wrong)
    with pytest.raises(Miscompiled):
        _ = check_pass(sharing(), examples=200, seed=1, training=True, reduce_seconds=0)
