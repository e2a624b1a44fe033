"""The fabrics that `exchange.fabric` may name."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.support.deferred import deferred, itself
from ..facts import register_part
from .crossbar import Crossbar
from .fabric import Fabric

with deferred(__name__):
    from .ipu21 import Ipu21
    from .mesh import Mesh

OWN_FABRICS: Mapping[str, type[Fabric]] = {"crossbar": Crossbar, "ipu21": Ipu21, "mesh": Mesh}

FABRICS: dict[str, type[Fabric]] = {**OWN_FABRICS}
"""By kind. Extensions add theirs. fabric_named imports a class that is not loaded yet."""


def fabric_named(kind: str) -> type[Fabric]:
    """The class of a kind of fabric. Raises KeyError if there is none."""
    return itself(FABRICS[kind])


def register_fabric(fabric: type[Fabric], owner: str) -> None:
    """Let targets name a fabric. Raises InputError for a kind that is taken, and for a field that
    is no fact."""
    register_part(FABRICS, "fabric", fabric, owner)
