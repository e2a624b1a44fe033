"""Prints and parses modules, and writes and reads files of modules with their blobs."""

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from io import StringIO
from math import prod
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IntAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute, TypeAttribute

from .aliases import Aliased
from .blob import Blob, BlobStore
from .context import AbeleContext
from .dense_text import dense_elements
from .element_types import dense_dtype
from .location_text import LocationTable
from .printer import module_text
from .quick_lexer import QuickLexer
from .support.brackets import too_deep
from .support.errors import InputError
from .support.limits import ALIAS_PARTS, NESTED_BRACKETS, short
from .support.suggestions import suggestion
from .support.whole_file import whole_file
from .text_version import version_of, with_version
from .upstream import (
    UNKNOWN_LOC,
    Context,
    FileLineColLoc,
    LocationAttr,
    MLIRTokenKind,
    ModuleOp,
    ParseError,
    Parser,
    Printer,
    StringLiteral,
)

T = TypeVar("T")

MOST_REPEATED = 64
"""The most elements of a `dense<...>` that are held one by one if all are equal."""

BLOBS = "blobs"
"""The folder, beside a module's file, that holds the blobs its text names."""


def print_module(
    module: ModuleOp, locations: bool = True, *, folders: bool = True, numbers: int = 0
) -> str:
    """The text of a module, ending in a newline. Aliases for long attributes come first.

    Args:
        folders: whether locations name files with their folders.
        numbers: blobs of at most so many elements are printed as numbers, all others as digests.
    """
    return module_text(module, locations=locations, folders=folders, numbers=numbers)


def print_inline(module: ModuleOp) -> str:
    """The text of a module as xDSL prints it, with locations, without aliases or line breaks.

    It does not change when print_module's format does.
    """
    stream = StringIO()
    Printer(stream, print_debuginfo=True).print_op(module)
    return stream.getvalue() + "\n"


def parse_module(
    text: str | bytes, context: Context, path: str = "<text>", *, foreign: bool = False
) -> ModuleOp:
    """Parse the text of a module. Does not verify it.

    An operation without a location gets its place in the text. Raises InputError for any problem
    with the text, including bytes that are not UTF-8, and a version that this abele does not read.
    The message begins with "path:line:column: " if the place is known.

    Args:
        foreign: whether another program of MLIR has written the text, so that locations may be
            ranges, and names that the text defines anywhere. Of each, the name of the operation and
            the innermost place are kept.
    """
    # Locations are text, and the name of a file may be bytes that are not.
    path = os.fsencode(path).decode("utf-8", "backslashreplace")
    if isinstance(text, bytes):
        text = _decode(text, path)
    # A newer text may have anything below its version.
    version_of(text, path)
    deep = too_deep(text, "([{<")
    if deep is not None:
        row, column = text.count("\n", 0, deep) + 1, deep - text.rfind("\n", 0, deep)
        nested = NESTED_BRACKETS.refusal("nested too deeply")
        raise InputError(f"{path}:{row}:{column}: {nested}")
    locations = None
    if foreign:
        text, locations = LocationTable.taken_from(text)
    _check_aliases(text, path)
    try:
        parser = _PlacingParser(context, text, path, locations)
    except ParseError as error:
        raise _input_error(error, text, path, error.span.start, context) from None
    try:
        return parser.parse_module()
    except ParseError as error:
        raise _input_error(error, text, path, _place_of(error, text), context) from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be parsed") from None
    # Attributes raise other exceptions when they are invalid, and so does xDSL's parser on some
    # text that is far from IR.
    except Exception as error:
        raise _input_error(error, text, path, parser.pos, context) from error


_ALIAS = re.compile(r"^[ \t]*[#!]([A-Za-z_]\w*)\s*=", re.MULTILINE)
_OPERATION = re.compile(r"^[A-Za-z_\"%}]", re.MULTILINE)
_USE = re.compile(r'"(?:\\.|[^"\\\n])*"|[#!]([A-Za-z_]\w*)')


def _check_aliases(text: str, path: str) -> None:
    """Raise InputError if aliases that name aliases stand for an attribute beyond the limit."""
    starts = list(_ALIAS.finditer(text))
    parts: dict[str, int] = {}
    for each, after in zip(starts, [*starts[1:], None]):
        last = _OPERATION.search(text, each.end()) if after is None else after
        body = text[each.end() : len(text) if last is None else last.start()]
        parts[each[1]] = 1 + sum(parts.get(use[1], 0) for use in _USE.finditer(body) if use[1])
        if parts[each[1]] > ALIAS_PARTS.most:
            row = text.count("\n", 0, each.start()) + 1
            what = f"{path}:{row}: alias {each[1]} stands for {short(parts[each[1]])} aliases"
            raise InputError(ALIAS_PARTS.refusal(what))


def write_module(
    module: ModuleOp, path: str | os.PathLike[str], heading: str = "", *, numbers: int = 0
) -> None:
    """Write a module with locations to a file, and its blobs to the folder "blobs" beside it.

    Blobs are written first. Each file is complete or absent.

    Args:
        heading: comment lines for the top of the file, above the version of its text.
        numbers: as print_module.
    """
    target = Path(path)
    blobs = blobs_of(module)
    if len(blobs):
        blobs.save(target.parent / BLOBS)
    with whole_file(target) as stream:
        stream.write(heading.encode())
        stream.write(with_version(print_module(module, numbers=numbers)).encode())


def read_module(path: str | os.PathLike[str], context: AbeleContext) -> ModuleOp:
    """Read a module from a file, and add the blobs in the folder "blobs" beside it to the context.

    Raises InputError if the file is missing or cannot be read, if a blob is damaged, and as
    parse_module.
    """
    source = Path(path)
    try:
        text = source.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from None
    folder = source.parent / BLOBS
    if folder.is_dir():
        try:
            context.blobs.load(folder)
        except ValueError as error:
            raise InputError(str(error)) from error
    return parse_module(text, context, str(source))


def blobs_of(module: ModuleOp) -> BlobStore:
    """The blobs in a module's attributes, properties and types, tables of maps included."""
    store = BlobStore()
    seen: set[int] = set()
    for op in module.walk():
        types = [value.type for value in op.results]
        types += [each.type for r in op.regions for block in r.blocks for each in block.args]
        for attribute in (*op.properties.values(), *op.attributes.values(), *types):
            for blob in _blobs_in(attribute, seen):
                store.add(blob)
    return store


def _blobs_in(attribute: Attribute, seen: set[int]) -> Iterator[Blob]:
    # Operations share attributes. `seen` compares attributes by identity, because comparing their
    # values may read the contents of blobs.
    if id(attribute) in seen:
        return
    seen.add(id(attribute))
    inner: tuple[Attribute, ...] = ()
    if isinstance(attribute, ParametrizedAttribute):
        inner = attribute.parameters
    elif isinstance(attribute, ArrayAttr):
        inner = cast(ArrayAttr[Attribute], attribute).data
    elif isinstance(attribute, DictionaryAttr):
        inner = tuple(attribute.data.values())
    elif isinstance(attribute, Data):
        data = cast(Data[object], attribute).data
        if isinstance(data, Blob):
            yield data
        elif isinstance(attribute, Aliased):
            yield from attribute.blobs
    for part in inner:
        yield from _blobs_in(part, seen)


_MOST_KNOWN = 8192

_TENSOR = re.compile(r"tensor<(?:[0-9]+x)*[a-z][a-zA-Z0-9]*>")
"""A tensor type without an encoding. Equal texts of such types mean equal types."""

_SIGNATURE = re.compile(
    rf"\((?:{_TENSOR.pattern}(?:, {_TENSOR.pattern})*)?\) -> "
    rf"(?:{_TENSOR.pattern}|\({_TENSOR.pattern}(?:, {_TENSOR.pattern})*\)|\(\))"
)
"""The types of the operands and results of an operation, all of them plain tensors."""

_PROPERTIES = re.compile(r"<\{[^{}\"]*\}>")
"""Properties without dictionaries and strings in them. In one text, equal ones are equal."""

_PLAIN_LOCATION = re.compile(r'loc\((?:unknown|"[^"\\\n]*")\)')
"""A location that contains no other location."""

_types: dict[str, TypeAttribute] = {}
"""The tensor types read so far, by their text."""

_locations: dict[str, LocationAttr] = {}
"""The plain locations read so far, by their text."""


class _PlacingParser(Parser):
    """xDSL's parser, which also gives operations without a location their place in the text.

    It parses equal texts of types, properties and plain locations only once, and reads the elements
    of a `dense<...>` to the bit.

    Args:
        locations: those that the text defines, if another program has written it.
    """

    def __init__(
        self, context: Context, text: str, path: str, locations: LocationTable | None = None
    ) -> None:
        super().__init__(context, text, path)
        self._locations = locations
        self._signatures: dict[str, FunctionType] = {}
        self._properties: dict[str, dict[str, Attribute]] = {}
        self._parser_state.lexer = QuickLexer(self.lexer.input)
        self._resume_from(0)
        self._text = text
        self._path = StringAttr(path)
        self._lines = _line_starts(text)

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        # The default location is this one object; an explicit loc(unknown) is another.
        if op.location is UNKNOWN_LOC:
            line, column = _line_and_column(self._lines, start)
            op.location = FileLineColLoc(self._path, IntAttr(line), IntAttr(column))
        return op

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type, if one is next."""
        return self._known(_TENSOR, _types, super().parse_optional_type)

    def parse_optional_location(self) -> LocationAttr | None:
        """A location, if one is next."""
        if self._locations is not None:
            found = self._locations.read(self._text, self.pos)
            if found is not None:
                self._resume_from(found[1])
                return found[0]
        return self._known(_PLAIN_LOCATION, _locations, super().parse_optional_location)

    def parse_optional_function_type(self) -> FunctionType | None:
        """The types of operands and results, if they are next."""
        return self._known(_SIGNATURE, self._signatures, super().parse_optional_function_type)

    def parse_optional_properties_dict(self) -> dict[str, Attribute]:
        """Properties, if they are next."""
        found = self._known(_PROPERTIES, self._properties, super().parse_optional_properties_dict)
        return dict(found or {})

    def _known(
        self, pattern: re.Pattern[str], known: dict[str, T], parse: Callable[[], T | None]
    ) -> T | None:
        """The next value, from `known` if its text matches the pattern and was parsed before."""
        match = pattern.match(self._text, self.pos)
        if match is None:
            return parse()
        found = known.get(match[0])
        if found is not None:
            self._resume_from(match.end())
            return found
        made = parse()
        if made is not None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[match[0]] = made
        return made

    def _parse_builtin_dense_attr(self) -> DenseIntOrFPElementsAttr:
        """The elements of a tensor, to the bit. One that is repeated very often is held once."""
        start = self.pos
        # Neither numbers nor strings of bytes have a bracket in them.
        end = self._text.find(">", start)
        if self._text[start : start + 1] != "<" or end < 0:
            return super()._parse_builtin_dense_attr()
        self._resume_from(end + 1)
        self.parse_punctuation(":")
        kind = self.parse_type()
        shape = tuple(kind.get_shape()) if isinstance(kind, TensorType) else ()
        if not isinstance(kind, TensorType) or min(shape, default=0) < 0:
            self.raise_error(f"elements of {kind}; need a tensor of static shape", start, self.pos)
        type_ = cast("TensorType[Any]", kind)
        try:
            dtype = dense_dtype(type_.element_type)
        except ValueError:
            self._resume_from(start)
            return super()._parse_builtin_dense_attr()
        try:
            elements = dense_elements(self._text[start + 1 : end], shape, dtype)
        except ValueError as error:
            self.raise_error(str(error), start, end)
        if elements.size == 1 < prod(shape) <= MOST_REPEATED:
            elements = elements.repeat(prod(shape))
        # xDSL keeps true as 0xff.
        stored = elements.astype(np.uint8) * 255 if dtype == np.bool_ else elements
        return DenseIntOrFPElementsAttr(type_, BytesAttr(stored.tobytes()))

    def parse_optional_str_literal(self) -> str | None:
        """A string literal, if one is next. xDSL's lexer treats non-ASCII text as bytes."""
        text = super().parse_optional_str_literal()
        if text is None and self._current_token.kind is MLIRTokenKind.BYTES_LIT:
            span = self._current_token.span
            try:
                text = StringLiteral(span.start, span.end, span.input).bytes_contents.decode()
            except UnicodeDecodeError:
                return None
            self._consume_token(MLIRTokenKind.BYTES_LIT)
        return text


def _line_starts(text: str) -> list[int]:
    starts = [0]
    while (end := text.find("\n", starts[-1])) >= 0:
        starts.append(end + 1)
    return starts


def _line_and_column(starts: list[int], position: int) -> tuple[int, int]:
    """The line and column, both from 1, of a position in a text with these line starts."""
    line = bisect_right(starts, position)
    return line, position - starts[line - 1] + 1


def _decode(text: bytes, path: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        raise InputError(
            f"{path}:{line}:{column}: byte 0x{text[error.start]:02x} is not UTF-8; need the text "
            "of a module"
        ) from None


def _place_of(error: ParseError, text: str) -> int:
    """The position of an error. For a value that is never defined, the position of its last use.

    xDSL reports such a value at the end of its region.
    """
    undefined = re.search(r"used but not defined: \[?(%[\w$.-]+)", error.msg)
    uses = (
        [
            use.start()
            for use in re.finditer(re.escape(undefined[1]) + r"(?![\w$.-])", text)
            if use.start() < error.span.start
        ]
        if undefined
        else []
    )
    return uses[-1] if uses else error.span.start


UNKNOWN = re.compile(r"(?:Operation |')([\w.$-]+)'? is not registered$")
"""The parser's message for an operation, an attribute or a type that no dialect has."""


def _similar(message: str, context: Context) -> str:
    """The names most like an unknown one, for the end of the parser's message; or ""."""
    unknown = UNKNOWN.match(message)
    if unknown is None:
        return ""
    known = (*context.loaded_ops, *context.loaded_attrs, *context.loaded_types)
    names = [each.name for each in known if "." in each.name]
    return suggestion(unknown[1], names) if names else ""


def _input_error(
    error: Exception, text: str, path: str, position: int, context: Context
) -> InputError:
    line, column = _line_and_column(_line_starts(text), min(position, len(text)))
    if isinstance(error, ParseError):
        message = error.msg + _similar(error.msg, context)
    else:
        message = str(error) or type(error).__name__
    if message.startswith("unknown blob"):
        message += (
            f"; put the folder {BLOBS}/ beside the file, or for standard input into the current "
            "folder"
        )
    if not text.strip():
        message = "no operations; need the text of a module"
    source = text.split("\n")[line - 1]
    # A line of a generated file may be very long. Show only the part around the place.
    first = max(0, column - 1 - 60)
    shown = source[first : column + 39].rstrip("\r")
    return InputError(f"{path}:{line}:{column}: {message}\n{shown}\n{' ' * (column - 1 - first)}^")
