"""The text of modules: a faster version of xDSL's printer, with aliases for long attributes."""

from __future__ import annotations

import os
from functools import lru_cache
from io import StringIO
from typing import IO

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, BuiltinAttribute, TypeAttribute

from .aliases import Aliased, Aliases
from .line_wrap import wrapped
from .upstream import FileLineColLoc, ModuleOp, Printer

_ESCAPES = {
    byte: f"\\{byte:02X}" for byte in range(256) if not " " <= chr(byte) <= "~" or byte == ord('"')
} | {ord("\\"): "\\\\"}
"""By byte, what stands for it in a string literal, if that is not the ASCII character."""


def module_text(
    module: ModuleOp,
    *,
    locations: bool,
    generic: bool = False,
    folders: bool = True,
    numbers: int = 0,
) -> str:
    """The text of a module, ending in a newline. Aliases come first, and long lines are broken.

    Args:
        locations: whether to print loc(...).
        generic: whether to print operations in generic form.
        folders: whether locations name files with their folders.
        numbers: arrays of at most so many elements are printed as numbers.
    """
    stream = StringIO()
    printer = TextPrinter(
        stream,
        print_debuginfo=locations,
        print_generic_format=generic,
        folders=folders,
        numbers=numbers,
    )
    printer.print_op(module)
    return "".join(f"{part}\n" for part in (*printer.definitions(), wrapped(stream.getvalue())))


def _without_folder(attribute: BuiltinAttribute) -> BuiltinAttribute:
    """A place in a file without the file's folder; any other attribute as it is."""
    if not isinstance(attribute, FileLineColLoc):
        return attribute
    name = os.path.basename(attribute.filename.data)
    return FileLineColLoc(StringAttr(name), attribute.line, attribute.column)


class TextPrinter(Printer):
    """Prints what xDSL's printer prints, to a stream, except that long attributes become aliases.

    The caller must print the definitions above the text that uses them.

    Attributes:
        aliases: those assigned so far.
        folders: whether locations name files with their folders.
        numbers: arrays of at most so many elements are printed as numbers.
    """

    def __init__(
        self,
        stream: IO[str],
        *,
        print_debuginfo: bool = False,
        print_generic_format: bool = False,
        aliases: Aliases | None = None,
        folders: bool = True,
        numbers: int = 0,
    ) -> None:
        super().__init__(
            stream, print_debuginfo=print_debuginfo, print_generic_format=print_generic_format
        )
        self._aliases = aliases or Aliases()
        self._used: set[str] = set()
        self._types: dict[Attribute, str] = {}
        self._folders = folders
        self.numbers = numbers

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an attribute, or its alias."""
        if type(attribute) is TensorType:
            self.print_string(_text_of(attribute))
        elif isinstance(attribute, BuiltinAttribute):
            shown = attribute if self._folders else _without_folder(attribute)
            shown.print_builtin(self)
        elif isinstance(attribute, Aliased) and (alias := self.alias(attribute)):
            self.print_string(alias)
        elif isinstance(attribute, TypeAttribute):
            self.print_string(self._type(attribute))
        else:
            super().print_attribute(attribute)

    def alias(self, attribute: Aliased) -> str:
        """The alias of an attribute, or "" if it is short."""
        found = self._aliases.of(attribute)
        if found:
            self._used.add(found)
        return found

    def forget_used(self) -> None:
        """Forget which aliases were printed, so that definitions() starts empty."""
        self._used.clear()
        # Printing a type from the cache does not record the aliases in it.
        self._types.clear()

    def definitions(self) -> list[str]:
        """The definitions of the aliases that were printed. Long ones are broken into lines."""
        return self._aliases.definitions(dict(zip(self._used, self._used, strict=True)))

    def _type(self, attribute: Attribute) -> str:
        """The text of a dialect's type. It is computed once for equal types."""
        known = self._types.get(attribute)
        if known is None:
            stream, column = self.stream, self._current_column
            self.stream = own = StringIO()
            try:
                super().print_attribute(attribute)
            finally:
                self.stream, self._current_column = stream, column
            known = self._types[attribute] = own.getvalue()
        return known

    def print_bytes_literal(self, bytestring: bytes) -> None:
        """Print a string literal."""
        self.print_string(f'"{bytestring.decode("latin-1").translate(_ESCAPES)}"')

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Print a text. Lines after the first are indented, by this indent if it is given."""
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
