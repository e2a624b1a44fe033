"""The generators of the workers, from which the roundings of a program draw."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolRefAttr

from ...backends.codelets.drawing import words_places
from ...dialects import tile
from ...dialects.blob_attr import BlobAttr
from ...dialects.generators import (
    GENERATORS,
    generators_layout,
    generators_type,
    seeded_generators,
)
from ...dialects.settable import listed_names
from ...dialects.steps import Vertices
from ...ir.blob import Blob
from ...ir.provenance import named
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.well_known import UPDATED
from ..plans.planned import target_of
from .conversion import ToTile


def give_generators(module: ModuleOp, new: ToTile) -> None:
    """Give the generators of all workers to the vertex sets that draw from them.

        nn.drawn in a body   ->   tile.vertices ... generators @rounding.generators

    Raises InputError if their name is taken.
    """
    drawing = [op for op in new.block.walk() if isinstance(op, Vertices) and _draws(op)]
    if not drawing:
        return
    if GENERATORS in new.names.taken:
        raise InputError(
            f"@{GENERATORS} is the name of the generators of the workers; need another"
        )
    target = target_of(module)
    size = target.tiles, target.workers
    first = BlobAttr(Blob(seeded_generators(0, *size)))
    type_, layout = generators_type(*size), generators_layout(*size)
    held = tile.VariableOp(GENERATORS, type_, layout, first, state=True)
    held.location = named("rounding")
    new.variables.append(held)
    for op in drawing:
        op.properties["generators"] = SymbolRefAttr(GENERATORS)
    changed = listed_names(module, UPDATED)
    if changed is not None:
        module.attributes[UPDATED] = ArrayAttr(map(StringAttr, (*changed, GENERATORS)))


def _draws(op: Vertices) -> bool:
    structure = op.structure()
    return bool(words_places(structure.body, structure.own_places))
