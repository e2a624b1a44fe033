"""Rewrites by passes that use no patterns, each reported to watchers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from xdsl.ir import Operation, SSAValue

from .rewriting import Rewrite, Source
from .upstream import InsertPoint, Rewriter


class Edit(Rewrite):
    """One rewrite of a pass that uses no patterns. Each method changes the program and reports the
    change.

    The rewrite counts when the block ends without an error. Check may_rewrite first:

        if may_rewrite():
            with Edit(source_at("fold nn.add", fold), op) as edit:
                edit.insert(constant, InsertPoint.before(op))
                edit.replace(op, [constant.result])
    """

    def __enter__(self) -> Edit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.done()

    def insert(self, op: Operation, point: InsertPoint) -> None:
        """Insert a new operation."""
        Rewriter.insert_op(op, point)
        self.inserted(op)

    def replace_uses(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Replace the uses of an operation's results by these values. The operation stays.

        Args:
            values: one per result; None keeps the uses of that result.
        """
        self.replaced(op, values)
        for old, new in zip(op.results, values, strict=True):
            if new is not None:
                old.replace_all_uses_with(new)

    def erase(self, op: Operation) -> None:
        """Remove an operation whose results have no users."""
        self.removed(op)
        Rewriter.erase_op(op)

    def replace(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Replace the uses of an operation's results by these values, and remove the operation."""
        self.replace_uses(op, values)
        self.erase(op)

    def set_operand(self, op: Operation, index: int, value: SSAValue) -> None:
        """Set the operand of an operation at an index."""
        op.operands[index] = value
        self.modified(op)


@cache
def source_at(name: str, function: Callable[..., Any]) -> Source:
    """A source with this name and with the file and line of the function that makes the rewrite."""
    code = inspect.unwrap(function).__code__
    return Source(name, Path(code.co_filename).name, code.co_firstlineno)
