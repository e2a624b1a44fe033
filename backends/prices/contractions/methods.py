"""The methods of computing a contraction, and the price of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ....ir.support.errors import InputError
from ....ir.support.user_entries import add_entry
from ...facts import UNITS, Amp, Mac, Outer, Slic, Unit, register_part
from ...target import Target
from .amp import amp_cycles, swapped_cycles
from .contraction import Contraction
from .slic import slic_cycles
from .workers import mac_cycles, outer_cycles, vmac_cycles

FloatCycles = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """A method of computing a contraction. A target has the methods of its units.

    Attributes:
        name: what plans call it.
        unit: whose facts the price reads.
        price: cycles on a tile, (candidates,); infinite where the method does not apply.
        supervised: whether its codelet is one vertex per tile and starts the workers itself.
        estimated: whether the planner's quick estimates of splits include its price. They have
            faster formulas for abele's own.
    """

    name: str
    unit: type[Unit]
    price: Callable[[Contraction, Target], FloatCycles]
    supervised: bool = False
    estimated: bool = True


OWN_METHODS = (
    Method("amp", Amp, amp_cycles, supervised=True, estimated=False),
    Method("slic", Slic, slic_cycles, supervised=True, estimated=False),
    Method("mac", Mac, mac_cycles, estimated=False),
    Method("vmac", Mac, vmac_cycles, estimated=False),
    Method("outer", Outer, outer_cycles, estimated=False),
    Method("swapped", Amp, swapped_cycles, supervised=True, estimated=False),
)
"""abele's methods, in the order in which ties are broken."""

METHODS: dict[str, Method] = {each.name: each for each in OWN_METHODS}
"""All methods by name: abele's, and then those of extensions."""


def register_method(method: Method, owner: str) -> None:
    """Let targets with its unit have a method. Raises InputError for a name that is taken."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", method.name):
        raise InputError(f"{owner}: method {method.name!r}; need small letters, digits and '_'")
    unit = method.unit
    if UNITS.get(unit.kind) is not unit:
        tables = [each.name for each in fields(Target)]
        register_part(UNITS, "unit", unit, owner, reserved=tables)
    add_entry(METHODS, "method", method.name, method, owner)


def methods_of(target: Target) -> Mapping[str, Method]:
    """The methods of a target by name, in the order in which ties are broken."""
    units = {type(each) for each in target.units}
    return {name: each for name, each in METHODS.items() if each.unit in units}


def contraction_cycles(
    contraction: Contraction, target: Target, methods: Sequence[str] = ()
) -> FloatCycles:
    """Cycles of a contraction by some methods, in their order: (methods, candidates).

    Infinite where a method does not apply to the contraction.

    Args:
        methods: names of methods that the target has; () for all of them.
    """
    known = methods_of(target)
    return np.stack([known[each].price(contraction, target) for each in methods or known])
