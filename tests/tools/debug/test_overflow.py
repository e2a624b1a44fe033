"""What a target makes of numbers beyond the range is no error, and another rule is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from some_tensors import context, module_of
from typer.testing import CliRunner
from xdsl.dialects.builtin import FloatAttr

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.ir.support.number_formats import Overflow
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.round_stores import RoundStores
from abele.tools.cli import app
from abele.tools.debug.bisect.first_pass import bisect_module

OVERFLOWING = """
builtin.module {
  func.func @main(%x: tensor<64xf16>) -> (tensor<64xf16>) {
    %y = nn.scale %x by 60000.0 : (tensor<64xf16>) -> tensor<64xf16>
    func.return %y : tensor<64xf16>
  }
}
"""


def done(tmp_path: Path, command: str, *options: str) -> tuple[int, str]:
    path = tmp_path / "overflowing.mlir"
    path.write_text(OVERFLOWING)
    found = CliRunner().invoke(app, [command, str(path), "--target", "mk2:4", *options])
    return found.exit_code, found.output


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_numbers_that_the_target_clips_are_right(tmp_path: Path, rounding: str):
    code, text = done(tmp_path, "run", "--rounding", rounding, "--check", "--no-cache")
    assert code == 0, text
    code, text = done(tmp_path, "bisect", "--rounding", rounding)
    assert (code, "nothing is wrong" in text) == (0, True), text


class ToInfinity(ModulePass):
    """Lets every rounding overflow to infinity, whatever the module says."""

    name = "to-infinity"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.ToNearestOp):
                kind = each.properties["overflow"].type  # type: ignore[attr-defined]
                each.properties["overflow"] = FloatAttr(float(Overflow.INFINITY), kind)


def test_numbers_that_overflow_otherwise_than_the_target_says_are_wrong():
    module = module_of(OVERFLOWING, context())
    inputs = {"arg0": np.linspace(-4, 4, 64).astype(np.float16)}
    passes = [RoundStores("nearest", "clip"), ToInfinity()]
    target = resolve_target("mk2:4")
    right = bisect_module(module, context(), passes[:1], inputs, target)
    assert right.index is None
    wrong = bisect_module(module, context(), passes, inputs, target)
    assert wrong.passes[wrong.index or 0] == "to-infinity"
