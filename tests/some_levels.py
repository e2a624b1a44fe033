"""Levels as users write them: that of the tutorial, and three small ones."""

from pathlib import Path

from documents import TITLE, blocks_of

CHAPTER = Path(__file__).parents[1] / "docs" / "tutorial" / "11-add-a-level.md"

FILES = ("waves.py", "to_wave.py", "from_wave.py")
"""The files of the tutorial's level."""

HALF = '''
"""A level like nn, whose only operation an evaluator computes."""

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import RewritePattern, op_type_rewrite_pattern

from abele.dialects import nn
from abele.dialects.levels import NN, PARTITION
from abele.ir.provenance import LocatingWalker
from abele.tools.extensions import AddedLevel


@irdl_op_definition
class OfOp(nn.PureTensorOp):
    """Half of each element."""

    name = "half.of"
    x = operand_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def infer(self):
        return nn.tensor_of(self.x)


Half = Dialect("half", [OfOp], [])
HALVES = NN.extended("half")


class ToHalf(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.ScaleOp, rewriter):
        rewriter.replace(op, OfOp(op.operand))


class FromHalf(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: OfOp, rewriter):
        rewriter.replace(op, nn.ScaleOp(op.x, FACTOR))


FACTOR = 0.5


@dataclass(frozen=True)
class ConvertNnToHalf(ModulePass):
    name = "convert-nn-to-half"
    takes = NN
    leaves = HALVES

    def apply(self, ctx, op):
        LocatingWalker(ToHalf()).rewrite_module(op)


@dataclass(frozen=True)
class LowerHalves(ModulePass):
    name = "lower-halves"
    takes = HALVES

    def apply(self, ctx, op):
        LocatingWalker(FromHalf()).rewrite_module(op)


def halved(op, arrays):
    return [arrays[0] * np.float32(0.5)]


level = AddedLevel(
    HALVES,
    after=NN,
    into="convert-nn-to-half",
    out="lower-halves,plan-splits{target=TARGET},convert-nn-to-partition",
    evaluators={OfOp: halved},
)
'''

LATE = '''
"""A level like tile, whose programs run only once they are lowered."""

from dataclasses import dataclass

from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.passes import ModulePass

from abele.dialects.levels import EXCHANGE, TILE
from abele.tools.extensions import AddedLevel


@irdl_op_definition
class FenceOp(IRDLOperation):
    """Where a run begins."""

    name = "late.fence"
    assembly_format = "attr-dict"


Late = Dialect("late", [FenceOp], [])
LATE = TILE.extended("late")


@dataclass(frozen=True)
class ConvertTileToLate(ModulePass):
    name = "convert-tile-to-late"
    takes = TILE
    leaves = LATE

    def apply(self, ctx, op):
        for each in op.walk():
            if each.name == "func.func" and each.sym_name.data == "main":
                each.body.block.insert_op_before(FenceOp.create(), each.body.block.first_op)


@dataclass(frozen=True)
class DropFences(ModulePass):
    name = "drop-fences"
    takes = LATE

    def apply(self, ctx, op):
        for each in list(op.walk()):
            if isinstance(each, FenceOp):
                each.detach()
                each.erase()


level = AddedLevel(
    LATE,
    after=TILE,
    into="convert-tile-to-late",
    out="drop-fences,schedule-supersteps,allocate,group-supersteps,convert-tile-to-exchange",
    runs_lowered=True,
)
'''

RUSH = '''
"""A level after that of the tutorial, which marks where a run begins."""

from dataclasses import dataclass

from from_wave import ConvertWaveToTile
from waves import WAVE
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.passes import ModulePass

from abele.tools.extensions import AddedLevel


@irdl_op_definition
class MarkOp(IRDLOperation):
    """Where a run begins."""

    name = "rush.mark"
    assembly_format = "attr-dict"


Rush = Dialect("rush", [MarkOp], [])
RUSH = WAVE.extended("rush")


@dataclass(frozen=True)
class ConvertWaveToRush(ModulePass):
    name = "convert-wave-to-rush"
    takes = WAVE
    leaves = RUSH

    def apply(self, ctx, op):
        for each in op.walk():
            if each.name == "func.func" and each.sym_name.data == "main":
                each.body.block.insert_op_before(MarkOp.create(), each.body.block.first_op)


@dataclass(frozen=True)
class ConvertRushToTile(ConvertWaveToTile):
    name = "convert-rush-to-tile"
    takes = RUSH

    def apply(self, ctx, op):
        for each in list(op.walk()):
            if isinstance(each, MarkOp):
                each.detach()
                each.erase()
        super().apply(ctx, op)


level = AddedLevel(
    RUSH,
    after=WAVE,
    into="convert-wave-to-rush",
    out="convert-rush-to-tile",
    runs_lowered=True,
)
'''

BRANCHES = """
func.func @main(%x: tensor<16x32xf32>, %q: tensor<32x16xf32>, %k: tensor<32x16xf32>) \
-> tensor<16x16xf32> attributes {arg_names = ["x", "q", "k"], result_names = ["y"]} {
  %0 = nn.matmul %x, %q : (tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<16x16xf32> loc("q")
  %1 = nn.matmul %x, %k : (tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<16x16xf32> loc("k")
  %2 = nn.matmul %0, %1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> loc("qk")
  %3 = nn.scale %2 by 0.5 : (tensor<16x16xf32>) -> tensor<16x16xf32> loc("scale")
  func.return %3 : tensor<16x16xf32>
}
"""
"""Two products that need nothing of each other."""

TARGET = "tiny:8"


def files_of_chapter() -> dict[str, str]:
    """The first version of each file of the tutorial's level, by name."""
    found: dict[str, str] = {}
    for block in blocks_of(CHAPTER):
        title = TITLE.match(block.text)
        if title is not None and title[1] in FILES:
            found.setdefault(title[1], block.text)
    return found


WAVES = files_of_chapter()

WRONG_OUT = ("new.where[value]", "new.where[last.operands[0]]")
"""A bug of the conversion out: all results are the first one."""

WRONG_IN = (
    "    for old, new in zip(made, wave.results, strict=True):",
    "    for old, new in zip(made, [wave.results[0]] * len(made), strict=True):",
)
"""A bug of the conversion in: all readers read the first result."""


def write_waves(folder: Path, **changes: tuple[str, str]) -> list[str]:
    """Write the files of the tutorial's level; returns their paths.

    Args:
        changes: by the stem of a file, a text in it and another one for it.
    """
    paths: list[str] = []
    for name, text in WAVES.items():
        old, new = changes.get(name.removesuffix(".py"), ("", ""))
        assert old in text
        (folder / name).write_text(text.replace(old, new) if old else text)
        paths.append(str(folder / name))
    return paths


def write(folder: Path, name: str, text: str) -> str:
    """Write a file; returns its path."""
    (folder / name).write_text(text)
    return str(folder / name)
