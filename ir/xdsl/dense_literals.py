"""Reading the numbers of dense attributes bits first.

MLIR writes a float that has no decimal form as its bits: `dense<0xFF800000> : tensor<2xf32>` is
minus infinity. xDSL reads such a literal as a whole number, 4286578688.0, and reports no error.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat

from ..upstream import AttrParser

Element: type[Any] = AttrParser._TensorLiteralElement  # pyright: ignore[reportPrivateUsage]
"""xDSL's number of a dense literal, before its type is known."""


class BitsFirst(Element):
    """A number of a dense literal; a hexadecimal one of a float type is the bits of the float."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        """The number as an element of a type.

        Raises ParseError for bits that the float type does not have.
        """
        text: str = self.span.text
        if not isinstance(type, AnyFloat) or text[:2] not in ("0x", "0X"):
            whole = cast("Any", super()).to_type(parser, type)
            return whole
        size: int = type.compile_time_size
        if self.value >> (8 * size):
            parser.raise_error(f"{text}: {type} has {8 * size} bits", self.span.start)
        return type.unpack(int(self.value).to_bytes(size, "little"), 1)[0]


def bits_first(element: Any) -> BitsFirst:
    """The same number of a dense literal, read bits first."""
    return BitsFirst(element.is_negative, element.value, element.span)
