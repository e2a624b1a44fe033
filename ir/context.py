"""The context of one program: its dialects, its levels and its blobs."""

from dataclasses import dataclass, field

from .blob import BlobStore
from .level import Level
from .upstream import Context, MLIRLexer
from .xdsl.string_literals import read_strings_in_linear_time


@dataclass
class AbeleContext(Context):
    """An xDSL context that also holds the blobs to which attributes in IR text refer.

    Attributes:
        levels: the levels that a program passes through, from the highest to the lowest.
        sources: the levels above them, on which a program of another compiler is.
    """

    blobs: BlobStore = field(default_factory=BlobStore)
    levels: tuple[Level, ...] = ()
    sources: tuple[Level, ...] = ()

    def clone(self) -> "AbeleContext":
        """A context with the same dialects. It shares the blob store, since blobs never change."""
        copy = AbeleContext(blobs=self.blobs, levels=self.levels, sources=self.sources)
        vars(copy).update(vars(super().clone()))
        return copy


# Every program that reads or prints text of users has imported this module.
read_strings_in_linear_time(MLIRLexer)
