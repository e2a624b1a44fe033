"""The attribute that names an array by its digest."""

from typing import Any

from numpy.typing import NDArray
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ..ir.blob import Blob
from ..ir.context import AbeleContext


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
