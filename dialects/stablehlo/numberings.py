"""The attributes of StableHLO that say what the axes of operands are for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition

from ...ir.upstream import AttrParser, Printer

Axes = tuple[int, ...]
"""Axes of a tensor, counted from 0."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class ConvAxes:
    """What the axes of a convolution's operands and result are for.

    The text lists the axes of each tensor in order: b is the batch, f the features, i and o those
    that a kernel takes and makes, and numbers are spatial axes.

    Attributes:
        image: the axes of the batch and of the features in the image, and its spatial axes.
        kernel: the axes of the features that it takes and of those that it makes, and its spatial
            axes.
        result: as for the image.
    """

    image: tuple[int, int, Axes]
    kernel: tuple[int, int, Axes]
    result: tuple[int, int, Axes]


IMAGE, KERNEL = ("b", "f"), ("i", "o")
"""The letters of the two axes that are not spatial."""


def _axes_of(parser: AttrParser, letters: tuple[str, str]) -> tuple[int, int, Axes]:
    """The axes that one list of letters and numbers says."""
    start = parser.pos

    def entry() -> str:
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        return parser.parse_identifier() if number is None else str(number)

    found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, entry)
    spatial = [str(i) for i in range(len(found) - 2)]
    if sorted(found) != sorted((*letters, *spatial)):
        need = ", ".join((*letters, *spatial))
        parser.raise_error(f"axes {', '.join(found)}; need each of {need} once", start, parser.pos)
    first, second = (found.index(each) for each in letters)
    return first, second, tuple(found.index(each) for each in spatial)


def _text_of(axes: tuple[int, int, Axes], letters: tuple[str, str]) -> str:
    first, second, spatial = axes
    names = {first: letters[0], second: letters[1]} | {a: str(i) for i, a in enumerate(spatial)}
    return f"[{', '.join(names[i] for i in range(len(names)))}]"


@irdl_attr_definition
class ConvAttr(Data[ConvAxes]):
    """What the axes of a convolution's operands and result are for.

    Example: #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>
    """

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConvAxes:
        """Read the three lists of axes, which have one length."""
        with parser.in_angle_brackets():
            start = parser.pos
            image = _axes_of(parser, IMAGE)
            parser.parse_characters("x")
            kernel = _axes_of(parser, KERNEL)
            parser.parse_punctuation("->")
            result = _axes_of(parser, IMAGE)
            if not len(image[2]) == len(kernel[2]) == len(result[2]):
                parser.raise_error("need as many axes in each list", start, parser.pos)
        return ConvAxes(image, kernel, result)

    def print_parameter(self, printer: Printer) -> None:
        """Print the three lists."""
        image, kernel = _text_of(self.data.image, IMAGE), _text_of(self.data.kernel, KERNEL)
        printer.print_string(f"<{image}x{kernel}->{_text_of(self.data.result, IMAGE)}>")


def _parsed(cls: Callable[..., _T], names: Sequence[str], parser: AttrParser) -> _T:
    """A record of lists and numbers, each written `name = value`; those left out are empty."""
    found: dict[str, Any] = {}

    def entry() -> None:
        start = parser.pos
        name = parser.parse_identifier()
        if name not in names or name in found:
            parser.raise_error(f"{name}; need one of {', '.join(names)}, once", start, parser.pos)
        parser.parse_punctuation("=")
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if number is None:
            each = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE,
                lambda: parser.parse_integer(allow_boolean=False, allow_negative=False),
            )
            number = tuple(each)
        if isinstance(number, int) != (name == "index_vector_dim"):
            parser.raise_error(f"{name}: need a list of axes", start, parser.pos)
        found[name] = number

    parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry)
    return cls(**found)


def _printed(record: Any, printer: Printer) -> None:
    """Print a record as _parsed reads it, without what is empty."""
    parts = [
        f"{each.name} = {value if isinstance(value, int) else list(cast(Axes, value))}"
        for each in fields(record)
        if (value := getattr(record, each.name)) != () and (value or each.default != value)
    ]
    printer.print_string(f"<{', '.join(parts)}>")


def _names(cls: Any) -> list[str]:
    return [each.name for each in fields(cls)]


@dataclass(frozen=True)
class DotAxes:
    """Which axes of two tensors are multiplied.

    Attributes:
        lhs_batching_dimensions: of the first tensor; each is one with that of the second tensor.
        rhs_batching_dimensions: of the second tensor.
        lhs_contracting_dimensions: of the first tensor; products along each and that of the second
            tensor are summed.
        rhs_contracting_dimensions: of the second tensor.
    """

    lhs_batching_dimensions: Axes = ()
    rhs_batching_dimensions: Axes = ()
    lhs_contracting_dimensions: Axes = ()
    rhs_contracting_dimensions: Axes = ()


@irdl_attr_definition
class DotAttr(Data[DotAxes]):
    """Which axes of two tensors are multiplied.

    Example: #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>
    """

    name = "stablehlo.dot"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DotAxes:
        """Read the lists of axes."""
        return _parsed(DotAxes, _names(DotAxes), parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the lists that are not empty."""
        _printed(self.data, printer)


@dataclass(frozen=True)
class GatherAxes:
    """What the axes of a gather are for.

    Attributes:
        offset_dims: axes of the result along which a slice of the operand lies.
        collapsed_slice_dims: axes of the operand that the slices do not keep.
        operand_batching_dims: axes of the operand that are one with axes of the indices.
        start_indices_batching_dims: those axes of the indices.
        start_index_map: the axis of the operand that each number of an index is for.
        index_vector_dim: the axis of the indices along which the numbers of an index lie.
    """

    offset_dims: Axes = ()
    collapsed_slice_dims: Axes = ()
    operand_batching_dims: Axes = ()
    start_indices_batching_dims: Axes = ()
    start_index_map: Axes = ()
    index_vector_dim: int = 0


@irdl_attr_definition
class GatherAttr(Data[GatherAxes]):
    """What the axes of a gather are for.

    Example: #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>
    """

    name = "stablehlo.gather"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> GatherAxes:
        """Read the lists of axes."""
        return _parsed(GatherAxes, _names(GatherAxes), parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the lists that are not empty."""
        _printed(self.data, printer)


@dataclass(frozen=True)
class ScatterAxes:
    """What the axes of a scatter are for.

    Attributes:
        update_window_dims: axes of the updates along which a slice of the operand lies.
        inserted_window_dims: axes of the operand that the slices do not have.
        input_batching_dims: axes of the operand that are one with axes of the indices.
        scatter_indices_batching_dims: those axes of the indices.
        scatter_dims_to_operand_dims: the axis of the operand that each number of an index is for.
        index_vector_dim: the axis of the indices along which the numbers of an index lie.
    """

    update_window_dims: Axes = ()
    inserted_window_dims: Axes = ()
    input_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()
    scatter_dims_to_operand_dims: Axes = ()
    index_vector_dim: int = 0


@irdl_attr_definition
class ScatterAttr(Data[ScatterAxes]):
    """What the axes of a scatter are for.

    Example: #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
    """

    name = "stablehlo.scatter"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ScatterAxes:
        """Read the lists of axes."""
        return _parsed(ScatterAxes, _names(ScatterAxes), parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the lists that are not empty."""
        _printed(self.data, printer)


NUMBERINGS = (ConvAttr, DotAttr, GatherAttr, ScatterAttr)
"""All of them."""
