"""Operators: a compute set for each compute, a copy for each relayout."""

from __future__ import annotations

from ...dialects import partition, tile
from ...dialects.steps import Vertices
from ...ir.provenance import locate
from .conversion import ToTile
from .gathers import convert_gather


def convert_compute(op: partition.ComputeOp, new: ToTile) -> None:
    """A compute becomes a compute set of one vertex set, on variables.

        %1 = partition.compute(%0) space #s body <relu> plan #p

    becomes

        tile.compute_set @y { tile.vertices space #s body <relu> plan #p reads [@x] writes @y }
    """
    vertices = vertices_of(op, new)
    new.add(tile.ComputeSetOp(vertices.destination, [vertices]))


def vertices_of(op: partition.ComputeOp, new: ToTile) -> Vertices:
    """The vertices of a compute, which nothing holds yet. Its results get variables."""
    around, new.source = new.source, op
    names = [new.result(value) for value in op.made]
    new.source = around
    read = new.variables_of(op.inputs)
    made = tile.VerticesOp(op.structure(), op.plan.data, read, *names)
    locate(made, op)
    return made


def convert_relayout(op: partition.RelayoutOp, new: ToTile) -> None:
    """`%1 = partition.relayout(%0)` becomes `tile.copy [@x] -> @y`, with the same moves."""
    if op.rounds is not None:
        convert_gather(op, new)
        return
    name = new.result(op.result)
    moves = None if op.moves is None else [move.data for move in op.moves]
    new.add(tile.CopyOp(new.variables_of(op.inputs), name, moves))


def convert_reshape(op: partition.ReshapeOp, new: ToTile) -> None:
    """A reshape becomes nothing: the variable is the same."""
    new.where[op.result] = new.where[op.value]
