"""A user's dialect whose operations only rules lower, and a program of it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from abele.tools.driver.extensions.registration import uninstall

DIALECT = """
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def

from abele.dialects import nn


@irdl_op_definition
class TwiceOp(nn.PureTensorOp):
    name = "mine.twice"
    x = operand_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def infer(self):
        return nn.tensor_of(self.x)


Mine = Dialect("mine", [TwiceOp], [])
"""

RULES = """
lower twice: mine.twice(x) => nn.add(x, x)
"""

PROGRAM = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = mine.twice %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.exp %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %1 : tensor<4x6xf32>
}
"""

PASSES = "to-nn,nn,partition,tile,exchange"
"""The pipeline of the program. `to-nn` is the pass of the rules."""


@contextmanager
def written(folder: Path, rules: str = RULES) -> Generator[tuple[Path, list[Path]]]:
    """Write the files into a folder: the program, and the files to load.

    What the files define is unregistered at the end.
    """
    program, load = folder / "program.mlir", [folder / "mine.py", folder / "to_nn.rw"]
    for path, text in zip((program, *load), (PROGRAM, DIALECT, rules), strict=True):
        path.write_text(text)
    try:
        yield program, load
    finally:
        uninstall(str(load[0].resolve()))
