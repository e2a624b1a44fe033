"""A user's dialect whose operations models call by name."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from some_extensions import loads_taken_back

from abele.tools.extensions import load_extensions

CALLED = """
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from abele.dialects import nn
from abele.dialects.nn.base import INTEGERS, NUMBER, same_element, values_of
from abele.tools.extensions import ModelCall


@irdl_op_definition
class MixOp(nn.CompositeOp):
    '''rate * x + y; negated if told so.'''

    name = "mine.mix"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    rate = prop_def(NUMBER)
    axes = opt_prop_def(INTEGERS)
    negated = opt_prop_def(UnitAttr)

    def infer(self):
        if self.axes is not None and values_of(self.axes) == (7, 7):
            return {}["missing"]
        same_element(self.x, self.y)
        return nn.tensor_of(self.x)

    def parts(self, made):
        scaled = made("scaled", nn.ScaleOp(self.x, self.rate.value.data))
        mixed = made("mixed", nn.AddOp(scaled, self.y))
        return made("negated", nn.NegOp(mixed)) if self.negated is not None else mixed


@irdl_op_definition
class HalvesOp(IRDLOperation):
    '''Two halves of a tensor.'''

    name = "mine.halves"
    x = operand_def(TensorType)
    low = result_def(TensorType)
    high = result_def(TensorType)
    traits = traits_def(Pure())

    def infer_all(self):
        rows, *rest = nn.shape_of(self.x)
        return [nn.tensor([rows // 2, *rest], nn.element_of(self.x))] * 2


@irdl_op_definition
class UntypedOp(IRDLOperation):
    '''An operation that does not say what its result is.'''

    name = "mine.untyped"
    x = operand_def(TensorType)
    result = result_def(TensorType)


Mine = Dialect("mine", [MixOp, HalvesOp, UntypedOp], [])

BLEND = ModelCall("com.example.Blend", MixOp, {"alpha": "rate"})
PLAIN = ModelCall("blend", MixOp)
"""


@contextmanager
def called_dialect(folder: Path) -> Generator[Path]:
    """The file of the dialect, loaded within the block."""
    path = folder / "mine.py"
    path.write_text(CALLED)
    with loads_taken_back():
        load_extensions([path])
        yield path
