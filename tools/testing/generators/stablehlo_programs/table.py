"""What draws each operation of stablehlo and chlo that abele lowers."""

from __future__ import annotations

from collections.abc import Mapping

from .....passes.stablehlo_to_nn.special_functions import FORMULAS
from . import (
    collectives,
    complex_numbers,
    control,
    elementwise,
    indexed,
    matrices,
    merging,
    products,
    shapes,
)
from .draft import Draft, Draw

FAMILIES: Mapping[str, Mapping[str, Draw]] = {
    "elementwise": elementwise.TABLE,
    "shapes": shapes.TABLE,
    "products": products.TABLE,
    "matrices": matrices.TABLE,
    "merging": merging.TABLE,
    "indexed": indexed.TABLE,
    "control": control.TABLE,
    "collectives": collectives.TABLE,
    "complex_numbers": complex_numbers.TABLE,
}
"""The operations of each family."""

TABLE: Mapping[str, Draw] = {
    name: draw for family in FAMILIES.values() for name, draw in family.items()
}
"""What draws each operation, by name."""

_CHOICES = (*FAMILIES.values(), *[elementwise.TABLE] * 2, shapes.TABLE)
"""The families to choose from. Those of many operations are there several times."""


COSTLY = frozenset({"stablehlo.rng_bit_generator", *FORMULAS})
"""The operations that become a hundred operations of nn or more, which take long."""

_SELDOM = 0.25
"""How often such an operation stays."""


def add_operation(draft: Draft) -> None:
    """Add any operation."""
    family = draft.choice(_CHOICES)
    name = draft.choice(tuple(family))
    if name in COSTLY and not draft.chance(_SELDOM):
        add_operation(draft)
        return
    family[name](draft, name)
