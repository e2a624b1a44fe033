"""A program with plans, and its way down, stage by stage: the one of filecheck/convolution.mlir."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from abele.ir.context import AbeleContext
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES

from ..strategies import context

WEIGHT = np.arange(2 * 4 * 3 * 3, dtype=np.float32).reshape(2, 4, 3, 3)
BIAS = np.array([1, 2], np.float32).reshape(2, 1, 1)

NET = """
builtin.module attributes {{abele.target = "tiny:8"}} {{
  nn.state @w : tensor<2x4x3x3xf32> = <"{weight}">
  nn.state @b : tensor<2x1x1xf32> = <"{bias}">
  func.func @main(%x: tensor<1x4x6x6xf32>) -> tensor<2x9xf32>
      attributes {{arg_names = ["image"], result_names = ["out"]}} {{
    %w = nn.load @w : tensor<2x4x3x3xf32>
    %b = nn.load @b : tensor<2x1x1xf32>
    %0 = "nn.conv"(%x, %w) <{{stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>,
      pad_low = array<i64: 1, 1>, pad_high = array<i64: 0, 0>, groups = 1 : i64}}>
      {{plan = #abele.plan<split [1, 1, 3, 1, 2, 1, 1] combine split [1, 2, 3, 1, 1]>}}
      : (tensor<1x4x6x6xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x3x3xf32> loc("conv")
    %1 = "nn.add"(%0, %b) {{plan = #abele.plan<split [1, 2, 3, 1]>}}
      : (tensor<1x2x3x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x3x3xf32> loc("bias")
    %2 = "nn.transpose"(%1) <{{permutation = array<i64: 0, 2, 3, 1>}}>
      {{plan = #abele.plan<split [1, 3, 1, 1]>}}
      : (tensor<1x2x3x3xf32>) -> tensor<1x3x3x2xf32> loc("transpose")
    %3 = "nn.reshape"(%2) <{{shape = array<i64: 2, 9>}}>
      : (tensor<1x3x3x2xf32>) -> tensor<2x9xf32> loc("flatten")
    func.return %3 : tensor<2x9xf32>
  }}
}}
"""
"""A convolution whose input channels are cut in two, a bias, a transposition, a reshape."""


TO_PARTITION = "convert-nn-to-partition"
TO_TILE = f"{TO_PARTITION},convert-partition-to-tile"
TO_SCHEDULE = f"{TO_TILE},schedule-supersteps"
TO_ALLOCATION = f"{TO_SCHEDULE},allocate"
TO_SUPERSTEPS = f"{TO_ALLOCATION},group-supersteps"
TO_EXCHANGE = f"{TO_SUPERSTEPS},convert-tile-to-exchange"


def net() -> tuple[ModuleOp, AbeleContext]:
    """The program and its context."""
    made = context()
    digests = {
        "weight": made.blobs.add(WEIGHT).digest,
        "bias": made.blobs.add(BIAS).digest,
    }
    return parse_module(NET.format(**digests), made), made


def after(passes: str) -> ModuleOp:
    """The program after a pipeline."""
    module, made = net()
    for each in parse_pipeline(passes, PASSES):
        each.apply(made, module)
    return module
