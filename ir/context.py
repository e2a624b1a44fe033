"""What is known about one program besides its operations: its dialects and its blobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .blob import BlobStore
from .upstream import Context


@dataclass
class AbeleContext(Context):
    """An xDSL context that also keeps the blobs which attributes in the text refer to.

    levels: names of the dialects and operations legal at each level, the levels in the order of
    the way down.
    """

    blobs: BlobStore = field(default_factory=BlobStore)
    levels: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def clone(self) -> "AbeleContext":
        """A context with the same dialects, and the same store: blobs never change."""
        copy = AbeleContext(blobs=self.blobs, levels=self.levels)
        vars(copy).update(vars(super().clone()))
        return copy
