"""xDSL's printer, quicker: tensor types are put into words once."""

from __future__ import annotations

from io import StringIO
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from .upstream import Printer

_MOST_TYPES = 8192

_texts: dict[int, tuple[Attribute, str]] = {}
"""By id: a tensor type, which is kept so that no other bears its id, and its text."""


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


def _text_of(kind: TensorType[Any]) -> str:
    # By identity: to hash a type takes longer than to print it.
    known = _texts.get(id(kind))
    if known is None:
        stream = StringIO()
        kind.print_builtin(Printer(stream))
        if len(_texts) >= _MOST_TYPES:
            _texts.clear()
        known = _texts[id(kind)] = kind, stream.getvalue()
    return known[1]
