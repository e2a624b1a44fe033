"""The users' codelets that a program runs, and whether they are the ones that are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...dialects.steps import Vertices
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from .users import USERS_CODELETS, users_codelet_of

SHOWN = 12
"""The digits of a digest that messages show."""


def codelets_in(module: ModuleOp) -> dict[str, dict[str, str]]:
    """The codelets of a program of vertices: the name of the file of each, and its digest."""
    bodies = (op.structure().body for op in module.walk() if isinstance(op, Vertices))
    names = {body.signature.name for body in bodies if body.signature is not None}
    found = {name: users_codelet_of(name) for name in sorted(names)}
    return {
        name: {"file": Path(each.file).name, "digest": each.digest} for name, each in found.items()
    }


def check_codelets(needed: Mapping[str, Mapping[str, str]], path: str) -> None:
    """Raise InputError unless all codelets that a program needs are loaded from the same files.

    Args:
        needed: for each codelet, its file and the digest.
        path: of the program, for messages.
    """
    for name, each in needed.items():
        found, file = USERS_CODELETS.get(name), each["file"]
        if found is None:
            raise InputError(f"{path}: needs codelet {name} of {file}; --load {file}")
        if found.digest != each["digest"]:
            raise InputError(
                f"{path}: needs codelet {name} of {file} with digest {each['digest'][:SHOWN]}; "
                f"{found.file} has {found.digest[:SHOWN]}; --load the file as it was, or compile "
                "the model again"
            )
