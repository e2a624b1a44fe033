"""Check that the examples in docstrings parse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolUserOpInterface

from ...dialects.blob_attr import BlobAttr
from ...ir.blob import Blob, BlobStore
from ...ir.upstream import MLIRTokenKind, Parser
from ..driver.context import new_context
from .documents import document


class _AnyBlob(BlobStore):
    """A store with a blob for every name: the digests of examples belong to no array."""

    def get(self, digest: str) -> Blob | None:
        """The number of blobs."""
        return Blob(np.zeros(()))


class _ExampleParser(Parser):
    """Parses operations whose operands are defined elsewhere."""

    def operations(self) -> Iterator[Operation]:
        """All operations of the text."""
        while self._current_token.kind != MLIRTokenKind.EOF:
            op = self.parse_optional_operation()
            if op is None:
                self.raise_error("an operation expected")
            yield op

    def attributes(self) -> Iterator[Attribute]:
        """All attributes or types of the text, separated by commas."""
        while self._current_token.kind != MLIRTokenKind.EOF:
            yield self.parse_attribute()
            self.parse_optional_punctuation(",")


def flaw(cls: type[Operation] | type[Attribute]) -> str:
    """The flaw in the example of an operation, attribute or type; "" if there is none."""
    text = document(cls).example
    return flaw_of(text, cls) if text else "no example"


def flaw_of(text: str, cls: type[Operation] | type[Attribute]) -> str:
    """The flaw in a text as an example of a class; "" if there is none.

    The text must parse, show the class, and be well-formed, as far as that is visible without a
    program.
    """
    context = new_context()
    context.blobs = _AnyBlob()
    # On bad text, xDSL's parser and its attributes raise all kinds of errors.
    try:
        parser = _ExampleParser(context, text, "<example>")
        if issubclass(cls, Operation):
            return _flaw_of_operations(list(parser.operations()), cls)
        shown = all(isinstance(each, cls) for each in parser.attributes())
        return "" if shown else f"shows more than {cls.name}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _flaw_of_operations(ops: list[Operation], cls: type[Operation]) -> str:
    every = [inner for op in ops for inner in op.walk()]
    if not any(isinstance(each, cls) for each in every):
        return f"shows no {cls.name}"
    for op in every:
        uses_symbols = op.has_trait(SymbolUserOpInterface)
        if not uses_symbols and not any(
            isinstance(each, BlobAttr) for each in op.properties.values()
        ):
            op.verify_()
    return ""
