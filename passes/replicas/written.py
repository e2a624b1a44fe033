"""What a module says of its replicas: how many there are, and where samples of inputs lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ...dialects import nn
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ..gradients.program import entry_of
from .following import Following

REPLICAS = "abele.replicas"
"""The attribute of a module with the number of replicas that share its batch."""

SAMPLES = "abele.samples"
"""The attribute of a module that lists the axes of samples of each input of its entry; none for an
input that is the same for all samples."""

SHARED = "abele.shared"
"""The attribute of a module whose chips share what its optimiser keeps, and the updates of weights:
each holds and computes a part."""

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


def shares_optimizer(module: ModuleOp) -> bool:
    """Whether the chips of a module share what its optimiser keeps."""
    return SHARED in module.attributes


def follow(module: ModuleOp) -> Following:
    """The batch of every value and operation of a module that records its replicas.

    Raises InputError for axes that an input does not have.
    """
    listed = module.attributes.get(SAMPLES)
    axes: dict[int, tuple[int, ...]] = {}
    every = cast("ArrayAttr[Attribute]", listed).data if isinstance(listed, ArrayAttr) else ()
    for i, each in enumerate(every):
        if isinstance(each, DenseArrayBase):
            axes[i] = tuple(int(axis) for axis in cast("Sequence[int]", each.get_values()))
    main = entry_of(module)
    args = () if main is None else main.body.block.args
    for i, given in axes.items():
        if i >= len(args) or any(not 0 <= a < len(nn.shape_of(args[i])) for a in given):
            raise InputError(f"{SAMPLES}: input {i} has no axes {list(given)}")
    axes = {i: given for i, given in axes.items() if given}
    return Following(module).follow(axes)
