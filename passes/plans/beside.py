"""The states and constants of other programs on the tiles, as an attribute of a module.

A program that shares a machine with others saves time if its weights are already where it wants
them. Its module lists the states and constants of the others, by the names of states and the
digests of constants. plan-splits looks up the module's own states and constants in this list, and
writes the places that it finds on them as homes that are wishes (see dialects/home.py). Constants
are looked up by value because passes make them: two programs scale a weight by the same numbers,
and both have the same constant.

    builtin.module attributes {abele.beside = {w = [{home = #abele.layout<[8 by 4, 4] (d0, d1) of
    [8, 4]>, address = 1024 : i64, reload = 12 : i64}]}}

An empty list means that other programs may come later. Once the homes are written, the list is
emptied but stays, so that allocate chooses addresses for a program that shares its tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute

from ...dialects import nn
from ...dialects.home import HOME, Home, home_of, verify_home
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp, VerifyException

BESIDE = "abele.beside"
"""The attribute of a module that lists the states and constants of other programs."""


def write_beside(module: ModuleOp, held: Mapping[str, Sequence[Home]]) -> None:
    """List the states and constants of other programs on a module.

    Args:
        held: homes with a reload, by the name of the state or the digest of the constant. A
            constant may lie at several places.
    """
    module.attributes[BESIDE] = DictionaryAttr(
        {
            name: ArrayAttr([DictionaryAttr(home.attributes) for home in homes])
            for name, homes in held.items()
        }
    )


def wish_homes(module: ModuleOp) -> None:
    """Write the homes of the module's list on its states and constants.

    A state or constant that already has a home keeps it. Raises InputError for a malformed list,
    and for a home that does not suit its state or constant.
    """
    listed = module.attributes.get(BESIDE)
    if listed is None:
        return
    if not isinstance(listed, DictionaryAttr):
        raise InputError(f"{BESIDE} = {listed}; need a dictionary of lists of homes")
    left = {name: list(_places(name, places)) for name, places in listed.data.items()}
    for op in module.walk():
        if isinstance(op, nn.StateOp):
            key = op.sym_name.data
        elif isinstance(op, nn.ConstantOp):
            key = op.value.data.digest
        else:
            continue
        if not left.get(key) or home_of(op) is not None:
            continue
        op.attributes |= left[key].pop(0).data
        try:
            verify_home(op, f"{BESIDE}: {key}", op.value.array.shape)
        except VerifyException as error:
            raise InputError(str(error)) from None
    module.attributes[BESIDE] = DictionaryAttr({})


def _places(name: str, places: Attribute) -> list[DictionaryAttr]:
    """The homes in one entry of the list. Raises InputError for anything else."""
    found = cast("ArrayAttr[Attribute]", places).data if isinstance(places, ArrayAttr) else ()
    homes = [each for each in found if isinstance(each, DictionaryAttr) and HOME in each.data]
    if not found or len(homes) != len(found):
        raise InputError(f"{BESIDE}: {name} = {places}; need a list of {{{HOME} = ...}}")
    return homes
