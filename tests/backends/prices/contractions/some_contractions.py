"""The cheapest method of a contraction, for tests of the methods."""

from typing import Any

from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.prices.contractions.methods import contraction_cycles, methods_of
from abele.backends.target import resolve_target

MK2 = resolve_target("mk2")


def method_of(*sizes: Any, **options: Any) -> str:
    """The cheapest method of a contraction on Mk2. Arguments are those of Contraction.of."""
    return tuple(methods_of(MK2))[
        int(contraction_cycles(Contraction.of(*sizes, **options), MK2).argmin())
    ]
