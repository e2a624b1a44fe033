"""The text of a table of indices: its numbers, or the digest of a blob that has them."""

from __future__ import annotations

import numpy as np

from ..ir.geometry.table import Table
from ..ir.upstream import AttrParser
from .blob_attr import known_blob

LARGEST = np.iinfo(np.int32).max


def parse_table(parser: AttrParser) -> Table:
    """Parse `[2, 0, -1]`, or a digest. A ParseError says what is wrong with it."""
    start = parser.pos
    digest = parser.parse_optional_str_literal()
    try:
        if digest is not None:
            return Table(known_blob(parser, digest, start))
        numbers = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE,
            lambda: parser.parse_integer(allow_boolean=False, allow_negative=True),
        )
        wrong = [each for each in numbers if not -1 <= each <= LARGEST]
        if wrong:
            raise ValueError(f"table: element {wrong[0]}; need -1 to {LARGEST}")
        return Table.of(np.array(numbers, np.int32))
    except ValueError as error:
        parser.raise_error(str(error), start, parser.pos)
