"""Prices that several tests compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from abele.backends.prices.codelets import cells_cycles
from abele.backends.prices.workload import Workload
from abele.backends.target import Target
from abele.dialects.abele import Plan
from abele.dialects.structured import Structure


def busiest_tile_cycles(
    structure: Structure, plan: Plan, dtypes: Sequence[np.dtype[Any]], target: Target
) -> int:
    """The cycles of a vertex set on its busiest tile. dtypes: of the operands, then the result."""
    return int(cells_cycles(Workload.of(structure, dtypes, target), plan).max(initial=0))
