"""Operations of users' codelets: their maps from text, and one class of operations for each."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f16, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from ...ir.geometry.space import AccessMap, AxisMap
from ...ir.tensor_type import tensor_type
from ...ir.upstream import (
    AttributeVariable,
    Context,
    CustomDirective,
    ParseError,
    Parser,
    ParsingState,
    Printer,
    PrintingState,
    VerifyException,
    irdl_custom_directive,
)
from ...ir.xdsl.cached_by_form import cached_by_form
from ..abele import parse_axis
from ..along import Along
from ..codelets import BY_NAME, CLASSES, CellDim, Shape, Signature, is_of_class
from ..numbers import parse_number
from ..structured import Body, Structure, Structured
from .base import INTEGER, NOT_YET, NUMBER, Number, element_of, integer, number, shape_of, tensor
from .chain import CHAIN, ChainableOp
from .wanted import Wanted

# Maps from text

_DIM = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:=\s*([A-Za-z_]\w*|\d+)\s*)?(whole)?\s*")


def dims_of_text(text: str) -> tuple[CellDim, ...]:
    """The dimensions of a space: "y, x, d = 3 whole", "b, i whole, j = i whole".

    Raises ValueError for text that is not of this form.
    """
    found: list[CellDim] = []
    for part in text.split(",") if text.strip() else ():
        match = _DIM.fullmatch(part)
        if match is None:
            raise ValueError(
                f"space {text!r}: {part.strip()!r}; need dimensions such as y, d = 3 whole"
            )
        name, size, whole = match.groups()
        given = int(size) if size and size.isdigit() else size or ""
        found.append(CellDim(name, given, whole is not None))
    names = [dim.name for dim in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"space {text!r}: two dimensions are named {twice[0]}")
    return tuple(found)


def maps_of_text(
    dims: Sequence[CellDim], reads: Mapping[str, str], writes: Mapping[str, str]
) -> tuple[tuple[CellDim, ...], dict[str, AccessMap], dict[str, AccessMap]]:
    """All dimensions, and the maps of reads and writes over them, from their texts.

    An axis `:` of a read is a whole dimension of its own. That of a write is the dimension of the
    first read with a `:` at the same place.
    Raises ValueError for text that is no map, and for writes that are not single dimensions.
    """
    every, opened = list(dims), dict[int, int]()
    found: dict[str, AccessMap] = {}
    for name, text in reads.items():
        axes, fill = _axes(name, text)
        made: list[AxisMap] = []
        for i, axis in enumerate(axes):
            if axis == ":":
                every.append(CellDim(f"{name}{i}", whole=True))
                opened.setdefault(i, len(every) - 1)
                made.append(AxisMap(0, ((len(every) - 1, 1),)))
            else:
                made.append(_axis(name, axis, dims))
        found[name] = AccessMap(tuple(made), fill)
    names = [dim.name for dim in every]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"two dimensions are named {twice[0]}: an axis ':' is named after its read; need "
            "another name"
        )
    written = {name: _written(name, text, every, opened) for name, text in writes.items()}
    cells = {d for d, dim in enumerate(every) if not dim.whole}
    for name, access in written.items():
        named = [axis.terms[0][0] for axis in access.axes]
        missing = [every[d].name for d in sorted(cells - set(named))]
        if missing:
            raise ValueError(
                f"{name} does not have {missing[0]}: cells would write one element; need every "
                "dimension that is not whole"
            )
        if len(set(named)) != len(named):
            raise ValueError(f"{name} has one dimension twice")
    return tuple(every), found, written


def _axes(name: str, text: str) -> tuple[list[str], float]:
    """The texts of a map's axes, and the value of elements outside (`pad 1.0` at the end)."""
    body, pad, fill = text.partition(" pad ")
    axes = [axis.strip() for axis in body.split(",")] if body.strip() else []
    if not pad:
        return axes, 0.0
    try:
        return axes, parse_number(Parser(Context(), fill))
    except ParseError:
        raise ValueError(f"{name}: pad {fill.strip()!r}; need a number") from None


def _axis(name: str, text: str, dims: Sequence[CellDim]) -> AxisMap:
    parser = Parser(Context(), text)
    try:
        found = parse_axis(parser, {dim.name: d for d, dim in enumerate(dims)})
        rest = text[parser.pos :].strip()
    except (ParseError, ValueError) as error:
        reason = error.args[-1] if isinstance(error, ParseError) else error
        raise ValueError(f"{name}: axis {text!r}: {reason}") from None
    if rest:
        raise ValueError(f"{name}: axis {text!r}: unexpected {rest!r}")
    return found


def _written(name: str, text: str, dims: Sequence[CellDim], opened: Mapping[int, int]) -> AccessMap:
    axes, _ = _axes(name, text)
    made: list[AxisMap] = []
    for i, axis in enumerate(axes):
        if axis == ":":
            if i not in opened:
                raise ValueError(f"{name}: axis {i} is ':', and no read has ':' there; name it")
            made.append(AxisMap(0, ((opened[i], 1),)))
            continue
        found = _axis(name, axis, dims)
        if found != AxisMap(0, tuple((d, 1) for d, _ in found.terms[:1])) or not found.terms:
            raise ValueError(f"{name}: axis {axis!r} of a write; need one dimension")
        made.append(found)
    return AccessMap(tuple(made))


# Classes of operations


@irdl_custom_directive
class Whole(CustomDirective):
    """Prints an integer, also one that is the default: xDSL leaves that out."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read 2 or -1."""
        self.value.set(state, integer(parser.parse_integer(allow_boolean=False)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write it in decimal."""
        attribute = self.value.get(op)
        assert isinstance(attribute, IntegerAttr)
        state.print_whitespace(printer)
        printer.print_int(attribute.value.data)

    def is_anchorable(self) -> bool:
        """Whether the integer may be left out in text: it has a default."""
        return self.value.is_anchorable()

    def is_present(self, op: IRDLOperation) -> bool:
        """Whether the integer is printed: always, also if it is the default."""
        return True


class CodeletOp(IRDLOperation, Structured, ABC):
    """An operation of a user's codelet."""

    SIGNATURE: ClassVar[Signature]

    @property
    def signature(self) -> Signature:
        """The codelet's signature."""
        return self.SIGNATURE

    @property
    def parameters(self) -> tuple[float, ...]:
        """The values of the codelet's constants, in their order."""
        values = (self.properties[name] for name in self.signature.parameters)
        return tuple(
            float(each.value.data) for each in values if isinstance(each, IntegerAttr | FloatAttr)
        )

    def made_structure(self) -> Structure:
        """The space and body of the signature, for the shapes of the operands."""
        signature = self.signature
        shapes = [shape_of(value) for value in self.operands]
        along = Along(signature.name, parameters=self.parameters)
        return Structure(signature.space(shapes, self.parameters), Body("identity", along=along))

    def made_types(self) -> tuple[TensorType[Attribute], ...]:
        """The types of the results. Raises VerifyException for operands that do not fit."""
        signature = self.signature
        elements = signature.result_elements([element_of(value) for value in self.operands])
        space = signature.space([shape_of(value) for value in self.operands], self.parameters)
        pairs = zip(space.results, elements, strict=True)
        return tuple(tensor(access.shape, element) for access, element in pairs)

    @classmethod
    def sample(cls, wanted: Wanted) -> Operation:
        """A random operation: sizes of dimensions are drawn, and shapes follow from the maps."""
        return _sample(cls, wanted)


class OneResultOp(ChainableOp, CodeletOp, ABC):
    """An operation of a codelet with one result. Functions of it may be computed with it."""

    custom_directives = (Number, Whole)

    @property
    def is_of_one_type(self) -> bool:
        """Whether the result has the type of the first operand, in which the codelet computes."""
        return element_of(self.result) == element_of(self.operands[0])

    def infer(self) -> TensorType[Attribute]:
        """The type that follows from the maps and the element types of the signature."""
        return self.made_types()[0]

    def core_structure(self) -> Structure:
        """The space and body of the signature."""
        return self.made_structure()


class SeveralResultsOp(CodeletOp, ABC):
    """An operation of a codelet with several results."""

    custom_directives = (Number, Whole)
    traits = traits_def(Pure())

    def __init__(self, *operands: SSAValue, properties: Mapping[str, Attribute] | None = None):
        super().__init__(
            operands=operands,
            properties=properties,
            result_types=[NOT_YET] * len(self.SIGNATURE.writes),
        )
        try:
            for result, type_ in zip(self.results, self.infer_all(), strict=True):
                result._type = type_  # pyright: ignore[reportPrivateUsage]
        except VerifyException:
            self.drop_all_references()
            raise

    def infer_all(self) -> Sequence[TensorType[Attribute]]:
        """The types that follow from the maps and the element types of the signature."""
        return self.made_types()

    def verify_(self) -> None:
        """Check that the results have the types that follow from operands and parameters."""
        for i, (value, type_) in enumerate(zip(self.results, self.infer_all(), strict=True)):
            if value.type != type_:
                raise VerifyException(f"result type {value.type} of result {i}; need {type_}")

    @cached_by_form
    def structure(self) -> Structure:
        """The space and body of the signature."""
        return self.made_structure()


RESERVED = ("name", "assembly_format", "traits", "irdl_options", "loc")
"""Names that classes of operations define, besides those that all operations have."""


def check_field_names(names: Sequence[str]) -> None:
    """Raise ValueError for the name of a read, write or parameter that no operation can have."""
    for name in names:
        if hasattr(OneResultOp, name) or hasattr(SeveralResultsOp, name) or name in RESERVED:
            raise ValueError(f"{name!r} is a name that operations have themselves; need another")
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise ValueError(f"two of reads, writes and parameters are named {twice[0]}")


def op_class(signature: Signature, documentation: str) -> type[CodeletOp]:
    """The class of operations of a codelet, whose fields are named as reads, writes, parameters."""
    operands = " `,` ".join(f"${name}" for name in signature.reads)
    fields: dict[str, Any] = {name: operand_def(TensorType) for name in signature.reads}
    constants = ""
    for name in signature.parameters:
        is_whole = name in signature.whole_parameters
        fields[name] = _parameter(signature, name)
        constants += f" (`{name}` custom<{'Whole' if is_whole else 'Number'}>(${name})^)?"
    several = len(signature.writes) > 1
    if several:
        fields |= {name: result_def(TensorType) for name in signature.writes}
    prefix, _, own = signature.name.partition(".")
    made = type(
        "".join(part.title() for part in f"{prefix}_{own}".split("_")) + "Op",
        (SeveralResultsOp if several else OneResultOp,),
        {
            "__doc__": documentation,
            "__module__": prefix,
            "name": signature.name,
            "assembly_format": f"`(` {operands} `)`{constants}{CHAIN}",
            **fields,
        },
    )
    defined = cast("type[CodeletOp]", irdl_op_definition(cast("type[IRDLOperation]", made)))
    defined.SIGNATURE = signature
    return defined


def _parameter(signature: Signature, name: str) -> Any:
    """The definition of a parameter, with the default that it has where it is left out."""
    default = signature.parameters[name]
    if name in signature.whole_parameters:
        return prop_def(INTEGER, default_value=integer(int(default)))
    return prop_def(NUMBER, default_value=number(default))


def properties_of(signature: Signature, given: Mapping[str, float]) -> dict[str, Attribute]:
    """The properties of an operation with these parameters; others have their defaults.

    Raises ValueError for an unknown parameter, and for a fraction that has to be an integer.
    """
    unknown = [name for name in given if name not in signature.parameters]
    if unknown:
        known = ", ".join(signature.parameters) or "none"
        raise ValueError(f"{signature.name}: no parameter {unknown[0]}; there are: {known}")
    made: dict[str, Attribute] = {}
    for name, default in signature.parameters.items():
        value = given.get(name, default)
        is_whole = name in signature.whole_parameters
        if is_whole and int(value) != value:
            raise ValueError(f"{signature.name}: {name} is {value}; need an integer")
        made[name] = integer(int(value)) if is_whole else number(float(value))
    return made


# Samples

_FLOATS: tuple[Attribute, ...] = (f32, f16)
_INTEGERS = tuple(BY_NAME[name] for name in ("i32", "i8"))
_SAMPLED = {"floats": _FLOATS, "integers": _INTEGERS, "numbers": (*_FLOATS, *_INTEGERS)}
MOST_POINTS = 2048
"""The most points of a space that `sample` draws."""


def shapes_for(signature: Signature, sizes: Sequence[int]) -> list[Shape]:
    """Shapes of the reads with which the dimensions have these sizes, if there are any."""
    return [
        tuple(_extent(axis, sizes) for axis in access.axes) for access in signature.reads.values()
    ]


def _extent(axis: AxisMap, sizes: Sequence[int]) -> int:
    if axis.outside == "none":
        return max(axis.numerators(tuple(sizes))[1] // axis.divisor + 1, 0)
    cells = max((a * sizes[d] for d, a in axis.terms[:1]), default=1)
    return max(cells // axis.divisor, 1)


def _sample(cls: type[CodeletOp], wanted: Wanted) -> Operation:
    signature, random = cls.SIGNATURE, wanted.random
    parameters = dict(signature.parameters)
    drawn = [random.choice(wanted.sizes or (1, 2, 3, 5, 8)) for _ in signature.dims]
    sized = {dim.size for dim in signature.dims}
    for name in signature.whole_parameters & {str(each) for each in sized}:
        parameters[name] = random.choice((1, 2, 3, parameters[name]))
    at, first = -1, wanted.first
    if first is not None:
        shape = shape_of(first)
        fit = [i for i, a in enumerate(signature.reads.values()) if len(a.axes) == len(shape)]
        if not fit:
            raise ValueError(f"{signature.name} reads no tensor of {len(shape)} axes")
        at = random.choice(fit)
        for axis, n in zip(list(signature.reads.values())[at].axes, shape, strict=True):
            if axis.terms:
                drawn[axis.terms[0][0]] = n
    number_of = {dim.name: d for d, dim in enumerate(signature.dims)}
    for d, dim in enumerate(signature.dims):
        if isinstance(dim.size, int):
            drawn[d] = dim.size
        elif dim.size in parameters:
            drawn[d] = int(parameters[dim.size])
    for d, dim in enumerate(signature.dims):
        if str(dim.size) in number_of:
            drawn[d] = drawn[number_of[str(dim.size)]]
    if prod(drawn) > MOST_POINTS:
        raise ValueError(f"{prod(drawn)} points; need at most {MOST_POINTS}")
    shapes = shapes_for(signature, drawn)
    chosen: dict[str, Attribute] = {}
    types: list[TensorType[Attribute]] = []
    for i, (name, shape) in enumerate(zip(signature.reads, shapes, strict=True)):
        kind = signature.types.get(name, "floats")
        if kind in CLASSES:
            if kind not in chosen:
                given = () if first is None or i != at else (first.element_type,)
                allowed = given or wanted.elements or _SAMPLED[kind]
                fit = [each for each in allowed if is_of_class(each, kind)]
                chosen[kind] = random.choice(fit or list(_SAMPLED[kind]))
            types.append(tensor_type(chosen[kind], shape))
        else:
            types.append(tensor_type(BY_NAME[kind], shape))
    if first is not None and types[at] != first:
        raise ValueError(f"{types[at]}; need {first}")
    return cast("Callable[..., Operation]", cls)(
        *Block(arg_types=types).args, properties=properties_of(signature, parameters)
    )
