"""A user's extension, as text, and the command line."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from abele.ir.support.user_entries import remove_entries
from abele.tools.cli import app
from abele.tools.driver.extensions import registration

SOFT = '''
"""A softsign of one's own."""

from dataclasses import dataclass, replace

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from abele.backends.codelets.scalar import ScalarFunction, computed_by
from abele.backends.target import MK2
from abele.dialects import nn
from abele.dialects.nn import NN
from abele.dialects.nn.elementwise import UnaryOp
from abele.ir.provenance import LocatingWalker
from abele.passes.decompose import Decompose
from abele.tools.extensions import onnx_operator


@irdl_op_definition
class SoftsignOp(UnaryOp):
    """a / (1 + |a|)."""

    name = "mine.softsign"


Mine = Dialect("mine", [SoftsignOp], [])

SOFTSIGN = ScalarFunction(
    "softsign", 1, computed_by(lambda x: x / (1 + np.abs(x))), ulps=24, priced_as="exp"
)

SMALL = replace(MK2, name="small", tiles=8)


class ReluToSoftsign(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.ReluOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, SoftsignOp(op.operand))


@dataclass(frozen=True)
class SmoothRelu(ModulePass):
    """Put softsign in place of relu. nn -> nn, values change.

    limit: how many at most. share: of what.
    """

    name = "smooth-relu"
    limit: int = 3
    share: float | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        LocatingWalker(ReluToSoftsign()).rewrite_module(op)


@onnx_operator("Softsign", "com.example")
def softsign(node):
    return node.add(SoftsignOp(node[0]))
'''


RELU = """
builtin.module {
  func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> attributes {arg_names = ["x"], \
result_names = ["y"]} {
    %0 = nn.relu %x : (tensor<64xf32>) -> tensor<64xf32>
    func.return %0 : tensor<64xf32>
  }
}
"""


HEAD = """
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Mine(ModulePass):
"""


BODY = """
    def apply(self, ctx, op):
        pass
"""


@contextmanager
def loads_taken_back() -> Generator[None]:
    """A block whose extensions are removed at its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registration, "REGISTERED", {})
        try:
            yield
        finally:
            for part in registration.REGISTERED.values():
                remove_entries(part.owner)


def abele(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
