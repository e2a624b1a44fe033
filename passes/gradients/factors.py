"""Factors of the learning rate and the weight decay of single weights, as a model asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, f64
from xdsl.ir import Attribute

from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.well_known import FACTORS


@dataclass(frozen=True)
class Factors:
    """The factors of one weight.

    Attributes:
        rate: of the learning rate.
        decay: of the weight decay.
    """

    rate: float = 1.0
    decay: float = 1.0


def write_factors(module: ModuleOp, factors: Mapping[str, Factors]) -> None:
    """Record the factors of states on a module, by name. Factors of 1 are left out."""
    pairs: dict[str, Attribute] = {
        name: ArrayAttr([FloatAttr(each.rate, f64), FloatAttr(each.decay, f64)])
        for name, each in factors.items()
        if each != Factors()
    }
    if pairs:
        module.attributes[FACTORS] = DictionaryAttr(pairs)


def read_factors(module: ModuleOp) -> dict[str, Factors]:
    """The factors of states on a module, by name. Raises InputError for an attribute of another
    form.
    """
    given = module.attributes.get(FACTORS)
    if given is None:
        return {}
    found: dict[str, Factors] = {}
    pairs = given.data.items() if isinstance(given, DictionaryAttr) else [("", given)]
    for name, pair in pairs:
        listed = cast("ArrayAttr[Attribute]", pair).data if isinstance(pair, ArrayAttr) else ()
        numbers = [
            each.value.data
            for each in listed
            if isinstance(each, FloatAttr) and 0.0 <= each.value.data < float("inf")
        ]
        if len(numbers) != 2:
            raise InputError(
                f"{FACTORS}: {name[:60]!r} has {pair}; need two numbers of 0 or more, the factors "
                "of the learning rate and of the weight decay"
            )
        found[name] = Factors(*numbers)
    return found
