"""Strategies for programs of the tile level with any division of cells among workers."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
from xdsl.dialects.builtin import ModuleOp

from abele.dialects.abele import PlanAttr
from abele.dialects.steps import Vertices
from abele.ir.pass_manager import parse_pipeline
from abele.passes.pipelines import PASSES

from .strategies import planned_programs

DOWN = "convert-nn-to-partition,convert-partition-to-tile"


@st.composite
def tile_programs(draw: st.DrawFn) -> ModuleOp:
    """Programs of the tile level with any division of cells among workers."""
    program = draw(planned_programs())
    for each in parse_pipeline(DOWN, PASSES):
        each.apply(program.context, program.module)
    for op in program.module.walk():
        if isinstance(op, Vertices) and draw(st.booleans()):
            workers = tuple(
                draw(st.integers(1, 3)) if d.kind == "parallel" else 1 for d in op.space.data.dims
            )
            op.properties["plan"] = PlanAttr(replace(op.plan.data, workers=workers))
    return program.module
