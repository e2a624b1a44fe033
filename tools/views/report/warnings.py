"""Warnings about a program: problems that a reader should look at first, and advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .collect import Report

LARGE = 0.25
"""The smallest share of all cycles that gives a warning. Assumed."""

UNBALANCED = 0.5
"""The largest share of a superstep that a mean tile of an unbalanced superstep works."""

MANY = 0.02
"""The smallest share of the program's cycles for a warning about one superstep."""


def warnings_of(report: Report) -> list[dict[str, Any]]:
    """The warnings: text, advice, whether they are errors, and the page's view with details."""
    if not report.program["planned"]:
        return [_unplanned(report)]
    found = [*_memory(report), *_cycles(report)]
    return sorted(found, key=lambda each: not each["bad"])


def _warning(text: str, advice: str, *, bad: bool = False, **go: Any) -> dict[str, Any]:
    return {"text": text, "advice": advice, "bad": bad, "go": go}


def _unplanned(report: Report) -> dict[str, Any]:
    return _warning(
        f"It does not fit, and was not planned: {report.program['shortage']}",
        "The list of tensors shows what is large. A smaller batch, elements of fewer bits, or more "
        "tiles (--target NAME:TILES) help.",
        bad=True,
        view="memory",
    )


def _memory(report: Report) -> Iterator[dict[str, Any]]:
    program, tiles = report.program, report.tables["tiles"]
    if not program["fits"]:
        yield _warning(
            f"It does not fit: {program['shortage']}",
            "Memory over time shows what is there at the peak; `abele memory MODEL --advise` tries "
            "changes that free memory.",
            bad=True,
            view="memory",
        )
    rules = ("code", "vertex_state", "exchange_code", "stacks")
    overhead = sum((np.asarray(tiles[name]) for name in rules), np.zeros(1, np.int64))
    most, reserved = int(overhead.max(initial=0)), program["reserved_bytes"]
    lacks = program.get("code_shortage", 0) if program["fits"] else 0
    if most > reserved:
        yield _warning(
            f"Code, vertex state, exchange code and stacks take {most:,} bytes of tile "
            f"{int(np.argmax(overhead))}, and {reserved:,} are reserved for them"
            + (f"; beside the variables, a tile lacks {lacks:,} bytes" if lacks else ""),
            f"Set memory.reserved_bytes={most} in the target to plan with enough room.",
            view="memory",
            tile=int(np.argmax(overhead)),
        )
    for each in program["relaxed_limits"]:
        yield _warning(
            f"No plan of {each['operator']} keeps its memory limit: it takes {each['taken']:.0%} "
            "of a tile",
            "A larger batch, fewer samples, or steps in time change what it takes.",
            view="operations",
        )


def _cycles(report: Report) -> Iterator[dict[str, Any]]:
    program, steps = report.program, report.tables["supersteps"]
    total = max(program["cycles"], 1)
    if program.get("unpriced"):
        yield _warning(
            program["unpriced"],
            "Compare such cycles with each other only, not with those of chips.",
            view="summary",
        )
    if program.get("stochastic"):
        yield _warning(
            f"stochastic rounding costs nothing here (vertex sets: {program['stochastic']})",
            "So it is on a machine whose workers draw random words themselves. The words of abele, "
            "which are the same under every plan, are drawn by the host, and are not priced.",
            view="summary",
        )
    if program.get("drawn"):
        yield _warning(
            f"roundings by the generators of the workers depend on the plan (vertex sets: "
            f"{program['drawn']})",
            "Compare programs of different plans within a step of each rounding, or compile with "
            "--rounding stochastic, which costs the same here.",
            view="summary",
        )
    exchange = program["exchange_cycles"] / total
    if exchange > LARGE:
        yield _warning(
            f"{exchange:.0%} of the cycles are exchange",
            "Sort operations by exchange; plans that split fewer reduction dimensions move less.",
            view="operations",
        )
    if program["sync_cycles"] > LARGE * total:
        yield _warning(
            f"{program['sync_cycles'] / total:.0%} of the cycles are sync",
            "Many short supersteps: a larger batch does more work in each.",
            view="execution",
        )
    compute = np.asarray(steps["critical_compute"])
    waiting = compute * (1 - np.asarray(steps["balance"]))
    balance = np.asarray(steps["balance"]).astype(np.float64)
    worst = int(np.argmax(waiting)) if len(waiting) else -1
    if worst >= 0 and waiting[worst] > MANY * total and balance[worst] < UNBALANCED:
        yield _warning(
            f"In superstep {steps['name'][worst]}, the mean tile works for only "
            f"{balance[worst]:.0%} of the time in which the slowest one computes",
            "The split leaves parts of different sizes, or uses few tiles: compare its runner-up.",
            view="execution",
            step=worst,
        )
    operations = report.tables["operations"]
    cycles = np.asarray(operations["cycles"]).astype(np.float64)
    used = np.nan_to_num(np.asarray(operations["utilisation"]).astype(np.float64), nan=1.0)
    macs = np.array([each == "MACs" for each in operations["peak"]], np.bool_)
    lost = np.where(macs, cycles * (1 - np.minimum(used, 1)), 0)
    if len(lost) and lost.max() > MANY * total:
        k = int(np.argmax(lost))
        yield _warning(
            f"{operations['name'][k]} reaches {used[k]:.0%} of the peak in {cycles[k] / total:.1%} "
            "of the cycles",
            f"It is limited by {operations['limited_by'][k]}.",
            view="operations",
            op=k,
        )
