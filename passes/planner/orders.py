"""The orders in which the cells of a split are placed on tiles, so that neighbours share data."""

from __future__ import annotations

import numpy as np

from ...backends.prices.codelets import elements
from ...backends.target import Target
from .price import Integers, block_elements, largest_cells
from .problem import Problem


def orders(problem: Problem, split: tuple[int, ...], target: Target) -> tuple[tuple[int, ...], ...]:
    """The orders worth trying for a split; the default order is ().

    Reductions come first and a parallel dimension last, so that tiles that share data are
    neighbours. Both tiles of a pair then receive it together, and data that is stored once is near
    all tiles that want it.
    """
    dims = problem.structure.space.dims
    cut = [d for d, n in enumerate(split) if n > 1]
    if problem.moves or len(cut) < 2:
        return ((),)
    first = [d for d in cut if dims[d].kind == "reduction"]
    kept = [d for d in cut if dims[d].kind != "reduction"]
    if not kept:
        return ((),)
    parts = np.array([split], np.int64)
    cells = largest_cells(problem.structure, parts)
    last, shared = last_dims(problem, parts, cells, target)
    d = int(last[0]) if int(last[0]) in kept else kept[-1]
    better = (*first, *(e for e in kept if e != d), d)
    if not shared[0] and not any(problem.free):
        return ((),)
    found = [better] if any(problem.free) else [(), better]
    if any(problem.free) and first and len(kept) > 1:
        found.append((*better[len(first) : -1], *first, d))
    return tuple(dict.fromkeys(() if order == tuple(cut) else order for order in found))


def last_dims(
    problem: Problem, parts: Integers, cells: Integers, target: Target
) -> tuple[Integers, Integers]:
    """The dimension that is best placed last, and the bytes that this saves: (candidates,) each.

    parts, and the sizes of the largest cells: (candidates, dimensions). Operands that both tiles of
    a pair want cross their shared bus only once.
    """
    space = problem.structure.space
    last = np.full(len(parts), -1, np.int64)
    most = np.zeros(len(parts), np.int64)
    if problem.moves or target.exchange.pair_factor == 1:
        return last, most
    own = space.operands[: problem.structure.own_operands]
    moving = [
        (access.dims(), arriving(problem, i, parts, cells))
        for i, access in enumerate(own)
        if not problem.resident[i]
    ]
    for d in space.of_kind("parallel"):
        shared_by = [bytes_ for named, bytes_ in moving if d not in named]
        even = parts[:, d] & 1 == 0
        if not shared_by or not even.any():
            continue
        saved = np.where(even, sum(shared_by), 0)
        better = saved > most
        last[better], most = d, np.maximum(most, saved)
    shared = most * (1 - 1 / target.exchange.pair_factor)
    return last, shared.astype(np.int64)


def arriving(problem: Problem, operand: int, parts: Integers, cells: Integers) -> Integers:
    """The estimated bytes of an operand that the largest cell receives: (candidates,).

    This is its whole block, or, for an operand that is stored where the plan wants it, the block
    without the tile's own share.
    """
    access = problem.structure.space.operands[operand]
    block = block_elements(access, cells) * problem.operand_dtypes[operand].itemsize
    if not problem.is_free(operand):
        return block
    named = access.dims()
    copies = elements(parts, tuple(d for d in range(parts.shape[1]) if d not in named))
    return block - block // copies
