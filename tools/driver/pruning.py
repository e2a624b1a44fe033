"""Makes weights sparse, and lets a program multiply them without their zeros."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import nn
from ...dialects.blob_attr import BlobAttr
from ...dialects.levels import NN
from ...dialects.settable import changing_states
from ...ir.context import AbeleContext
from ...ir.provenance import place
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp, ModulePass
from ...passes.multiply_sparse import MultiplySparse
from ...passes.sparse.windows import as_matrix, as_weight
from .program import ReadProgram
from .sparsity import Sparsity


def with_sparse_products(
    pipeline: Sequence[ModulePass], program: ReadProgram, target: str
) -> tuple[ModulePass, ...]:
    """The pipeline of a program, with the pass that reads patterns if it has sparse products."""
    if program.level != NN or any(isinstance(each, MultiplySparse) for each in pipeline):
        return tuple(pipeline)
    sparse = any(isinstance(op, nn.BlockMatMulOp) for op in program.module.walk())
    return (*([MultiplySparse(target)] if sparse else ()), *pipeline)


def prune(asked: Sparsity, program: ReadProgram, context: AbeleContext) -> list[str]:
    """Set blocks of the program's weights to zero, before its first pass.

    So the program at nn has these weights, which every level can be compared with. Returns lines
    for the user. Raises InputError for a program at another level, and if no weight has such
    blocks.
    """
    if asked.block is None or not asked.share:
        return []
    if program.level != NN:
        raise InputError(f"{program.path}: --sparsity of a program at {program.level}; need {NN}")
    size = "{}x{}".format(*asked.block)
    pruned: list[str] = []
    others: list[str] = []
    for weight in _weights(program.module):
        array = weight.matrix()
        found = _pruned(array, weight.depth, asked.block, asked.share)
        if found is None:
            others.append(f"{weight.name} ({'x'.join(map(str, array.shape))})")
            continue
        weight.replace(found, context)
        pruned.append(weight.name)
    if not pruned:
        why = f"those of {', '.join(others)} have other sizes" if others else "it has none"
        raise InputError(
            f"{program.path}: --sparsity {size}: no weight of a product has such blocks: {why}"
        )
    lines = [f"{100 * asked.share:g} % of the blocks of {size} are 0 now in {', '.join(pruned)}"]
    if others:
        lines.append(f"not pruned, as their sizes are no multiples of {size}: {', '.join(others)}")
    return lines


def _pruned(array: Array, depth: int, block: tuple[int, int], share: float) -> Array | None:
    """A matrix in which a share of the blocks is 0; None if the block does not divide it.

    Args:
        depth: the terms that follow each other, within which a block lies.
    """
    (m, k), (high, wide) = array.shape, block
    if m % high or depth % wide or not array.size:
        return None
    blocks = array.reshape(m // high, high, k // wide, wide)
    sizes = np.square(blocks.astype(np.float64)).sum(axis=(1, 3))
    gone = np.argsort(sizes, axis=None, kind="stable")[: int(share * sizes.size)]
    kept = np.ones((m // high, 1, k // wide, 1), np.bool_)
    kept.reshape(-1)[gone] = False
    return np.where(kept, blocks, np.zeros((), array.dtype)).reshape(m, k)


Move = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class _Weight:
    """A state or a constant that holds the elements of a matrix of a product.

    Attributes:
        moves: make the matrix, outputs by terms, of the array that is held.
        back: make the array of the matrix, in the opposite order.
        depth: the terms that follow each other: all of them, or the channels of a convolution.
    """

    holder: nn.StateOp | nn.ConstantOp
    moves: tuple[Move, ...]
    back: tuple[Move, ...]
    depth: int

    @property
    def name(self) -> str:
        """What messages call the weight."""
        if isinstance(self.holder, nn.StateOp):
            return self.holder.sym_name.data
        return place(self.holder)

    def matrix(self) -> Array:
        """The matrix: outputs by terms."""
        array = self.holder.value.array
        for move in self.moves:
            array = move(array)
        return array

    def replace(self, matrix: Array, context: AbeleContext) -> None:
        """Let the weight hold another matrix."""
        for move in self.back:
            matrix = move(matrix)
        self.holder.value = BlobAttr(context.blobs.add(np.ascontiguousarray(matrix)))


def _weights(module: ModuleOp) -> Iterator[_Weight]:
    """The weights of matrix products and convolutions, each once."""
    changing = changing_states(module)
    states = {op.sym_name.data: op for op in module.walk() if isinstance(op, nn.StateOp)}
    seen: set[nn.StateOp | nn.ConstantOp] = set()
    for op in module.walk():
        for value, last, depth in _matrices(op):
            if not isinstance(nn.element_of(value), AnyFloat):
                continue
            moves, back, owner = _moved(value, last)
            if isinstance(owner, nn.LoadOp):
                name = owner.state.string_value()
                holder = None if name in changing else states.get(name)
            else:
                holder = owner if isinstance(owner, nn.ConstantOp) else None
            if holder is not None and holder not in seen:
                seen.add(holder)
                yield _Weight(holder, moves, back, depth)


Moves = tuple[tuple[Move, Move], ...]
"""Moves, each with the one that undoes it."""


def _matrices(op: Operation) -> Iterator[tuple[SSAValue, Moves, int]]:
    """The factors of a product that may be weights, how each becomes a matrix of outputs by terms,
    and how many terms follow each other."""
    if isinstance(op, nn.ConvOp) and op.group_count == 1:
        shape = nn.shape_of(op.weight)
        yield op.weight, ((as_matrix, partial(as_weight, shape=shape)),), shape[1]
    if not isinstance(op, nn.MatMulOp | nn.GemmOp):
        return
    sides = ((op.lhs, op.transpose_lhs is not None), (op.rhs, op.transpose_rhs is None))
    for value, turned in sides:
        shape = nn.shape_of(value)
        if len(shape) == 2:
            yield value, ((np.transpose, np.transpose),) if turned else (), shape[not turned]


def _moved(
    value: SSAValue, last: Moves
) -> tuple[tuple[Move, ...], tuple[Move, ...], Operation | Block]:
    """How a value is made of all elements of another, how to undo that, and what makes that one.

    Args:
        last: the moves of the value itself.
    """
    moves: list[Move] = [move for move, _ in last]
    back: list[Move] = [move for _, move in last]
    owner = value.owner
    while isinstance(owner, nn.TransposeOp | nn.ReshapeOp | nn.CastOp):
        result, operand = owner.results[0], owner.operands[0]
        if isinstance(owner, nn.TransposeOp):
            order = nn.values_of(owner.permutation)
            moves.append(partial(np.transpose, axes=order))
            back.append(partial(np.transpose, axes=np.argsort(order)))
        elif isinstance(owner, nn.ReshapeOp):
            moves.append(_reshape(nn.shape_of(result)))
            back.append(_reshape(nn.shape_of(operand)))
        elif not isinstance(nn.element_of(operand), AnyFloat):
            # Integers are quantised: a block of zeros of theirs is none of the weight.
            break
        owner = operand.owner
    return tuple(reversed(moves)), tuple(back), owner


def _reshape(shape: Sequence[int]) -> Move:
    return lambda array: array.reshape(shape)
