"""Names of the leaves of nested values, as JAX makes them: params['w'][0], or model.layer.w."""

from __future__ import annotations

from collections.abc import Iterable

STEPS = ("[", ".")
"""How what follows the name of a value begins in the name of one of its leaves."""


def leaves_of(name: str, names: Iterable[str]) -> dict[str, str]:
    """The leaves of a value among names, each with what follows the name of the value.

    A leaf has no leaves but itself, for which "" follows.
    """
    found = {each: each.removeprefix(name) for each in names if each.startswith(name)}
    if name in found:
        return {name: ""}
    return {each: rest for each, rest in found.items() if rest.startswith(STEPS)}
