"""The methods of computing a contraction, and the price of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..target import Target
from .amp import amp_cycles, swapped_cycles
from .contraction import Contraction
from .slic import slic_cycles
from .workers import mac_cycles, outer_cycles, vmac_cycles

FloatCycles = NDArray[np.float64]

PRICES: Mapping[str, Callable[[Contraction, Target], FloatCycles]] = {
    "amp": amp_cycles,
    "slic": slic_cycles,
    "mac": mac_cycles,
    "vmac": vmac_cycles,
    "outer": outer_cycles,
    "swapped": swapped_cycles,
}
"""The price of each method, in the order in which ties are broken."""

METHODS = tuple(PRICES)

SUPERVISED = frozenset(("amp", "slic", "swapped"))
"""Methods whose codelet is one vertex per tile and starts the workers itself."""


def contraction_cycles(
    contraction: Contraction, target: Target, methods: Sequence[str] = METHODS
) -> FloatCycles:
    """Cycles of a contraction by some methods, in their order: (methods, candidates).

    Infinite where a method does not apply to the contraction.
    """
    return np.stack([PRICES[each](contraction, target) for each in methods])
