"""The table that a command prints: size and cost of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from ...dialects.levels import LEVELS
from ..driver.executable import Executable

CYCLES = ("compute", "exchange", "sync")


def console() -> Console:
    """Standard output. In a pipe or file, wide enough for a table without wrapped lines."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=160)


def summary(exe: Executable, title: str, error: str = "") -> Table:
    """The figures of a program and of its last run. error: the result of a check, or ""."""
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in rows(exe.profile):
        table.add_row(name, value)
    if error:
        table.add_row("largest error", error)
    return table


def rows(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values, most wanted first."""
    seconds: Mapping[str, float] = profile["seconds"]
    ops: Mapping[str, int] = profile["ops"]
    cycles = ", ".join(f"{kind} {profile[f'{kind}_cycles']:,}" for kind in CYCLES)
    found = [
        ("target", f"{profile['target']}, {profile['tiles']:,} tiles"),
        ("tiles used", f"{profile['tiles_used']:,}"),
        (
            "operations",
            ", ".join(f"{level} {ops[level]:,}" for level in map(str, LEVELS) if level in ops),
        ),
        ("vertices", f"{profile['vertices']:,}"),
        ("edges", f"{profile['edges']:,}"),
        ("supersteps", f"{profile['supersteps']:,}"),
        ("cycles", f"{profile['cycles']:,}"),
        ("of these", cycles),
        ("exchanged", f"{profile['exchange_bytes']:,} bytes"),
        ("fullest tile", f"{profile['max_tile_bytes']:,} bytes"),
        ("seconds", ", ".join(f"{stage} {s:.2f}" for stage, s in seconds.items())),
    ]
    return found
