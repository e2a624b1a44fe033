"""What moves elements between variables, on all tiles at once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, SymbolRefAttr, UnitAttr, i64
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def

from ...ir.geometry.layout import Layout, with_chips_axis
from ...ir.geometry.space import Space, first_entry
from ...ir.upstream import VerifyException
from ..abele import SpaceAttr
from ..message_order import LONGEST_MESSAGE, WIDTHS, MessageOrder, MessageOrderAttr
from ..variable import references, symbols


class Copy(IRDLOperation):
    """Fill a variable with the elements of others, on all tiles at once, padding included.

    Attributes:
        reads: variables whose layouts give each element one owner.
        writes: another variable, of the same element type.
        moves: one space per variable that is read, from its tensor to the one written (transpose,
            concat, slice, pad, ...); without it, the only variable is copied as it is, row-major.
        own: the entries of the leading axis of what is read are equal, and the variable that is
            written is held by as many chips. Each chip reads the entry of its own number. The move
            takes the first entry, which is the same.
        order: the order in which messages leave their tiles; by the parts of the source where it is
            absent.
        chunk: the words after which a message ends and the next one begins; as many as a message
            can have where it is absent.
        width: the bits that a receiving tile takes at once, 32 where it is absent. With 64, both
            tiles of each pair receive the same words.
    """

    reads = prop_def(ArrayAttr[SymbolRefAttr])
    writes = prop_def(SymbolRefAttr)
    moves = opt_prop_def(ArrayAttr[SpaceAttr])
    own = opt_prop_def(UnitAttr)
    order = opt_prop_def(MessageOrderAttr)
    chunk = opt_prop_def(IntegerAttr[I64])
    width = opt_prop_def(IntegerAttr[I64])
    assembly_format = (
        "$reads `->` $writes (`moves` $moves^)? (`own` $own^)? (`order` $order^)? "
        "(`chunk` $chunk^)? (`width` $width^)? attr-dict"
    )

    def __init__(
        self,
        reads: Sequence[str],
        writes: str,
        moves: Sequence[Space] | None = None,
        *,
        own: bool = False,
        order: MessageOrder | None = None,
        chunk: int | None = None,
        width: int | None = None,
    ):
        super().__init__(
            properties={
                "reads": references(reads),
                "writes": SymbolRefAttr(writes),
                "moves": None if moves is None else ArrayAttr(map(SpaceAttr, moves)),
                "own": UnitAttr() if own else None,
                "order": None if order is None else MessageOrderAttr(order),
                "chunk": None if chunk is None else IntegerAttr(chunk, i64),
                "width": None if width is None else IntegerAttr(width, i64),
            }
        )

    @property
    def sources(self) -> list[str]:
        """Names of the variables read."""
        return symbols(self.reads)

    @property
    def destination(self) -> str:
        """Name of the variable written."""
        return self.writes.string_value()

    @property
    def destinations(self) -> list[str]:
        """The name of the variable written, as a list."""
        return [self.destination]

    @property
    def spaces(self) -> tuple[Space, ...] | None:
        """One move per source; None if the only source is copied as it is."""
        return None if self.moves is None else tuple(m.data for m in self.moves)

    @property
    def message_order(self) -> MessageOrder | None:
        """The order in which messages leave; None by the parts of the source."""
        return None if self.order is None else self.order.data

    @property
    def message_words(self) -> int:
        """The most words of a message."""
        return LONGEST_MESSAGE if self.chunk is None else self.chunk.value.data

    @property
    def lane_bits(self) -> int:
        """The bits that a receiving tile takes at once: 32 or 64."""
        return WIDTHS[0] if self.width is None else self.width.value.data

    def routes(self, written: Layout) -> tuple[Layout, tuple[Space, ...] | None]:
        """The layout that the copy fills, and the moves that say from where.

        They are those of the copy, unless each chip reads its own entry. Then the layout has a
        leading axis of chips.

        Args:
            written: the layout of the variable written.
        """
        if self.own is None:
            return written, self.spaces
        assert self.spaces is not None
        chips = self.spaces[0].operands[0].shape[0]
        filled = with_chips_axis(written, chips)
        if filled is None:
            raise VerifyException(
                f"each chip reads its own entry of {chips}; @{self.destination} is not held by so "
                "many chips"
            )
        return filled, None

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.destination in self.sources:
            raise VerifyException(f"copy of @{self.destination} onto itself")
        if not 1 <= self.message_words <= LONGEST_MESSAGE:
            raise VerifyException(
                f"chunk {self.message_words}; need 1 to {LONGEST_MESSAGE} words, which is as long "
                "as a message can be"
            )
        if self.lane_bits not in WIDTHS:
            raise VerifyException(f"width {self.lane_bits}; need {' or '.join(map(str, WIDTHS))}")
        if self.own is None:
            return
        (space,) = self.spaces if self.spaces and len(self.spaces) == 1 else (None,)
        shape = () if space is None else space.operands[0].shape
        if not shape or space != first_entry(shape):
            raise VerifyException("`own` needs one move, which takes the first entry")
