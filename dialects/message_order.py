"""The attribute that says in which order the messages of a move leave their tiles.

An order is a list of keys. A tile sends its messages from the smallest key to the largest, and
every receiver expects them in that order. The first key decides first; messages whose keys are all
equal go by source tile. A key reads the parts of the destination's grid (`d0, d1 ...`) and of the
source's (`s0, s1 ...`), numbered as in their layouts:

    order <(s1)>                                                 by the source's second dimension
    order <(sign(d0 - s0), sign(d1 - s1))>                       by direction
    order <((d0 - s0) mod 46) of [46] from [46]>                 a Latin square

It may also read the place of a message among those of its sender (`p0, p1 ...`) and among those of
its receiver (`q0, q1 ...`), one for each group of axes that depend only on each other. `p` counts
the receivers before its own, and `q` the senders before its own:

    order <((4 * p0 + p1 - q1) mod 16) of [8] from [2, 8]>       a Latin square of any overlap

A number in a key, such as that of `mod 46`, suits some grids only. So such an order says for how
many parts it was written (`of` the destination's, `from` the source's), and a move between other
grids refuses it.

Where no key is good, an order has one number for each message, its colour:

    order <colour #abele.blob<"9c1e..."> of [46] from [46]>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.irdl import irdl_attr_definition

from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.geometry.part_keys import (
    MOST,
    SIDES,
    Key,
    Numbers,
    Parts,
    Rule,
    Side,
    applied,
    part,
    total,
)
from ..ir.support.hash_once import hash_once
from ..ir.upstream import AttrParser, Parser
from .blob_attr import BlobAttr
from .value_attr import ValueAttr

MOST_KEYS = 16
"""Keys of an order."""

MOST_DEPTH = 8
"""Parentheses of a key inside each other."""

MOST_DIMENSIONS = 64
"""Dimensions of a grid that a key can name."""

LONGEST_MESSAGE = 4148
"""Words of the longest message that one send can start and continue."""

WORD_BYTES = 4
"""Bytes of a word, which is what a lane carries at once."""

WIDTHS = (32, 64)
"""Bits that a lane carries at once: those of a word, or of two where a pair of tiles receives the
same words over both of its lanes."""


@hash_once
@dataclass(frozen=True)
class MessageOrder:
    """The order in which the messages of a move leave.

    Raises ValueError unless there are either keys or colours, and unless the parts are given where
    keys or colours need them, and suit the keys.

    Attributes:
        keys: what messages are ordered by, most important first.
        colours: one number for each message, instead of keys. Messages are counted by source cell,
            and then by the first destination cell that receives them. A message that `chunk`
            splits has one colour.
        of: the parts of each dimension of the destination's grid; None if the order suits any.
        sources: the parts of each dimension of the source's grid; None if the order suits any.
    """

    keys: tuple[Key, ...] = ()
    colours: Blob | None = None
    of: tuple[int, ...] | None = None
    sources: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if bool(self.keys) == (self.colours is not None):
            raise ValueError("an order needs keys or colours, and not both")
        if len(self.keys) > MOST_KEYS:
            raise ValueError(f"an order of {len(self.keys)} keys; need at most {MOST_KEYS}")
        if self.colours is not None:
            array = self.colours.array
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise ValueError(
                    f"colours of type {array.dtype}{list(array.shape)}; need one integer for each "
                    "message"
                )
        if (self.of is None) != (self.sources is None):
            raise ValueError("parts of one side alone; write `of [...] from [...]`")
        if self.of is not None and self.sources is not None:
            self.check_parts(self.of, (self.sources,))
        elif self.colours is not None or any(key.has_numbers for key in self.keys):
            raise ValueError(
                f"({self._keys_text()}) has numbers, which suit some grids only; write for how "
                "many parts, as `of [4] from [4]`"
            )

    def check_parts(self, of: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """Raise ValueError unless the order suits a move.

        Args:
            of: the parts of each dimension of the destination's grid.
            sources: those of the grid of each source.
        """
        for each in sources:
            if self.of is not None and (self.of, self.sources) != (tuple(of), tuple(each)):
                raise ValueError(
                    f"the order is of {list(self.of)} from {list(self.sources or ())} parts, but "
                    f"the move is of {list(of)} from {list(each)}; order it again, or remove the "
                    "order"
                )
            for key in self.keys:
                for read in key.parts():
                    if read.side in "pq":
                        continue
                    parts = of if read.side == "d" else each
                    if read.dim >= len(parts):
                        side = "destination" if read.side == "d" else "source"
                        known = ", ".join(f"{read.side}{i}" for i in range(len(parts)))
                        raise ValueError(
                            f"key {key.text()}: no {read.text()}; the grid of the {side} has "
                            f"{known or 'no dimension'}"
                        )

    @property
    def reads_places(self) -> bool:
        """Whether a key reads the place of a message."""
        return any(read.side in "pq" for key in self.keys for read in key.parts())

    def check_groups(self, groups: int) -> None:
        """Raise ValueError if a key reads the place in a group of axes that a move does not have.

        Args:
            groups: of the move.
        """
        for key in self.keys:
            for read in key.parts():
                if read.side in "pq" and read.dim >= groups:
                    known = ", ".join(f"{read.side}{i}" for i in range(groups))
                    raise ValueError(
                        f"key {key.text()}: no {read.text()}; the groups of axes of the move have "
                        f"{known or 'no place'}"
                    )

    def values(self, numbers: Numbers) -> list[Parts]:
        """The values of each key for each message, in the order of the keys."""
        return [key.values(numbers) for key in self.keys]

    def _keys_text(self) -> str:
        return ", ".join(key.text() for key in self.keys) if self.keys else "colour"

    def text(self) -> str:
        """The text between the brackets."""
        if self.colours is None:
            text = f"({self._keys_text()})"
        else:
            text = f"colour {BlobAttr(self.colours)}"
        if self.of is None:
            return text
        return f"{text} of {list(self.of)} from {list(self.sources or ())}"


@irdl_attr_definition
class MessageOrderAttr(ValueAttr[MessageOrder]):
    """The order in which the messages of a move leave.

    Example: #abele.order<(sign(d0 - s0), s1)>
    #abele.order<((d0 - s0) mod 4, 2 * (s0 floordiv 2)) of [4] from [4]>
    """

    name = "abele.order"
    alias = "order"

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The colours, which the text names by their digest."""
        return () if self.data.colours is None else (self.data.colours,)

    @classmethod
    def parse_value(cls, parser: AttrParser) -> MessageOrder:
        """Parse the text between the brackets."""
        keys: Sequence[Key] = ()
        colours = None
        if parser.parse_optional_keyword("colour") is not None:
            blob = parser.parse_attribute()
            if not isinstance(blob, BlobAttr):
                parser.raise_error(f"colours {blob}; need #abele.blob<...>")
            colours = blob.data
        else:
            keys = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, partial(_parse_key, parser)
            )
        of = sources = None
        if parser.parse_optional_keyword("of") is not None:
            of = _parse_parts(parser)
            parser.parse_keyword("from")
            sources = _parse_parts(parser)
        return MessageOrder(tuple(keys), colours, of, sources)

    def text(self) -> str:
        """The text between the brackets."""
        return self.data.text()


def parsed_keys(text: str) -> tuple[Key, ...]:
    """The keys that a text lists, as `d0 - s0, s1`. Raises ParseError for any other text."""
    parser = Parser(AbeleContext(), f"({text})")
    keys = parser.parse_comma_separated_list(parser.Delimiter.PAREN, partial(_parse_key, parser))
    if parser.pos < len(text) + 2:
        parser.raise_error("more text after the keys")
    return tuple(keys)


def _parse_parts(parser: AttrParser) -> tuple[int, ...]:
    def number() -> int:
        value = parser.parse_integer(allow_boolean=False, allow_negative=False)
        if not 1 <= value < MOST:
            parser.raise_error(f"{value} parts; need 1 to {MOST - 1}")
        return value

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, number))


# Text of keys


def _parse_key(parser: AttrParser, depth: int = 0) -> Key:
    """Parse a sum: `2 * (d0 floordiv 4) - s1 + 3`, or one part, function or sum in parentheses that
    is divided: `(d0 - s0) mod 4`.

    What is divided comes alone, because `d0 - s0 mod 4` reads as both `(d0 - s0) mod 4` and
    `d0 - (s0 mod 4)`.
    """
    if depth > MOST_DEPTH:
        parser.raise_error(f"parentheses more than {MOST_DEPTH} deep; use simpler keys")
    sign = -1 if parser.parse_optional_punctuation("-") is not None else 1
    terms: list[tuple[Key, int]] = []
    while True:
        factor, term = _parse_term(parser, depth)
        terms.append((term, sign * factor))
        rule = parser.parse_optional_keyword_in(_DIVIDING)
        if rule is not None:
            if terms != [(term, 1)]:
                parser.raise_error(f"{rule} in a sum; put parentheses around what it divides")
            by = parser.parse_integer(allow_boolean=False, allow_negative=False)
            terms = [(applied(_DIVIDING[rule], term, by), 1)]
        if parser.parse_optional_punctuation("+") is not None:
            sign = 1
        elif parser.parse_optional_punctuation("-") is not None:
            sign = -1
        elif rule is not None and parser.parse_optional_keyword_in(_DIVIDING) is not None:
            break
        else:
            return total(*terms)
        if rule is not None:
            break
    parser.raise_error("more after a division; put parentheses around the division")


_SIDES: dict[str, Side] = {side: side for side in SIDES}

_DIVIDING: dict[str, Rule] = {"mod": "mod", "floordiv": "floordiv"}


def _parse_term(parser: AttrParser, depth: int) -> tuple[int, Key]:
    """Parse a number, or a part, sign or key in parentheses that a number may multiply. Returns
    the factor and the key.
    """
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if number is not None and number >= MOST:
        parser.raise_error(f"{number} in a key; need at most {MOST - 1}")
    if number is not None and parser.parse_optional_punctuation("*") is None:
        return 1, Key(offset=number)
    factor = 1 if number is None else number
    if parser.parse_optional_punctuation("(") is not None:
        inner = _parse_key(parser, depth + 1)
        parser.parse_punctuation(")")
        return factor, inner
    start = parser.pos
    name = parser.parse_identifier("a part, as d0 or s0, sign(...) or a number")
    if name == "sign":
        parser.parse_punctuation("(")
        inner = _parse_key(parser, depth + 1)
        parser.parse_punctuation(")")
        return factor, applied("sign", inner)
    side, dim = name[:1], name[1:]
    if side in _SIDES and dim.isascii() and dim.isdigit() and str(int(dim[:4])) == dim:
        if int(dim) < MOST_DIMENSIONS:
            return factor, part(_SIDES[side], int(dim))
    parser.raise_error(
        f"{name} in a key; need a part of the destination (d0, d1, ...) or of the source (s0, s1, "
        "...), a place at the sender (p0, p1, ...) or at the receiver (q0, q1, ...), sign(...), "
        "mod or floordiv",
        start,
        parser.pos,
    )
