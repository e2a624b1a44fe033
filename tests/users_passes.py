"""A file of passes as a user writes them, without declarations."""

LOWER = """
from dataclasses import dataclass
from xdsl.dialects.builtin import UnitAttr
from xdsl.passes import ModulePass
from abele.passes.convert_nn_to_partition import ConvertNnToPartition

@dataclass(frozen=True)
class Lower(ModulePass):
    name = "lower-my-way"
    def apply(self, ctx, op):
        ConvertNnToPartition().apply(ctx, op)

@dataclass(frozen=True)
class Mark(ModulePass):
    name = "mark"
    def apply(self, ctx, op):
        for each in op.walk():
            each.attributes["marked"] = UnitAttr()
"""
