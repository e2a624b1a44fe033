"""The cheapest method of a contraction, for tests of the methods."""

from typing import Any

from abele.backends.contractions.contraction import Contraction
from abele.backends.contractions.methods import METHODS, contraction_cycles
from abele.backends.target import resolve_target

MK2 = resolve_target("mk2")


def method_of(*sizes: Any, **options: Any) -> str:
    """The cheapest method of a contraction on Mk2. Arguments are those of Contraction.of."""
    return METHODS[int(contraction_cycles(Contraction.of(*sizes, **options), MK2).argmin())]
