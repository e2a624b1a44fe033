"""Whether the examples of docstrings are what they claim: text that parses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolUserOpInterface
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ...dialects.blob_attr import BlobAttr
from ...ir.blob import Blob, BlobStore
from ...ir.upstream import Parser
from ..driver.program import new_context
from .documents import document


class _AnyBlob(BlobStore):
    """Knows a blob by every name: an example's is no array's digest."""

    def get(self, digest: str) -> Blob | None:
        """A number."""
        return Blob(np.zeros(()))


class _ExampleParser(Parser):
    """Parses operations whose operands come from elsewhere."""

    def operations(self) -> Iterator[Operation]:
        """Every operation of the text."""
        while self._current_token.kind != MLIRTokenKind.EOF:
            op = self.parse_optional_operation()
            if op is None:
                self.raise_error("an operation expected")
            yield op

    def attributes(self) -> Iterator[Attribute]:
        """Every attribute or type of the text, with commas between."""
        while self._current_token.kind != MLIRTokenKind.EOF:
            yield self.parse_attribute()
            self.parse_optional_punctuation(",")


def flaw(cls: type[Operation] | type[Attribute]) -> str:
    """What is wrong with the example of an operation, attribute or type; "" if nothing is."""
    text = document(cls).example
    return flaw_of(text, cls) if text else "no example"


def flaw_of(text: str, cls: type[Operation] | type[Attribute]) -> str:
    """What is wrong with a text as an example of a class; "" if nothing is.

    It must parse, show the class, and be well formed as far as one can see without a program.
    """
    context = new_context()
    context.blobs = _AnyBlob()
    # xDSL's parser and the attributes it builds raise what they like on a text that is no IR.
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
        apart = op.has_trait(SymbolUserOpInterface)
        if not apart and not any(isinstance(each, BlobAttr) for each in op.properties.values()):
            op.verify_()
    return ""
