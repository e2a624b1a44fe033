"""What a module says of its replicas: how many there are, and where samples of inputs lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.dialects.func import FuncOp

from ...ir.upstream import ModuleOp
from ..gradients.program import entry_of
from .following import Following

REPLICAS = "abele.replicas"
"""The attribute of a module with the number of replicas that share its batch."""

SAMPLES = "abele.samples"
"""The attribute of a module that lists the axes of samples of each input of its entry; none for an
input that is the same for all samples."""

PARTS = "abele.parts"
"""The attribute of an operation with the parts into which a plan cuts its dimensions, 0 for any
number. Rounds both ways have one: a tile takes part in one direction only."""


def write(module: ModuleOp, replicas: int, axes: Mapping[int, Sequence[int]]) -> None:
    """Record the replicas of a module, and the axes of samples of its inputs by their number."""
    main = entry_of(module)
    assert isinstance(main, FuncOp)
    every = (DenseArrayBase.from_list(i64, axes.get(i, ())) for i in range(len(main.args)))
    module.attributes[REPLICAS] = IntegerAttr(replicas, i64)
    module.attributes[SAMPLES] = ArrayAttr(every)


def replicas_of(module: ModuleOp) -> int:
    """The number of replicas of a module; 1 if it records none."""
    found = module.attributes.get(REPLICAS)
    return found.value.data if isinstance(found, IntegerAttr) else 1


def follow(module: ModuleOp) -> Following:
    """The batch of every value and operation of a module that records its replicas."""
    listed = module.attributes.get(SAMPLES)
    axes: dict[int, tuple[int, ...]] = {}
    if isinstance(listed, ArrayAttr):
        for i, each in enumerate(listed.data):
            if isinstance(each, DenseArrayBase) and len(each):
                axes[i] = tuple(int(axis) for axis in each.get_values())
    return Following(module).follow(axes)
