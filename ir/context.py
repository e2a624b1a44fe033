"""What is known about one program besides its operations: its dialects and its blobs."""

from dataclasses import dataclass, field

from .blob import BlobStore
from .upstream import Context


@dataclass
class AbeleContext(Context):
    """An xDSL context that also keeps the blobs which attributes in the text refer to."""

    blobs: BlobStore = field(default_factory=BlobStore)

    def clone(self) -> "AbeleContext":
        """A context with the same dialects, and the same store: blobs never change."""
        copy = AbeleContext(blobs=self.blobs)
        vars(copy).update(vars(super().clone()))
        return copy
