"""What all operations of nn share: tensors of static shape, and inferred result types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast, overload

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
    f32,
    f64,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation, result_def, traits_def, var_result_def
from xdsl.traits import Pure

from ...ir.geometry.space import AxisMap, Dim, Division, Rule
from ...ir.number_attr import float_attr, integer_attr, integers_attr
from ...ir.support.cached_by_identity import cached_by_identity
from ...ir.tensor_type import tensor_type
from ...ir.unmet import Unmet
from ...ir.upstream import (
    AttributeVariable,
    CustomDirective,
    NoneAttr,
    Parser,
    ParsingState,
    Printer,
    PrintingState,
    VerifyException,
    irdl_custom_directive,
)
from ...ir.xdsl.cached_by_form import cached_by_form
from ...ir.xdsl.flat_operands import flat_operands
from ..dtypes import STORED, numpy_dtype
from ..numbers import number_text, parse_number
from ..scalar_functions import FUNCTIONS
from ..structured import Composite, Structured
from ..tensor_limits import check_tensor_limits

Shape = tuple[int, ...]

MOST_POSITIONS = (1 << 31) - 1
"""The most elements of a tensor in which positions are counted, as i32."""

INTEGERS = DenseArrayBase.constr(i64)
"""A property that is a list of integers, printed [1, 2]."""

NUMBER = FloatAttr.constr(f64)
"""A property that is a number, printed 0.5 by custom<Number>."""

INTEGER = IntegerAttr.constr(i64)
"""A property that is an integer, printed 2."""


def integers(values: Iterable[int]) -> DenseArrayBase[IntegerType]:
    """A list of integers as a property."""
    return integers_attr(values)


def wide_element(element: Attribute) -> Attribute:
    """The element type of intermediate sums and squares: f32 for narrower floats.

    The mean of float16 numbers is in range, but their sum may not be.
    """
    return f32 if isinstance(element, Float16Type | BFloat16Type) else element


def number(value: float) -> FloatAttr[AnyFloat]:
    """A number as a property."""
    return float_attr(value)


def number_of(attribute: Attribute) -> float:
    """The value of a number property."""
    assert isinstance(attribute, FloatAttr)
    return attribute.value.data


def integer(value: int) -> IntegerAttr:
    """An integer as a property."""
    return integer_attr(value)


_SET = UnitAttr()


def flags(**values: bool) -> dict[str, Attribute]:
    """The flags that are set, as properties."""
    return {name: _SET for name, value in values.items() if value}


def values_of(attribute: DenseArrayBase[IntegerType]) -> Shape:
    """The values of a property that is a list of integers."""
    return tuple(attribute.get_values())


def tensor(shape: Sequence[int], element: Attribute) -> TensorType[Attribute]:
    """A tensor type."""
    return tensor_type(element, shape)


def tensor_of(value: SSAValue | Attribute) -> TensorType[Attribute]:
    """The type of a value that must be a tensor of static shape and storable elements.

    Raises VerifyException if it is anything else.
    """
    return _known(value.type if isinstance(value, SSAValue) else value)[0]


@cached_by_identity
@lru_cache(maxsize=4096)
def _known(given: Attribute) -> tuple[TensorType[Attribute], Shape]:
    """The tensor type and its shape. Cached, because few types are asked for very often."""
    if not isinstance(given, TensorType):
        raise VerifyException(f"type {given}; need a tensor")
    type_ = cast(TensorType[Attribute], given)
    shape = tuple(type_.get_shape())
    unknown = [i for i, n in enumerate(shape) if n < 0]
    if unknown:
        raise VerifyException(f"{type_}: axis {unknown[0]} has no size; nn shapes are static")
    try:
        check_tensor_limits(shape, numpy_dtype(type_.element_type).itemsize)
    except ValueError as error:
        raise VerifyException(str(error)) from None
    # The type itself, or a copy without its encoding.
    plain = isinstance(type_.encoding, NoneAttr)
    return type_ if plain else tensor(shape, type_.element_type), shape


def shape_of(value: SSAValue | Attribute) -> Shape:
    """The shape of a tensor."""
    return _known(value.type if isinstance(value, SSAValue) else value)[1]


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tensor."""
    return tensor_of(value).element_type


def same_element(*values: SSAValue) -> Attribute:
    """The element type that all tensors share. Raises VerifyException if they do not."""
    kinds = list(dict.fromkeys(element_of(v) for v in values))
    if len(kinds) > 1:
        listed = " and ".join(map(str, kinds))
        raise Unmet(f"element types {listed}; need one for all operands", f"elements {listed}")
    return kinds[0]


def normal_axis(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the front. Raises VerifyException if there is no such axis."""
    if not -rank <= axis < rank:
        allowed = f"need {-rank}..{rank - 1}" if rank else "a tensor of rank 0 has none"
        raise VerifyException(f"{what} {axis} of rank {rank}; {allowed}")
    return axis % rank


def need_length(what: str, values: Sequence[int], length: int) -> None:
    """Raise VerifyException unless a list has the wanted length."""
    if len(values) != length:
        raise Unmet(f"{what}: {len(values)} entries {list(values)}; need {length}", what)


def need_at_least(what: str, values: Sequence[int], least: int) -> None:
    """Raise VerifyException if a value is too small."""
    for i, value in enumerate(values):
        if value < least:
            raise Unmet(f"{what}: entry {i} is {value}; need {least} or more", what)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that shapes broadcast to, as in NumPy. Raises VerifyException if they do not."""
    rank = max(map(len, shapes), default=0)
    result: list[int] = []
    for axis in range(-rank, 0):
        sizes = [s[axis] for s in shapes if len(s) >= -axis]
        wide = [n for n in sizes if n != 1]
        if len(set(wide)) > 1:
            listed = " and ".join(str(list(s)) for s in shapes)
            raise VerifyException(
                f"shapes {listed}: axis {axis} has sizes {' and '.join(map(str, sizes))}; "
                "need equal sizes, or 1"
            )
        result.append(wide[0] if wide else 1)
    return tuple(result)


SPATIAL = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x")}


def spatial_names(rank: int) -> tuple[str, ...]:
    """Names of the spatial dimensions: x, or y and x, or z, y and x, or s0, s1, ..."""
    return SPATIAL.get(rank, tuple(f"s{i}" for i in range(rank)))


def axis_map(
    size: int,
    dims: Sequence[Dim],
    terms: Sequence[tuple[int, int]],
    offset: int = 0,
    *,
    divisor: int = 1,
    division: Division = "floor",
    outside: Rule = "none",
) -> AxisMap:
    """An axis map in its simplest form: without terms for dimensions of size 1 and without a rule
    for outside elements that is never used.
    """
    axis = AxisMap(
        size,
        tuple((d, a) for d, a in terms if dims[d].size != 1),
        offset,
        divisor,
        division if divisor > 1 else "floor",
        outside,
    )
    if outside == "none":
        return axis
    sizes = tuple(d.size for d in dims)
    if 0 in sizes or not axis.is_plain(sizes):
        return axis
    return AxisMap(size, axis.terms, offset)


@irdl_custom_directive
class Number(CustomDirective):
    """Prints a number in decimal. xDSL prints infinity in a form that it cannot parse."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read 1, -0.75, 1.0e-05, -inf or nan."""
        self.value.set(state, number(parse_number(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the shortest text that parses as the same number."""
        attribute = self.value.get(op)
        assert isinstance(attribute, FloatAttr)
        state.print_whitespace(printer)
        printer.print_string(number_text(attribute.value.data))

    def is_anchorable(self) -> bool:
        """Whether the number may be left out in text: it has a default."""
        return self.value.is_anchorable()

    def is_present(self, op: IRDLOperation) -> bool:
        """Whether the number is printed: always, also if it is the default."""
        return True


NOT_YET = tensor_type(i64, ())
"""The type of a result until it is inferred."""


class TensorOp(IRDLOperation, ABC):
    """An operation with one tensor result, whose type is inferred.

    A subclass without an __init__ of its own is built from its operands, as in AddReluOp(x, y). If
    a field holds several operands, pass a list with one entry per field, as in SumOp([x, [y, z]]).
    """

    result = result_def(TensorType)
    custom_directives = (Number,)

    @overload
    def __init__(
        self, *operands: SSAValue, properties: Mapping[str, Attribute | None] | None = None
    ) -> None: ...

    @overload
    def __init__(
        self,
        operands: Sequence[SSAValue | Sequence[SSAValue]],
        properties: Mapping[str, Attribute | None] | None = None,
        /,
    ) -> None: ...

    def __init__(
        self, *given: Any, properties: Mapping[str, Attribute | None] | None = None
    ) -> None:
        operands: Sequence[Any] = given
        if given and isinstance(given[0], Sequence):
            operands = cast(Sequence[Any], given[0])
            properties = given[1] if len(given) > 1 else properties
        # The type is inferred from the fields, which exist only after this.
        flat = flat_operands(type(self), operands)
        if flat is None:
            super().__init__(operands=operands, properties=properties, result_types=[NOT_YET])
        else:
            there = {name: value for name, value in (properties or {}).items() if value is not None}
            Operation.__init__(self, operands=flat, properties=there, result_types=[NOT_YET])
        try:
            self.result._type = self._inferred()  # pyright: ignore[reportPrivateUsage]
        except VerifyException:
            self.drop_all_references()
            raise

    @abstractmethod
    def infer(self) -> TensorType[Attribute]:
        """The type of the result, from types, properties and attributes alone.

        Raises VerifyException if they disagree.
        """

    @cached_by_form
    def _inferred(self) -> TensorType[Attribute]:
        return self.infer()

    def computes_with(self, element: Attribute) -> bool:
        """Whether the operation computes with a type that is only stored for most others."""
        return False

    @cached_by_form
    def _check_stored(self) -> None:
        """Raise VerifyException if elements that are only stored would be computed with."""
        if not isinstance(self, Structured | Composite):
            return
        for i, value in enumerate((*self.operands, self.result)):
            kind = element_of(value)
            if kind in STORED and not self.computes_with(kind) and not _only_moves(self):
                what = f"operand {i}" if i < len(self.operands) else "the result"
                raise Unmet(
                    f"{what} has elements {kind}, which are only stored; need a cast to and from a "
                    "type to compute in",
                    f"elements {kind}",
                )

    def verify_(self) -> None:
        """Check that the result has the type that follows from operands and properties.

        Also check that no stored-only elements are computed with.
        """
        inferred = self._inferred()
        self._check_stored()
        if tensor_of(self.result) not in self._allowed_results(inferred):
            raise VerifyException(f"result type {self.result.type}; need {inferred}")

    def _allowed_results(
        self, inferred: TensorType[Attribute]
    ) -> tuple[TensorType[Attribute], ...]:
        """The types that the result may have."""
        return (inferred,)


def _only_moves(op: TensorOp) -> bool:
    """Whether an operation's result consists of elements of its operands, or of their bits."""
    if not isinstance(op, Structured):
        return False
    body = op.structure().body
    computes = body.combiner not in (None, "pick", "last") or body.along is not None or body.then
    return FUNCTIONS[body.function].stored and not computes


class PureTensorOp(TensorOp, ABC):
    """A tensor operation that only computes its result."""

    traits = traits_def(Pure())


class TensorsOp(IRDLOperation, ABC):
    """An operation that only computes several tensors, whose types are inferred.

    Attributes:
        made: the results.
    """

    made = var_result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self, operands: Sequence[SSAValue], properties: Mapping[str, Attribute], count: int
    ):
        super().__init__(
            operands=list(operands), properties=properties, result_types=[[NOT_YET] * count]
        )
        try:
            for result, type_ in zip(self.made, self._inferred(), strict=True):
                result._type = type_  # pyright: ignore[reportPrivateUsage]
        except VerifyException:
            self.drop_all_references()
            raise

    @property
    def result(self) -> OpResult:
        """The first result."""
        return self.results[0]

    @abstractmethod
    def infer_all(self) -> Sequence[TensorType[Attribute]]:
        """The types of the results, from types, properties and attributes alone.

        Raises VerifyException if they disagree.
        """

    @cached_by_form
    def _inferred(self) -> Sequence[TensorType[Attribute]]:
        return self.infer_all()

    def verify_(self) -> None:
        """Check that the results have the types that follow from operands and properties."""
        inferred = self._inferred()
        if len(inferred) != len(self.made):
            raise VerifyException(f"{len(self.made)} results; need {len(inferred)}")
        for i, (value, type_) in enumerate(zip(self.made, inferred, strict=True)):
            if value.type != type_:
                raise VerifyException(f"result type {value.type} of result {i}; need {type_}")
