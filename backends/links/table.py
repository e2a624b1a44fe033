"""The topologies that `links.topology` may name."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.support.deferred import deferred, itself
from ..facts import register_part
from .links import Links

with deferred(__name__):
    from .topologies import Ladder, Pod, Torus

OWN_TOPOLOGIES: Mapping[str, type[Links]] = {
    "none": Links,
    "ladder": Ladder,
    "torus": Torus,
    "pod": Pod,
}

TOPOLOGIES: dict[str, type[Links]] = {**OWN_TOPOLOGIES}
"""By kind. Extensions add theirs. topology_named imports a class that is not loaded yet."""


def topology_named(kind: str) -> type[Links]:
    """The class of a kind of topology. Raises KeyError if there is none."""
    return itself(TOPOLOGIES[kind])


def register_topology(topology: type[Links], owner: str) -> None:
    """Let targets name a topology. Raises InputError for a kind that is taken, and for a field that
    is no fact."""
    register_part(TOPOLOGIES, "topology", topology, owner)
