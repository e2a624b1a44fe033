"""The base of attributes that hold one frozen value."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar, cast

from xdsl.ir import Data

from ..ir.aliases import Aliased, parse_alias
from ..ir.printer import TextPrinter
from ..ir.upstream import AttrParser, ParseError, Printer

T = TypeVar("T")


class ValueAttr(Data[T], Aliased, Generic[T]):
    """An attribute that holds one frozen value, printed in angle brackets or as an alias."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> T:
        """Parse a value in angle brackets, or an alias."""
        found = parse_alias(parser, cls)
        if found is not None:
            return cast("ValueAttr[T]", found).data
        with parser.in_angle_brackets():
            try:
                return cls.parse_value(parser)
            except ValueError as error:
                if isinstance(error, ParseError):
                    raise
                parser.raise_error(str(error))

    @classmethod
    @abstractmethod
    def parse_value(cls, parser: AttrParser) -> T:
        """Parse the text between the brackets. A ValueError becomes a ParseError."""

    def print_parameter(self, printer: Printer) -> None:
        """Print the value in angle brackets, or its alias."""
        alias = printer.alias(self) if isinstance(printer, TextPrinter) else ""
        printer.print_string(alias or f"<{self.text()}>")
