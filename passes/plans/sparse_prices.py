"""The prices of products with and without their zeros, as the pass multiply-sparse found them.

They are recorded as an attribute of the module, for tables and saved programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, DictionaryAttr, FloatAttr, StringAttr, f64
from xdsl.ir import Attribute

from ...ir.upstream import ModuleOp

ATTRIBUTE = "abele.sparse_products"
"""The module's attribute."""


@dataclass(frozen=True)
class SparsePrice:
    """A product that was looked at for zeros, and what it takes with them and without.

    Attributes:
        node: the name of the product.
        matrix: the sizes of the matrix with zeros, rows by columns.
        block: the height and width of the blocks of the cheapest sparse product; "" if none was
            priced.
        held: the share of these blocks that are not 0; of elements, without blocks.
        dense: the cycles of the product as it was written; infinity if they were not asked for.
        sparse: those of the cheapest sparse product.
        kept: why the product stays as it was written; "" if its zeros are left out.
    """

    node: str
    matrix: str
    block: str
    held: float
    dense: float
    sparse: float
    kept: str

    @property
    def verdict(self) -> str:
        """Whether zeros are left out, and why not."""
        return f"kept: {self.kept}" if self.kept else "left out"

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON: null for cycles that were not asked for."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("dense", "sparse"):
            found[name] = found[name] if isfinite(found[name]) else None
        return found


_TEXTS = ("node", "matrix", "block", "kept")
_NUMBERS = ("held", "dense", "sparse")


def write_sparse_prices(module: ModuleOp, found: Sequence[SparsePrice]) -> None:
    """Record prices on a module. Cycles that are infinite are left out."""
    if found:
        module.attributes[ATTRIBUTE] = ArrayAttr([DictionaryAttr(_written(each)) for each in found])


def _written(each: SparsePrice) -> Mapping[str, Attribute]:
    texts = {name: StringAttr(getattr(each, name)) for name in _TEXTS}
    numbers = {name: float(getattr(each, name)) for name in _NUMBERS}
    return {**texts, **{name: FloatAttr(n, f64) for name, n in numbers.items() if isfinite(n)}}


def read_sparse_prices(module: ModuleOp) -> tuple[SparsePrice, ...]:
    """The prices recorded on a module. Entries of another form are skipped."""
    written = module.attributes.get(ATTRIBUTE)
    if not isinstance(written, ArrayAttr):
        return ()
    found: list[SparsePrice] = []
    for each in cast(ArrayAttr[Attribute], written):
        if not isinstance(each, DictionaryAttr):
            continue
        texts = [text for name in _TEXTS if isinstance(text := each.data.get(name), StringAttr)]
        if len(texts) < len(_TEXTS):
            continue
        node, matrix, block, kept = (text.data for text in texts)
        held, dense, sparse = (_number(each.data.get(name)) for name in _NUMBERS)
        found.append(SparsePrice(node, matrix, block, held, dense, sparse, kept))
    return tuple(found)


def _number(written: Attribute | None) -> float:
    if not isinstance(written, FloatAttr):
        return inf
    return cast("FloatAttr[AnyFloat]", written).value.data


def told_sparse_prices(found: Sequence[SparsePrice]) -> list[str]:
    """A line that says how many of the products that were looked at leave zeros out."""
    if not found:
        return []
    # A name may have several lines, and this is one.
    without = [" ".join(each.node.split()) for each in found if not each.kept]
    named = f" ({', '.join(without[:MOST_NAMED])}{', ...' if len(without) > MOST_NAMED else ''})"
    return [
        f"{len(without)} of {len(found)} products with a known matrix leave zeros out"
        f"{named if without else ''}; abele plan shows both prices of each"
    ]


MOST_NAMED = 5
"""The most products that a line names."""
