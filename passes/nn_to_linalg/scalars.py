"""Numbers in the body of an operation of linalg: operations of arith and math."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, f32, i1
from xdsl.ir import Attribute, Block, Operation
from xdsl.irdl import IRDLOperation

from ...dialects.dtypes import numpy_dtype
from ...ir.refusals import Uncovered
from ..exporting.terms import Algebra, Term

FLOATS: Mapping[str, type[Operation]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
    "pow": math.PowFOp,
    "neg": arith.NegfOp,
    "abs": math.AbsFOp,
    "exp": math.ExpOp,
    "log": math.LogOp,
    "log1p": math.Log1pOp,
    "sqrt": math.SqrtOp,
    "tanh": math.TanhOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "round": math.RoundEvenOp,
    "erf": math.ErfOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "asin": math.AsinOp,
    "acos": math.AcosOp,
    "atan": math.AtanOp,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "asinh": math.AsinhOp,
    "acosh": math.AcoshOp,
    "atanh": math.AtanhOp,
}
"""The operations on floats."""

SIGNED: Mapping[str, type[Operation]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "div": arith.DivSIOp,
    "rem": arith.RemSIOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
    "pow": math.IPowIOp,
    "abs": math.AbsIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
    "shift_left": arith.ShLIOp,
    "shift_right": arith.ShRSIOp,
}
"""The operations on integers with a sign."""

UNSIGNED: Mapping[str, type[Operation]] = {
    **SIGNED,
    "div": arith.DivUIOp,
    "rem": arith.RemUIOp,
    "max": arith.MaxUIOp,
    "min": arith.MinUIOp,
    "shift_right": arith.ShRUIOp,
}
"""The operations on integers without a sign."""

ORDERED = {
    "less": "olt",
    "less_equal": "ole",
    "greater": "ogt",
    "greater_equal": "oge",
    "equal": "oeq",
    "not_equal": "une",
}
"""The comparisons of floats."""

SIDES = {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
"""The comparisons of integers, after the letter for the sign."""


def flat(element: Attribute) -> Attribute:
    """The element type of MLIR for one of nn: integers have no sign in their type."""
    is_whole = isinstance(element, IntegerType)
    return IntegerType(width_of(cast("Attribute", element))) if is_whole else element


def width_of(element: Attribute) -> int:
    """The bits of an integer type."""
    return cast("IntegerType", element).width.data


class Scalars(Algebra):
    """Adds operations to the body of an operation of linalg."""

    def __init__(self, block: Block, located: Callable[[Operation], None]) -> None:
        self._block = block
        self._located = located

    def emit(self, op: Operation, element: Attribute) -> Term:
        """Add an operation, whose result has an element type of nn."""
        self._located(op)
        self._block.add_op(op)
        return Term(op.results[0], element)

    def primitive(self, name: str, *operands: Term) -> Term:
        """A function of operands of one type."""
        first = operands[0]
        if name == "neg" and not first.is_float:
            return self.primitive("sub", self.like(0, first), first)
        table = FLOATS if first.is_float else UNSIGNED if first.has_no_sign else SIGNED
        if name not in table:
            raise Uncovered(f"{name} of {first.element}, which arith and math do not have")
        made = table[name].create(
            operands=[each.value for each in operands],
            result_types=[first.value.type],
            properties=_fast(table[name]),
        )
        return self.emit(made, first.element)

    def compare(self, name: str, left: Term, right: Term) -> Term:
        """A comparison."""
        if left.is_float:
            return self.emit(arith.CmpfOp(left.value, right.value, ORDERED[name]), i1)
        sign = "u" if left.has_no_sign or left.is_truth else "s"
        how = {"equal": "eq", "not_equal": "ne"}.get(name) or sign + SIDES[name]
        return self.emit(arith.CmpiOp(left.value, right.value, how), i1)

    def select(self, condition: Term, yes: Term, no: Term) -> Term:
        """One of two operands."""
        return self.emit(arith.SelectOp(condition.value, yes.value, no.value), yes.element)

    def number(self, value: float | int | bool, element: Attribute) -> Term:
        """A constant."""
        kind = flat(element)
        if isinstance(kind, AnyFloat):
            return self.emit(arith.ConstantOp(FloatAttr(float(value), kind)), element)
        width = width_of(kind)
        whole = int(value) & ((1 << width) - 1)
        if width > 1 and whole >> (width - 1):
            whole -= 1 << width
        return self.emit(arith.ConstantOp(IntegerAttr(whole, IntegerType(width))), element)

    def converted(self, operand: Term, element: Attribute) -> Term:
        """A number as another type."""
        old, new = flat(operand.element), flat(element)
        value = operand.value
        if operand.is_float and isinstance(new, AnyFloat):
            before, after = (numpy_dtype(each).itemsize for each in (old, new))
            if before == after:
                return self.converted(self.converted(operand, f32), element)
            kind = arith.ExtFOp if after > before else arith.TruncFOp
            return self.emit(kind(value, new), element)
        unsigned = Term(value, element).has_no_sign
        if operand.is_float:
            to_whole = arith.FPToUIOp if unsigned else arith.FPToSIOp
            return self.emit(to_whole(value, IntegerType(width_of(new))), element)
        if isinstance(new, AnyFloat):
            to_float = arith.UIToFPOp if operand.has_no_sign else arith.SIToFPOp
            return self.emit(to_float(value, new), element)
        before, after = width_of(old), width_of(new)
        if before == after:
            return Term(value, element)
        if before > after:
            return self.emit(arith.TruncIOp(value, IntegerType(after)), element)
        wider = arith.ExtUIOp if operand.has_no_sign else arith.ExtSIOp
        return self.emit(wider(value, IntegerType(after)), element)

    def bits(self, operand: Term, element: Attribute) -> Term:
        """The same bits as another type."""
        if flat(operand.element) == flat(element):
            return Term(operand.value, element)
        return self.emit(arith.BitcastOp(operand.value, flat(element)), element)

    def from_index(self, op: Operation, element: Attribute) -> Term:
        """An index, which an operation makes, as a number."""
        self._located(op)
        self._block.add_op(op)
        wide = IntegerType(64)
        found = self.emit(arith.IndexCastOp(op.results[0], wide), wide)
        return self.cast(found, element)

    def to_index(self, operand: Term) -> Term:
        """An integer as an index."""
        wide = self.cast(operand, IntegerType(64))
        return self.emit(arith.IndexCastOp(wide.value, IndexType()), IndexType())


def _fast(kind: type[Operation]) -> dict[str, Attribute]:
    """The flags that an operation must have: none of them allows any change of the result."""
    assert issubclass(kind, IRDLOperation)
    defined = kind.get_irdl_definition().properties
    found: dict[str, Attribute] = {}
    if "fastmath" in defined:
        found["fastmath"] = arith.FastMathFlagsAttr("none")
    if "overflowFlags" in defined:
        found["overflowFlags"] = arith.IntegerOverflowAttr("none")
    return found
