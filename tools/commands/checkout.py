"""Modules that only a checkout of abele has. The wheel leaves out what its maintainers run."""

from __future__ import annotations

from importlib import import_module
from importlib.util import resolve_name
from typing import Any

from ...ir.support.errors import InputError


def from_checkout(module: str, what: str) -> Any:
    """A module that an install from the wheel may lack.

    Raises InputError if it is missing, or if a package that it needs is not installed.

    Args:
        module: relative to this folder.
        what: what the user has asked for.
    """
    try:
        return import_module(module, __package__)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if f"{resolve_name(module, __package__ or '')}.".startswith(f"{missing}."):
            raise InputError(
                f"{what} measures or tests abele itself, and the wheel leaves it out; need a "
                "checkout of abele, where make install installs it into .venv"
            ) from None
        raise InputError(
            f"{what} needs {missing}, which is not installed: pip install 'abele[test]'"
        ) from None
