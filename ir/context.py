"""What is known about one program besides its operations: its dialects and its blobs."""

from dataclasses import dataclass, field

from .blob import BlobStore
from .level import Level
from .upstream import Context


@dataclass
class AbeleContext(Context):
    """An xDSL context that also keeps the blobs which attributes in the text refer to.

    levels: the levels that a program passes through, from the highest to the lowest.
    """

    blobs: BlobStore = field(default_factory=BlobStore)
    levels: tuple[Level, ...] = ()

    def clone(self) -> "AbeleContext":
        """A context with the same dialects, and the same store: blobs never change."""
        copy = AbeleContext(blobs=self.blobs, levels=self.levels)
        vars(copy).update(vars(super().clone()))
        return copy
