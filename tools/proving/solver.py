"""z3, which is an extra and is loaded where a proof needs it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ...ir.support.errors import InputError


@cache
def z3() -> Any:
    """The module z3. Raises InputError if it is not installed."""
    try:
        return import_module("z3")
    except ImportError:
        raise InputError("proofs need z3; install it with: pip install 'abele[prove]'") from None
