"""A partition of a pod: the chips that a program gets, and what joins them.

    base = "bow-pod64"

    [partition]
    chips = 16
    topology = "ladder"
    sync = 4

A partition is a target like any other. Its tiles and links are those of the first chips. Whoever
runs the pod makes the partition itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeGuard, cast

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ..links.links import Links
from ..links.table import topology_named
from ..links.topologies import of_kind

KEYS = ("chips", "topology", "sync")

_SIMPLER: Mapping[str, tuple[str, ...]] = {"torus": ("ladder",)}
"""By kind of topology, the kinds whose links it has, too."""

Refuse = Callable[[str, str], InputError]
"""The error for a key of the table, or "" for the table, and its problem."""


def partition_links(
    pod: str, most: int, links_of: Callable[[int], Links], given: object, refuse: Refuse
) -> Links:
    """What joins the chips of a partition. Raises InputError.

    Args:
        pod: the name of the pod.
        most: the chips of the pod.
        links_of: what joins the first chips of the pod, by their number. Raises InputError.
        given: the contents of the table.
    """
    if not isinstance(given, dict):
        raise refuse("", f"{given!r}; need a table with {', '.join(KEYS)}")
    values = cast("Mapping[str, object]", given)
    for key in values:
        if key not in KEYS:
            raise refuse(key, f"no such key; need {' or '.join(KEYS)}{suggestion(key, KEYS)}")
    if "chips" not in values:
        raise refuse("", "no chips; need a line such as chips = 16")
    chips = values["chips"]
    if not _is_power_of_two(chips):
        raise refuse("chips", f"{_shown(chips)}; need a power of two")
    if chips > most:
        raise refuse("chips", f"{chips:,}; {pod} has {most:,}")
    try:
        links = links_of(chips)
    except InputError as error:
        raise refuse("chips", str(error)) from None
    kind = values.get("topology", links.kind)
    allowed = (links.kind, *_SIMPLER.get(links.kind, ()))
    if kind not in allowed:
        what = f"{chips} of {most} chips of a {links_of(most).kind}"
        raise refuse("topology", f"{_shown(kind)}; {what} can be a {' or a '.join(allowed)}")
    if kind != links.kind:
        links = of_kind(topology_named(str(kind)), links, chips)
    if "sync" not in values:
        return links
    group = values["sync"]
    if not _is_power_of_two(group) or group > chips:
        raise refuse("sync", f"{_shown(group)}; need a power of two of at most {chips} chips")
    return replace(links, meeting_chips=group)


def _is_power_of_two(value: object) -> TypeGuard[int]:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return value > 0 and not value & (value - 1)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "an integer of thousands of digits"
    return text if len(text) <= 40 else f"{text[:37]}..."
