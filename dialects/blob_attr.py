"""The attribute that holds an array: its text is a digest, or the numbers of a small array."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from random import Random
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition

from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.printer import TextPrinter
from ..ir.support.number_kinds import is_unsigned, is_whole
from ..ir.tensor_type import tensor_type
from ..ir.upstream import AttrParser, Printer
from .dtypes import element_type, numpy_dtype

_LARGEST_SAMPLE = 1 << 14


@irdl_attr_definition
class BlobAttr(Data[Blob]):
    """An array, printed as its digest and found again in the parsing context's blob store.

    A small array can also be written as its numbers, row by row, and its type.

    Example: #abele.blob<"8f14e45fceea167a5a36dedd">
    """

    name = "abele.blob"

    @property
    def array(self) -> NDArray[Any]:
        """The array itself, read-only."""
        return self.data.array

    @classmethod
    def sample(cls, random: Random, types: Sequence[TensorType[Attribute]]) -> BlobAttr | None:
        """A small array of one of the types: zeros, ones, one repeated number, or random numbers.

        Returns None if all types are large. Rules are checked on programs with such samples.
        """
        small = [each for each in types if 0 <= prod(each.get_shape()) <= _LARGEST_SAMPLE]
        if not small:
            return None
        type_ = random.choice(small)
        try:
            dtype = numpy_dtype(type_.element_type)
        except ValueError:
            return None
        shape = tuple(type_.get_shape())
        number = random.choice((0, 1, 2, None))
        if number is not None:
            return cls(Blob(np.full(shape, number, dtype)))
        values = np.random.default_rng(random.randrange(1 << 16)).integers(1, 4, shape)
        return cls(Blob(values.astype(dtype)))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Blob:
        """Look a digest up, or read numbers. An unknown digest is a ParseError that names it."""
        with parser.in_angle_brackets():
            start = parser.pos
            numbers = parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, partial(_number, parser)
            )
            if numbers is not None:
                return _blob_of(numbers, parser, start)
            digest = parser.parse_str_literal(": the digest of a blob")
            return known_blob(parser, digest, start)

    def print_parameter(self, printer: Printer) -> None:
        """Print the digest, or the numbers of an array that is small enough for the printer."""
        most = printer.numbers if isinstance(printer, TextPrinter) else 0
        numbers = _numbers(self.array) if self.array.size <= most else None
        with printer.in_angle_brackets():
            if numbers is None:
                printer.print_string_literal(self.data.digest)
                return
            printer.print_string(f"[{', '.join(numbers)}] : ")
            kind = element_type(self.array.dtype)
            printer.print_attribute(tensor_type(kind, self.array.shape))


def known_blob(parser: AttrParser, digest: str, start: int) -> Blob:
    """The blob of a digest in the parsing context. A ParseError names an unknown one.

    Args:
        start: where the text of the digest begins.
    """
    blobs = parser.ctx.blobs if isinstance(parser.ctx, AbeleContext) else None
    blob = None if blobs is None else blobs.get(digest)
    if blob is None:
        known = "no blob store" if blobs is None else f"{len(blobs)} blobs, and not this one"
        parser.raise_error(f'unknown blob "{digest}": the context has {known}', start, parser.pos)
    return blob


# Numbers

_SPECIAL = ("nan", "inf")


def _number(parser: AttrParser) -> int | float:
    """A number; nan and inf are numbers too."""
    negative = parser.parse_optional_punctuation("-") is not None
    special = parser.parse_optional_keyword_in(_SPECIAL)
    found = parser.parse_number(allow_boolean=True) if special is None else float(special)
    return -found if negative else found


def _blob_of(numbers: Sequence[int | float], parser: AttrParser, start: int) -> Blob:
    """The array with these numbers and the type that follows them in the text."""
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    try:
        if not isinstance(type_, TensorType):
            raise ValueError(f"numbers of type {type_}; need a tensor")
        kind = cast("TensorType[Attribute]", type_)
        shape, dtype = kind.get_shape(), numpy_dtype(kind.element_type)
        if prod(shape) != len(numbers) or min(shape, default=0) < 0:
            raise ValueError(f"{len(numbers)} numbers of type {type_}")
        return Blob(_array(numbers, dtype).reshape(shape))
    except (ValueError, OverflowError) as error:
        parser.raise_error(str(error), start, parser.pos)


def _array(numbers: Sequence[int | float], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of numbers. Raises ValueError for a number that the dtype cannot hold."""
    if not is_whole(dtype) and dtype != np.bool_:
        with np.errstate(over="ignore"):
            return np.array(numbers, np.float64).astype(dtype)
    low = 0 if is_unsigned(dtype) else -(1 << 63)
    wide = [n if isinstance(n, int) and low <= n < low + (1 << 64) else None for n in numbers]
    if None not in wide:
        found = np.array(wide, np.uint64 if is_unsigned(dtype) else np.int64).astype(dtype)
        wide = [n if int(e) == n else None for n, e in zip(numbers, found, strict=True)]
        if None not in wide:
            return found
    raise ValueError(f"{numbers[wide.index(None)]} is no {element_type(dtype)}")


def _numbers(array: NDArray[Any]) -> list[str] | None:
    """The texts of an array's numbers; None if the texts would not give back the same bits, as for
    some NaN.
    """
    flat = array.ravel()
    whole = is_whole(array.dtype)
    if whole or array.dtype == np.bool_:
        return [str(int(each)) for each in flat] if whole else [str(bool(e)).lower() for e in flat]
    # For its own dtypes, NumPy gives the shortest text that reads as the same number.
    texts = [_float_text(each if array.dtype.kind == "f" else float(each)) for each in flat]
    again = _array([float(each) for each in texts], array.dtype)
    return texts if again.tobytes() == flat.tobytes() else None


def _float_text(value: Any) -> str:
    """The text of a float, always with a decimal point, which MLIR requires before an exponent."""
    text = str(value)
    mantissa, e, exponent = text.partition("e")
    if mantissa.strip("-") not in _SPECIAL and "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}{e}{exponent}"
