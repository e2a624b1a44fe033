"""Makes weights sparse, and lets a program multiply them without their zeros."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.dialects.builtin import AnyFloat

from ...dialects import nn
from ...dialects.blob_attr import BlobAttr
from ...dialects.levels import NN
from ...dialects.settable import changing_states
from ...ir.context import AbeleContext
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp, ModulePass
from ...passes.multiply_sparse import MultiplySparse
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
    for state, turned in _weights(program.module):
        array = state.value.array.T if turned else state.value.array
        found = _pruned(array, asked.block, asked.share)
        if found is None:
            others.append(f"{state.sym_name.data} ({'x'.join(map(str, array.shape))})")
            continue
        kept = found.T if turned else found
        state.value = BlobAttr(context.blobs.add(np.ascontiguousarray(kept)))
        pruned.append(state.sym_name.data)
    if not pruned:
        why = f"those of {', '.join(others)} have other sizes" if others else "it has none"
        raise InputError(
            f"{program.path}: --sparsity {size}: no weight of a product has such blocks: {why}"
        )
    lines = [f"{100 * asked.share:g} % of the blocks of {size} are 0 now in {', '.join(pruned)}"]
    if others:
        lines.append(f"not pruned, as their sizes are no multiples of {size}: {', '.join(others)}")
    return lines


def _pruned(array: Array, block: tuple[int, int], share: float) -> Array | None:
    """A matrix in which a share of the blocks is 0; None if the block does not divide it."""
    (m, k), (high, wide) = array.shape, block
    if m % high or k % wide or not array.size:
        return None
    blocks = array.reshape(m // high, high, k // wide, wide)
    sizes = np.square(blocks.astype(np.float64)).sum(axis=(1, 3))
    gone = np.argsort(sizes, axis=None, kind="stable")[: int(share * sizes.size)]
    kept = np.ones((m // high, 1, k // wide, 1), np.bool_)
    kept.reshape(-1)[gone] = False
    return np.where(kept, blocks, np.zeros((), array.dtype)).reshape(m, k)


def _weights(module: ModuleOp) -> Iterator[tuple[nn.StateOp, bool]]:
    """The weights of matrix products, and whether they are stored as terms by outputs."""
    changing = changing_states(module)
    states = {op.sym_name.data: op for op in module.walk() if isinstance(op, nn.StateOp)}
    seen: set[str] = set()
    for op in module.walk():
        if not isinstance(op, nn.MatMulOp | nn.GemmOp):
            continue
        sides = ((op.lhs, op.transpose_lhs is not None), (op.rhs, op.transpose_rhs is None))
        for value, turned in sides:
            if len(nn.shape_of(value)) != 2 or not isinstance(nn.element_of(value), AnyFloat):
                continue
            owner = value.owner
            while isinstance(owner, nn.TransposeOp):
                turned ^= nn.values_of(owner.permutation) == (1, 0)
                owner = owner.operand.owner
            name = owner.state.string_value() if isinstance(owner, nn.LoadOp) else ""
            if name not in states or name in changing or name in seen:
                continue
            seen.add(name)
            yield states[name], turned
