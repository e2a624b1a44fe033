"""The homes of states and constants of compiled programs, for programs compiled beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np

from ...backends.prices.cost import host_cycles
from ...backends.residents import overlapping, rectangle, value_of
from ...backends.target import Target
from ...dialects.exchange import VariableOp
from ...dialects.home import MOST, Home
from ...dialects.steps import written
from ...ir.support.errors import InputError
from .executable import MACHINE, Executable

Held = Mapping[str, tuple[Home, ...]]
"""Homes by the name of the state or the digest of the constant that lies there."""


def held_by(programs: Sequence[Executable], target: Target, runs: float) -> Held:
    """The homes of the states and constants of programs, as wishes for another program.

    Of several programs that hold the same, the first one counts, and so does the first one where
    two hold different things at one place. Layouts that others cannot copy from are left out, and
    so are kept values whose size has bounds. Raises InputError for a program for another target,
    and for runs that are not positive.

    A state that a program changes also goes to the host, at every second change.

    Args:
        runs: how many runs lie between two changes; the time of a load is spread over them.
    """
    if not runs > 0:
        raise InputError(f"{runs} runs between changes of programs; need more than 0")
    found: dict[str, tuple[Home, ...]] = {}
    taken = np.zeros((0, 4), np.int64)
    for exe in programs:
        if exe.target != target:
            raise InputError(
                f"beside {exe.path} for {exe.target.spelling()}; need a program for "
                f"{target.spelling()}"
            )
        own: dict[str, list[Home]] = {}
        changed = written(exe.module_at(MACHINE))
        # A value whose size has bounds has another largest shape in another program.
        padded = {each.state for each in exe.signature.kept_sizes}
        places = [v for v in exe.module_at(MACHINE).body.block.ops if isinstance(v, VariableOp)]
        places = [v for v in places if v.is_resident and v.placed.is_partition]
        places = [v for v in places if v.symbol not in padded]
        rectangles = np.array([rectangle(v) for v in places], np.int64).reshape(-1, 4)
        free = ~overlapping(rectangles, taken)
        kept: list[int] = []
        for i in np.flatnonzero(free).tolist():
            v = places[i]
            key = value_of(v)
            if key in found:
                continue
            kept.append(i)
            size = v.tensor_bytes
            moved = host_cycles(size + (size // 2 if v.symbol in changed else 0), target)
            own.setdefault(key, []).append(Home(v.placed, v.start, ceil(min(moved / runs, MOST))))
        taken = np.concatenate([taken, rectangles[kept]])
        found |= {key: tuple(homes) for key, homes in own.items()}
    return found


def as_text(held: Held) -> str:
    """The homes as text. Different homes give different texts."""
    return "; ".join(
        f"{key}: {', '.join(str(a) for home in homes for a in home.attributes.values())}"
        for key, homes in held.items()
    )
