"""The framework's nodes that an operation came from."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable

from ....ir.provenance import origin_names
from ....ir.upstream import LocationAttr

_PLACE = re.compile(r"([^()\s]+):(\d+):(\d+)\)?$")
"""A line of a file at the end of a location's text."""


def nodes_of(location: LocationAttr, known: Collection[str]) -> tuple[str, ...]:
    """The known nodes that a location names, each once, in order.

    A path in a location is the name of a node, perhaps followed by steps of its lowering. Names may
    contain slashes, so the longest known name counts.
    """
    found = (_node(path, known) for name in origin_names(location) for path in _paths(name, known))
    return tuple(dict.fromkeys(node for node in found if node is not None))


def without_folders(text: str) -> str:
    """The text of a location, in which a line of a file has no folder."""
    return _PLACE.sub(lambda found: os.path.basename(found[0]), text)


def node_names(locations: Iterable[LocationAttr]) -> frozenset[str]:
    """The names in the locations of a program that was just imported from its framework."""
    return frozenset(name for location in locations for name in origin_names(location))


def _paths(name: str, known: Collection[str]) -> tuple[str, ...]:
    """The paths in a name. A step that serves several nodes joins their paths with "+"."""
    node = _node(name, known)
    # In "block/a/backward+block/b/backward", what follows the node "block/a" is no step of it.
    whole = node is not None and "+" not in name[len(node) :]
    return (name,) if whole else tuple(name.split("+"))


def _node(path: str, known: Collection[str]) -> str | None:
    while path not in known:
        path, slash, _ = path.rpartition("/")
        if not slash:
            return None
    return path
