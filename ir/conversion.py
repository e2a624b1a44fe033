"""The frame of a conversion from one level to the next: a table of patterns, and one walk.

A conversion makes a new program beside the old one. Each operation of the old program is given to
the pattern of its class, which adds operations of the next level and notes what the old results
have become. Patterns are functions:

    def convert_load(op: nn.LoadOp, new: Conversion) -> None: ...

    PATTERNS = Patterns((nn.LoadOp, convert_load), ...)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from xdsl.ir import Block, Operation

from .provenance import at, locate, place
from .support.errors import InputError
from .upstream import ModuleOp

C = TypeVar("C", bound="Conversion")


class Patterns(Generic[C]):
    """What converts operations, by class.

    Args:
        rows: classes of operations, each with its pattern. The first row that an operation belongs
            to decides.
    """

    def __init__(self, *rows: tuple[type, Callable[[Any, C], None]]) -> None:
        self.rows = rows
        self._known: dict[type[Operation], Callable[[Any, C], None] | None] = {}

    def of(self, op_class: type[Operation]) -> Callable[[Any, C], None] | None:
        """The pattern of a class of operations; None if there is none."""
        if op_class not in self._known:
            self._known[op_class] = next(
                (pattern for kind, pattern in self.rows if issubclass(op_class, kind)), None
            )
        return self._known[op_class]


class Conversion:
    """A program at the next level, while it is made.

    Attributes:
        patterns: what converts operations.
        to: the name of the next level, for messages.
        block: where new operations are added.
        source: the old operation that is being converted; new ones get its location.
    """

    def __init__(self, patterns: Patterns[Any], to: str) -> None:
        self.patterns = patterns
        self.to = to
        self.block = Block()
        self.source: Operation | None = None

    def convert(self, op: Operation) -> None:
        """Convert one operation. Raises InputError if it has no pattern."""
        self.source = op
        pattern = self.patterns.of(type(op))
        if pattern is None:
            raise self.refusal(op)
        pattern(op, self)

    def refusal(self, op: Operation) -> InputError:
        """The error for an operation without a pattern."""
        return InputError(
            f"{op.name} at {place(op)}: no conversion to {self.to}; need a pass that replaces it "
            "first"
        )

    def add(self, op: Operation, *path: str) -> Operation:
        """Add an operation, and return it.

        Args:
            path: what it does for the operation that is converted, for its location.
        """
        assert self.source is not None
        locate(op, at(self.source, *path))
        self.block.add_op(op)
        return op

    @contextmanager
    def into(self, block: Block) -> Generator[Block]:
        """Meanwhile, add operations to another block."""
        outer, source = self.block, self.source
        self.block = block
        yield block
        self.block, self.source = outer, source

    def convert_body(self, old: Block) -> Operation:
        """Convert all operations of a block but its terminator, which is returned."""
        last = old.last_op
        assert last is not None
        for op in old.ops:
            if op is not last:
                self.convert(op)
        self.source = last
        return last


def replace_body(module: ModuleOp, block: Block) -> None:
    """Give a module another block of operations."""
    module.body.detach_block(module.body.block)
    module.body.add_block(block)
