"""Entries that users add to abele's tables. Each has an owner and can be removed again."""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import TypeVar

from .errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class _Entry:
    owner: str
    remove: Callable[[], None]


_ENTRIES: dict[tuple[str, str], _Entry] = {}


def add_entry(
    table: MutableMapping[str, T],
    what: str,
    name: str,
    value: T,
    owner: str,
    reserved: Collection[str] = (),
) -> None:
    """Add a user's entry to a table, and note it as note_entry does, whose errors it raises.

    Args:
        what, owner: as for note_entry.
        reserved: names of abele that are taken without being in the table.
    """

    def remove() -> None:
        table.pop(name, None)

    note_entry(what, name, owner, remove, (*table, *reserved))
    table[name] = value


def note_entry(
    what: str,
    name: str,
    owner: str,
    remove: Callable[[], None],
    taken: Collection[str] = (),
) -> None:
    """Note an entry that the caller adds next, so that remove_entries can remove it.

    Raises InputError that names both owners if the name is taken.

    Args:
        what: the kind of entry, for messages, such as "level".
        owner: the file or package that adds the entry, for messages.
        remove: removes the entry.
        taken: names that are taken, abele's and users'.
    """
    entry = _ENTRIES.get((what, name))
    if entry is not None or name in taken:
        holder = "abele" if entry is None else entry.owner
        raise InputError(
            f"{owner}: {what} {name!r} is already defined by {holder}; need another name"
        )
    _ENTRIES[what, name] = _Entry(owner, remove)


def remove_entries(owner: str) -> None:
    """Remove all entries that an owner has added, so that they can be added again."""
    for key, entry in list(_ENTRIES.items()):
        if entry.owner == owner:
            entry.remove()
            del _ENTRIES[key]
