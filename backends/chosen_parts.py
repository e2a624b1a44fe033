"""Parts of a target whose class a target names: its fabric and its units."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any, cast

from ..ir.support.errors import InputError

JOIN = "+"
"""Joins the kinds of several parts, as in `units = "mac+outer"`."""


def check_part(part: type, what: str, owner: str) -> None:
    """Raise InputError unless a user's class can be a part of a target: a frozen dataclass with a
    kind, whose fields are facts.

    Args:
        what: the kind of part, for messages, such as "fabric".
    """
    kind = str(getattr(part, "kind", ""))
    where = f"{owner}: {what} {part.__name__}"
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", kind):
        raise InputError(f"{where}: kind {kind!r}; need small letters, digits, '_' and '-'")
    # A class without the decorator inherits the parameters of its base.
    parameters = cast(Any, vars(part).get("__dataclass_params__"))
    if parameters is None or not parameters.frozen:
        raise InputError(f"{where}: no frozen dataclass; need @dataclass(frozen=True) above it")
    for each in fields(cast(Any, part)):
        if "source" not in each.metadata and not is_dataclass(each.default):
            raise InputError(
                f"{where}: field {each.name} is no fact; need {each.name}: int = "
                'fact(DEFAULT, ASSUMED, "SOURCE") or float, with fact of abele.backends.facts'
            )
