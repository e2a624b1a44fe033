"""A small dialect with every feature that rules can use, and programs in it."""

from xdsl.dialects.builtin import (
    ArrayAttr,
    Builtin,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    f64,
    i64,
)
from xdsl.dialects.func import Func
from xdsl.ir import Data, Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from abele.dialects.levels import LEVELS
from abele.dialects.nn import NN
from abele.dialects.partition import Partition
from abele.ir.context import AbeleContext
from abele.ir.rules import RuleSet, Vocabulary, parse_rule_set
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify

INTEGER = IntegerAttr.constr(i64)


@irdl_op_definition
class SplitOp(IRDLOperation):
    """Two halves of a tensor."""

    name = "try.split"
    operand = operand_def(TensorType)
    low = result_def(TensorType)
    high = result_def(TensorType)
    traits = traits_def(Pure())


@irdl_op_definition
class CutOp(IRDLOperation):
    """As split, under another name."""

    name = "try.cut"
    operand = operand_def(TensorType)
    low = result_def(TensorType)
    high = result_def(TensorType)
    traits = traits_def(Pure())


@irdl_op_definition
class TunedOp(IRDLOperation):
    """Attributes of every kind."""

    name = "try.tuned"
    operand = operand_def(TensorType)
    result = result_def(TensorType)
    count = opt_prop_def(INTEGER)
    rate = prop_def(FloatAttr.constr(f64), default_value=FloatAttr(0.5, f64))
    mode = opt_prop_def(StringAttr)
    names = opt_prop_def(ArrayAttr)
    quick = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())


@irdl_attr_definition
class WordsAttr(Data[tuple[str, ...]]):
    """Some words, of which a rule writes a list."""

    name = "try.words"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        raise NotImplementedError

    def print_parameter(self, printer: Printer) -> None:
        raise NotImplementedError

    @classmethod
    def from_plain(cls, value: object) -> "WordsAttr | None":
        if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
            return None
        if "bad" in value:
            raise ValueError("no bad words")
        return cls(value) if value else None


@irdl_op_definition
class FollowedOp(IRDLOperation):
    """Further operands, which come only with an attribute."""

    name = "try.followed"
    operand = operand_def(TensorType)
    extras = var_operand_def(TensorType)
    result = result_def(TensorType)
    then = opt_prop_def(StringAttr)
    words = opt_prop_def(WordsAttr)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if self.extras and self.then is None:
            raise VerifyException("extras without then")


@irdl_op_definition
class OtherOp(IRDLOperation):
    """Some of tuned's attributes."""

    name = "try.other"
    operand = operand_def(TensorType)
    result = result_def(TensorType)
    count = opt_prop_def(INTEGER)
    names = opt_prop_def(ArrayAttr)
    traits = traits_def(Pure())


@irdl_op_definition
class LoopOp(IRDLOperation):
    """A body."""

    name = "try.loop"
    operands_ = var_operand_def(TensorType)
    result = result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), NoTerminator())


@irdl_op_definition
class BlockOp(IRDLOperation):
    """Another body."""

    name = "try.block"
    operands_ = var_operand_def(TensorType)
    result = result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure(), NoTerminator())


@irdl_op_definition
class KeepOp(IRDLOperation):
    """Keeps values alive."""

    name = "try.keep"
    operands_ = var_operand_def()


TRY = Dialect(
    "try", [SplitOp, CutOp, TunedOp, FollowedOp, OtherOp, LoopOp, BlockOp, KeepOp], [WordsAttr]
)


def some_context() -> AbeleContext:
    context = AbeleContext(levels=LEVELS[:2])
    for dialect in (Builtin, Func, NN, Partition, TRY):
        context.load_dialect(dialect)
    return context


CONTEXT = some_context()
VOCABULARY = Vocabulary(CONTEXT)


def rules_of(text: str) -> RuleSet:
    return parse_rule_set(text, VOCABULARY, "my.rw")


def module_of(body: str) -> ModuleOp:
    """A function of two tensors %a and %b of 4 x 8, and one %c of 8 x 6; T is their type."""
    lines = body.replace("TT", "(T, T) -> T").replace("T1", "(T) -> T")
    text = f"""
    func.func @main(%a: T, %b: T, %c: tensor<8x6xf32>) {{
      {lines}
      func.return
    }}"""
    module = parse_module(text.replace("T", "tensor<4x8xf32>"), CONTEXT, "in.mlir")
    verify(module)
    return module


def text_of(module: ModuleOp) -> str:
    verify(module)
    return print_module(module, locations=False)


def rewritten(rules: str, body: str) -> str:
    module = module_of(body)
    rules_of(rules).apply(module)
    return text_of(module)
