"""Names of archive members for the tensors of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...ir.support.errors import InputError

MEMBER = ".npy"
"""What numpy.load removes from the end of a member's name."""

LONGEST = (1 << 16) - 1
"""The longest name of a member in bytes: zip stores its length in 16 bits."""

SHOWN = 60
"""The letters of a name that a message shows."""

_OUTSIDE = re.compile(r"[/\\]|[A-Za-z]:[/\\]|(.*[/\\])?\.\.([/\\]|$)", re.DOTALL)
"""The beginning of a path that leads out of the folder in which an archive is unpacked."""


def member_names(tensors: Iterable[str]) -> dict[str, str]:
    """The member of an .npz file for each tensor, by the tensor's name.

    numpy.load finds every member again under the name of its tensor, and unpacking the archive
    writes nothing outside its folder. Raises InputError for the first name that prevents this.
    """
    names = list(tensors)
    members: dict[str, str] = {}
    for name in names:
        problem = _problem(name, names)
        if problem:
            raise InputError(
                f"the name {_short(name)} cannot be stored in an .npz file: {problem}; rename the "
                "tensor in the model, or run the model in Python"
            )
        members[name] = f"{name}{MEMBER}"
    return members


def _problem(name: str, names: list[str]) -> str:
    """Why a name cannot be the name of a member; "" if it can."""
    try:
        size = len(f"{name}{MEMBER}".encode())
    except UnicodeEncodeError:
        return "it is not Unicode text"
    if "\0" in name:
        return "zip ends names at the character 0"
    if size > LONGEST:
        return f"it has {size - len(MEMBER)} bytes, and zip stores at most {LONGEST - len(MEMBER)}"
    if _OUTSIDE.match(name):
        return "as a path it leads out of the folder in which the file is unpacked"
    if name.endswith(MEMBER) and name.removesuffix(MEMBER) in names:
        return f"numpy.load would return {_short(name.removesuffix(MEMBER))} for it"
    return ""


def _short(name: str) -> str:
    return repr(name) if len(name) <= SHOWN else f"{name[:SHOWN]!r}..."
