"""The figures of energy and area that the facts of a target give, and the line that shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...backends.prices.energy import KINDS, Joules, chip_mm2
from ...backends.target import Target

UNKNOWN = "unknown_energy"
"""The name of a figure: a list of the kinds of work of which the target has no facts of energy."""

COLUMNS = ("joules", *(f"{kind}_joules" for kind in KINDS), "mm2")
"""The figures that are numbers: joules of a run, in all and by kind of work; mm2 of all chips."""


def energy_figures(run: Joules | None, target: Target) -> dict[str, Any]:
    """The figures that are known, by name: COLUMNS, and UNKNOWN beside joules.

    {} for a target without facts of energy and area. `joules` is missing if the program multiplies
    in types of which the target says nothing, while it does of others.
    """
    found: dict[str, Any] = {}
    if run is not None:
        found = {f"{kind}_joules": value for kind, value in run.by_kind.items()}
        found |= {"joules": run.total} if run.whole and run.by_kind else {}
        found[UNKNOWN] = list(run.unknown)
    area = chip_mm2(target)
    return found if area is None else found | {"mm2": area * target.chips}


def energy_columns(profile: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among the figures of energy and area of a profile or report; {} if there are
    none."""
    return {name: profile[name] for name in COLUMNS if name in profile}


def energy_text(profile: Mapping[str, Any]) -> str:
    """The figures of energy and area of a profile or report in a line; "" if there are none."""
    parts: list[str] = []
    if UNKNOWN in profile:
        by_kind = [
            f"{kind} {profile[name]:.3g}" for kind in KINDS if (name := f"{kind}_joules") in profile
        ]
        total = f"{profile['joules']:.3g} J a run" if "joules" in profile else "not known"
        line = f"energy: {total}" + (f" ({', '.join(by_kind)})" if by_kind else "")
        unknown: list[str] = profile[UNKNOWN]
        parts.append(line + (f"; not known: {', '.join(unknown)}" if unknown else ""))
    if "mm2" in profile:
        parts.append(f"area: {profile['mm2']:,.4g} mm2")
    return "; ".join(parts)
