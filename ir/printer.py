"""xDSL's printer, quicker: tensor types, which are hashed once, are put into words once."""

from __future__ import annotations

from functools import lru_cache
from io import StringIO

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from .upstream import Printer


class TextPrinter(Printer):
    """Prints the same text as xDSL's, to a stream."""

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an attribute."""
        if type(attribute) is TensorType:
            self.print_string(_text_of(attribute))
        else:
            super().print_attribute(attribute)

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Print a text; new lines in it are indented, by indent if it is given."""
        if "\n" in text or self.stream is None:
            super().print_string(text, indent=indent)
        else:
            self._current_column += len(text)
            self.stream.write(text)


@lru_cache(maxsize=8192)
def _text_of(kind: TensorType[Attribute]) -> str:
    stream = StringIO()
    kind.print_builtin(Printer(stream))
    return stream.getvalue()
