"""Each operation may be called in its own way, and the results have the same bits."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from planted_kernels import LOOP
from some_models import convolutions
from some_tensors import context, module_of

from abele.backends.host.mixed import CallKind, mixed_binder
from abele.backends.machine import Machine
from abele.dialects.steps import Copy, Input, Output, Vertices
from abele.ir.text import write_module
from abele.tools import Executable, compile_model
from abele.tools.driver.arrays import seeded

pytest.importorskip("numba")


def loop(folder) -> Executable:
    module = module_of(LOOP, context(), n=np.full((8, 24), 0.5, np.float32))
    write_module(module, folder / "loop.mlir")
    return compile_model(folder / "loop.mlir", "tiny:4", cache=False)


def network(folder) -> Executable:
    return compile_model(convolutions(), "tiny:16", cache=False)


@pytest.mark.parametrize("program", [loop, network])
def test_any_mixture_of_ways_gives_the_same_bits(program: Callable[..., Executable], tmp_path):
    exe = program(tmp_path)
    module, inputs = exe.module_at("exchange"), seeded(exe.inputs)
    kinds = (Copy, Vertices, Input, Output)
    ops = [op for op in module.walk() if isinstance(op, kinds)]
    numpy = Machine(module, exe.target)
    right = numpy.run(inputs)
    states = {name: numpy.read(name) for name, v in numpy.variables.items() if v.state}
    for seed in range(8):
        draw = random.Random(seed)
        # Runs of operations in one way, so that some are fused.
        ways, way = {}, CallKind.FUSED
        for op in ops:
            way = draw.choice([*CallKind]) if draw.random() < 0.3 else way
            ways[op] = way
        machine = Machine(module, exe.target, binder=mixed_binder(ways.__getitem__))
        found = machine.run(inputs)
        assert all(np.array_equal(found[name], right[name]) for name in right), seed
        assert all(np.array_equal(machine.read(name), states[name]) for name in states), seed
