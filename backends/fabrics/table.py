"""The fabrics that `exchange.fabric` may name."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.support.user_entries import add_entry
from ..chosen_parts import check_part
from .crossbar import Crossbar
from .fabric import Fabric
from .mesh import Mesh

OWN_FABRICS: Mapping[str, type[Fabric]] = {each.kind: each for each in (Crossbar, Mesh)}

FABRICS: dict[str, type[Fabric]] = {**OWN_FABRICS}
"""By kind. Extensions add theirs."""


def register_fabric(fabric: type[Fabric], owner: str) -> None:
    """Let targets name a fabric. Raises InputError for a kind that is taken, and for a field that
    is no fact."""
    check_part(fabric, "fabric", owner)
    add_entry(FABRICS, "fabric", fabric.kind, fabric, owner)
