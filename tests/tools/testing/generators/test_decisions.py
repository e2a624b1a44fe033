"""Random decisions are legal ones, however deep they are."""

from random import Random

import numpy as np

from abele.backends.target import resolve_target
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.passes.plans.derive import check_plan, final_layout, operand_layouts
from abele.passes.plans.steps import takes_steps
from abele.tools.testing.generators.decisions import random_plan

TARGET = resolve_target("tiny:8")
FLOAT = np.dtype(np.float32)


def sums(kept: tuple[int, ...], merged: tuple[int, ...]) -> Structure:
    """Sums over the last axes of a tensor."""
    sizes = (*kept, *merged)
    kinds = ("parallel",) * len(kept) + ("reduction",) * len(merged)
    dims = tuple(Dim(f"d{i}", n, kinds[i]) for i, n in enumerate(sizes))
    axes = tuple(AxisMap(n, ((i, 1),)) for i, n in enumerate(sizes))
    space = Space(dims, (AccessMap(axes),), (AccessMap(axes[: len(kept)]),))
    return Structure(space, Body("identity", "sum"))


def test_a_combine_within_a_step_has_a_combine_for_the_partials_that_it_leaves():
    structure = sums((4, 4), (4, 4))
    deep = 0
    for seed in range(1500):
        plan = random_plan(structure, FLOAT, FLOAT, TARGET, Random(seed))
        check_plan(structure, plan, FLOAT)
        operand_layouts(structure, plan)
        final_layout(structure, plan)
        further = plan.combine and plan.combine.combine
        deep += takes_steps(plan) and further is not None
    assert deep > 5
