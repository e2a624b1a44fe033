"""The figures of a program that people ask for first, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from ...ir.support.deferred import deferred
from ...ir.well_known import LEVEL_NAMES

with deferred(__name__):
    from .html_page import escaped

CYCLES = ("compute", "exchange", "sync")


def rows(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of a profile, most wanted first."""
    seconds: Mapping[str, float] = profile["seconds"]
    ops: Mapping[str, int] = profile["ops"]
    cycles = ", ".join(f"{kind} {profile[f'{kind}_cycles']:,}" for kind in CYCLES)
    return [
        ("target", f"{profile['target_label']}, {profile['tiles']:,} tiles"),
        ("tiles used", f"{profile['tiles_used']:,}"),
        (
            "operations",
            ", ".join(f"{level} {ops[level]:,}" for level in LEVEL_NAMES if level in ops),
        ),
        ("vertices", f"{profile['vertices']:,}"),
        ("edges", f"{profile['edges']:,}"),
        ("supersteps", f"{profile['supersteps']:,}"),
        ("cycles", f"{profile['cycles']:,}{_worst(profile)}"),
        ("of these", cycles),
        *_chips(profile),
        *_phases(profile),
        ("exchanged", f"{profile['exchange_bytes']:,} bytes"),
        (
            "host",
            f"{profile['host_cycles']:,} {_beside(profile)}, {profile['host_input_bytes']:,} bytes "
            f"in, {profile['host_output_bytes']:,} out",
        ),
        ("items", items_text(profile)),
        ("fullest tile", f"{profile['max_tile_bytes']:,} bytes"),
        *_remote(profile),
        ("seconds", ", ".join(f"{stage} {s:.2f}" for stage, s in seconds.items())),
    ]


def _beside(profile: Mapping[str, Any]) -> str:
    """Whether the cycles of the link to the host come on top of those of a run, in words."""
    hidden = profile["host_hidden_cycles"]
    return f"cycles, {hidden:,} of them hidden behind other runs" if hidden else "further cycles"


def items_text(profile: Mapping[str, Any]) -> str:
    """The items per second of a profile or report, the part that bounds them, and the items per
    second that the other parts allow."""
    bound, rates = profile["bound_by"], cast(Mapping[str, float], profile["rates"])
    others = ", ".join(f"{part} {rate:,.0f}" for part, rate in rates.items() if part != bound)
    return (
        f"{profile['items']:,} a run, {profile['items_per_s']:,.0f} a second, bound by the "
        f"{bound}{'; ' * bool(others)}{others}"
    )


def _remote(profile: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The states in remote memory and the cycles of their transfers; nothing if there are none."""
    size, hidden = profile["remote_bytes"], profile["remote_hidden_cycles"]
    if size:
        behind = f", {hidden:,} of them hidden" if hidden else ""
        moved = f"moved in {profile['remote_cycles']:,} cycles"
        yield "remote memory", f"{size:,} bytes of states, {moved}{behind}"


def _chips(profile: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How long the busiest and the mean chip work; nothing for one chip."""
    chips: list[Mapping[str, int]] = profile["by_chip"]
    if len(chips) > 1:
        whole = max(profile["cycles"], 1)
        busy = [sum(each[f"{kind}_cycles"] for kind in CYCLES) / whole for each in chips]
        most = max(range(len(busy)), key=lambda chip: busy[chip])
        yield (
            f"{len(chips)} chips",
            f"chip {most} is busy for {busy[most]:.0%} of the cycles, the mean one for "
            f"{sum(busy) / len(busy):.0%}",
        )


def _phases(profile: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The cycles and vertices of each phase of a step of training; nothing for other programs."""
    phases: Mapping[str, Mapping[str, int]] = profile["phases"]
    if phases:
        for what in ("cycles", "vertices"):
            listed = (f"{name} {found[what]:,}" for name, found in phases.items())
            yield (f"{what} by phase", ", ".join(listed))


def _worst(profile: Mapping[str, Any]) -> str:
    """The cycles if all lookups go to one tile, in words; "" if that costs nothing more."""
    worst = profile["worst_cycles"]
    if worst == profile["cycles"]:
        return ""
    return f"; {worst:,} if the indices of each lookup all name rows of one tile"


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values for a notebook, in the notebook's own style."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escaped(name)}</th>'
        f'<td style="text-align:left">{escaped(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{escaped(title)}</caption><tbody>{lines}</tbody></table>"
