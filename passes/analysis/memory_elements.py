"""Addresses at which a tile does not send from the memory element in which it receives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation

from ...backends.elements import Elements
from ...dialects.steps import Copy, Superstep
from ...dialects.variable import Variable
from ...ir.upstream import ModuleOp
from ..schedule_supersteps import SUPERSTEP
from .lifetimes import Lifetimes
from .packing import Boxes


def sent_and_received(module: ModuleOp, variables: Sequence[Variable]) -> NDArray[np.int64]:
    """The pairs of variables of which one is sent and the other one received in one superstep.

    They are (pairs, 2), each pair in both directions.
    """
    number = {v.symbol: i for i, v in enumerate(variables)}
    steps: dict[object, tuple[set[int], set[int]]] = {}
    for op in module.walk():
        if isinstance(op, Copy):
            sent, received = steps.setdefault(_step(op), (set(), set()))
            sent.update(number[name] for name in op.sources if name in number)
            received.update(number[name] for name in op.destinations if name in number)
    found = [np.zeros((0, 2), np.int64)]
    for sent, received in steps.values():
        one, other = np.meshgrid(sorted(sent), sorted(received))
        pairs = np.stack([one.ravel(), other.ravel()], axis=1).astype(np.int64)
        found += [pairs, pairs[:, ::-1]]
    every = np.concatenate(found)
    return np.unique(every[every[:, 0] != every[:, 1]], axis=0)


def _step(op: Operation) -> tuple[Block | Operation | None, object]:
    """What two operations of one superstep have in common."""
    parent = op.parent_op()
    if isinstance(parent, Superstep):
        return parent, None
    return op.parent, op.attributes.get(SUPERSTEP)


def keep_apart(
    variables: Sequence[Variable],
    lives: Lifetimes,
    address: NDArray[np.int64],
    fixed: NDArray[np.bool_],
    pairs: NDArray[np.int64],
    elements: Elements,
    room: int = 0,
) -> NDArray[np.int64]:
    """Addresses with which fewer pairs of variables share an element of a tile: (variables,).

    A variable moves only to a place where it shares no element with any of its partners, so no
    other pair gets worse. A variable that shares its bytes with one that it inherits them from, or
    that inherits them from it, stays.

    Args:
        room: bytes of a tile that may be used. No variable ends behind them, nor behind the last
            byte that is used already if that is higher.
        fixed: the variables that stay, (variables,).
        pairs: see sent_and_received.
    """
    boxes, address = Boxes(variables, lives), address.copy()
    end = max(room, int((address + boxes.size).max(initial=0)))
    begins = np.searchsorted(pairs[:, 0], np.arange(len(variables) + 1))
    every = np.arange(len(variables))
    may_move = np.flatnonzero(~fixed & (boxes.size > 0) & (np.diff(begins) > 0))
    for i in may_move[np.argsort(-boxes.size[may_move], kind="stable")].tolist():
        partners = pairs[begins[i] : begins[i + 1], 1]
        partners = boxes.on_its_tiles(i, partners)
        if not len(partners) or boxes.shares_place(i, address):
            continue
        low, high = elements.around(address[partners], address[partners] + boxes.size[partners])
        if not ((low < address[i] + boxes.size[i]) & (address[i] < high)).any():
            continue
        found = boxes.first_fit(i, every[every != i], address, (low, high))
        if found + boxes.size[i] <= end:
            address[i] = found
    return address
