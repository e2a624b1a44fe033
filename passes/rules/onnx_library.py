"""Functions that rules may call on operations of ONNX."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from ...ir.rules import function, means
from ...ir.support.deferred import deferred

with deferred(__name__):  # onnx need not be installed
    from ...dialects.onnx.base import version_for


@means("program")
@function
def opset(value: SSAValue) -> int:
    """The opset of ai.onnx that the model around a value imports; 0 if it imports none."""
    around = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    return 0 if around is None else version_for(around, "") or 0
