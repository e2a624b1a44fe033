"""The attribute that names an array by its digest."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition

from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.upstream import AttrParser, Printer
from .dtypes import numpy_dtype

_LARGEST_SAMPLE = 1 << 14


@irdl_attr_definition
class BlobAttr(Data[Blob]):
    """An array, printed as its digest and found again in the parsing context's blob store.

    Example: #abele.blob<"8f14e45fceea167a5a36dedd">
    """

    name = "abele.blob"

    @property
    def array(self) -> NDArray[Any]:
        """The array itself, read-only."""
        return self.data.array

    @classmethod
    def sample(cls, random: Random, types: Sequence[TensorType[Attribute]]) -> BlobAttr | None:
        """An array of one of the types: zeros, ones, one number, or many; None if all are large.

        Programs that rules are checked on are made of such samples.
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
        """Look the digest up; an unknown one is a ParseError that names it."""
        with parser.in_angle_brackets():
            start = parser.pos
            digest = parser.parse_str_literal("the digest of a blob")
            end = parser.pos
        blobs = parser.ctx.blobs if isinstance(parser.ctx, AbeleContext) else None
        blob = None if blobs is None else blobs.get(digest)
        if blob is None:
            known = "no blob store" if blobs is None else f"{len(blobs)} blobs, and not this one"
            parser.raise_error(f'unknown blob "{digest}": the context has {known}', start, end)
        return blob

    def print_parameter(self, printer: Printer) -> None:
        """Print the digest, never the contents."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.digest)
