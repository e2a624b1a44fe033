"""Random numbers that differ from run to run, as stablehlo.rng draws them.

Each element is drawn from Philox by its index, the number of the run, the seed of the program, and
the number of the operation among those that draw, as the operators of ONNX draw. Seed and run are
states, so the first run of a program with the same seed draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import pi
from operator import mul

import numpy as np
from xdsl.dialects.builtin import AnyFloat, f32
from xdsl.ir import Block, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.random_states import SEED, STEP
from ...ir.blob import Blob
from ...ir.provenance import named
from ...ir.upstream import ModuleOp
from .conversion import Lower, ToNn
from .integers import unsigned

WORD = unsigned(32)

BITS = 24
"""The bits of a word that become a number in [0, 1)."""


def _rng(op: stablehlo.RngOp, new: ToNn) -> Sequence[SSAValue]:
    element, shape = nn.element_of(op.result), nn.shape_of(op.result)
    if not isinstance(element, AnyFloat):
        raise new.unsupported(f"drawing {element}", "floats are")
    if new.block is not new.outermost:
        raise new.unsupported("drawing in a loop or branch", "numbers drawn outside are")
    a, b = (new.cast(new.value(each), f32) for each in (op.a, op.b))
    if op.rng_distribution.data == "UNIFORM":
        width, offset, drawn = new.add(nn.SubOp(b, a)), a, _uniform(new, shape, 0.0)
    else:
        width, offset, drawn = b, a, _normal(new, shape)
    found = new.add(nn.AddOp(new.add(nn.MulOp(drawn, width)), offset))
    return [new.cast(found, element)]


def _uniform(new: ToNn, shape: Sequence[int], first: float) -> SSAValue:
    """Numbers in [0, 1), or in (0, 1] if the first one is 1; in steps of 2^-24."""
    steps = [*accumulate(reversed(shape[1:]), mul, initial=1)][::-1] if shape else []
    index = new.add(nn.IotaOp(nn.tensor(shape, WORD), steps))
    step, seed = _state(new, STEP), _state(new, SEED)
    bits = new.add(nn.RandomBitsOp(index, step, seed, float(new.draws)))
    new.draws += 1
    number = new.add(nn.ShiftRightOp(bits, new.number(32 - BITS, bits)))
    shifted = new.add(nn.ShiftOp(new.cast(number, f32), first))
    return new.add(nn.ScaleOp(shifted, 2.0**-BITS))


def _normal(new: ToNn, shape: Sequence[int]) -> SSAValue:
    """Numbers with mean 0 and deviation 1, by the method of Box and Muller."""
    length = new.add(nn.ScaleOp(new.add(nn.LogOp(_uniform(new, shape, 1.0))), -2.0))
    angle = new.add(nn.ScaleOp(_uniform(new, shape, 0.0), 2 * pi))
    return new.add(nn.MulOp(new.add(nn.SqrtOp(length)), new.add(nn.CosOp(angle))))


def _state(new: ToNn, name: str) -> SSAValue:
    """The seed or the number of the run."""
    if name not in new.random:
        new.random[name] = new.add(nn.LoadOp(name, nn.tensor((), WORD)))
    return new.random[name]


def count_runs(new: ToNn, block: Block) -> None:
    """At the end of @main, increase the number of the run, if numbers were drawn."""
    if STEP in new.random:
        one = nn.ConstantOp(np.ones((), np.uint32))
        following = nn.AddOp(new.random[STEP], one.result)
        store = nn.StoreOp(following.result, STEP)
        for op in (one, following, store):
            op.location = named(STEP)
        block.add_ops([one, following, store])


def add_random_states(new: ToNn, module: ModuleOp) -> None:
    """Declare the states that numbers were drawn with. Both are 0 at first."""
    for name in new.random:
        state = nn.StateOp(name, Blob(np.zeros((), np.uint32)))
        state.location = named(name)
        first = module.body.block.first_op
        if first is None:
            module.body.block.add_op(state)
        else:
            module.body.block.insert_op_before(state, first)


TABLE: Mapping[str, Lower] = {"stablehlo.rng": _rng}
"""What lowers the operation, by name."""
