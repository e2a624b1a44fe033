"""Gradients: those of every operator against differences in float64, and the rules at their edges.

The operators are generated from their definitions. None is listed here.
"""

from collections.abc import Sequence
from math import prod
from random import Random

import numpy as np
import pytest
from xdsl.dialects.builtin import AnyFloat, ModuleOp, TensorType, f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from abele.backends.faults import IndexFault
from abele.backends.reference import run_reference, tensor_kind
from abele.dialects import nn
from abele.dialects.levels import NN as NN_LEVEL
from abele.ir.errors import InputError
from abele.ir.instances import Instances
from abele.ir.provenance import named
from abele.ir.rules.vocabulary import Vocabulary
from abele.ir.text import parse_module
from abele.ir.verify import verify
from abele.passes.differentiate import Differentiate
from abele.tools.driver.context import new_context

Arrays = dict[str, np.ndarray]

DRAWS = (
    lambda rng, shape: rng.normal(size=shape),
    lambda rng, shape: rng.uniform(0.1, 0.9, shape),
    lambda rng, shape: rng.uniform(1.1, 2.0, shape),
)
"""Where functions may be defined: anywhere, inside of 0..1, and above 1."""

STEP = 1e-6
NEAR = 2e-6
"""How far differences with this step are from gradients, in parts of the largest term."""

INSTANCES = Instances(Vocabulary(new_context()))


def is_float(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and isinstance(value.type.element_type, AnyFloat)


def program(op: Operation) -> ModuleOp:
    """@main applies an operation to its arguments, and multiplies each float result by another."""
    block = Block(arg_types=[v.type for v in op.operands])
    op.operands = list(block.args)
    op.location = named("node")
    block.add_op(op)
    results = []
    for value in op.results:
        if is_float(value):
            factor = block.insert_arg(value.type, len(block.args))
            weighted = nn.MulOp(value, factor)
            block.add_op(weighted)
            total = nn.ReduceOp(weighted.result, "sum", range(len(nn.shape_of(value))))
            block.add_op(total)
            results.append(total.result)
    both = results[0]
    for each in results[1:]:
        added = nn.AddOp(both, each)
        block.add_op(added)
        both = added.result
    block.add_op(ReturnOp(both))
    types = [a.type for a in block.args]
    return ModuleOp([FuncOp("main", (types, [both.type]), Region(block))])


def drawn(module: ModuleOp, rng: np.random.Generator, draw) -> Arrays:
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    found = {}
    for i, arg in enumerate(main.args):
        shape, dtype = tensor_kind(arg.type)
        if is_float(arg):
            found[f"arg{i}"] = draw(rng, shape).astype(dtype)
        else:
            found[f"arg{i}"] = np.zeros(shape, dtype)
            if dtype == np.bool_:
                found[f"arg{i}"] = rng.integers(0, 2, shape).astype(dtype)
    return found


def value_of(module: ModuleOp, inputs: Arrays) -> float:
    return float(run_reference(module, inputs).outputs["out0"])


def check_gradient(module: ModuleOp, inputs: Arrays, rng: np.random.Generator) -> None:
    """The gradient along one random direction is the difference along it."""
    made = module.clone()
    Differentiate().apply(new_context(), made)
    verify(made, NN_LEVEL.legal)
    outputs = run_reference(made, inputs).outputs
    directions = {
        name: rng.normal(size=a.shape) for name, a in inputs.items() if a.dtype == np.float64
    }
    terms = [(outputs[f"grad.{name}"] * d).ravel() for name, d in directions.items()]
    found = sum(each.sum() for each in terms)
    ends = [
        value_of(
            module,
            inputs | {n: (inputs[n] + sign * STEP * d).astype(np.float64) for n, d in directions.items()},
        )
        for sign in (1, -1)
    ]
    expected = (ends[0] - ends[1]) / (2 * STEP)
    size = sum(np.abs(each).sum() for each in terms) + abs(ends[0]) + 1.0
    assert abs(found - expected) <= NEAR * size, (found, expected, size)


def instance(cls: type[Operation], seed: int) -> Operation | None:
    return INSTANCES.make(cls, Random(seed), (1, 2, 3, 4), elements=(f64,))


def differentiable() -> list[type[Operation]]:
    return [
        cls
        for cls in nn.NN.operations
        if cls not in nn.STATE and not issubclass(cls, nn.CompareOp | nn.LogicalOp)
    ]


@pytest.mark.parametrize("cls", differentiable(), ids=lambda cls: cls.name)
def test_the_gradient_of_an_operator_is_the_limit_of_differences(cls: type[Operation]):
    checked = 0
    for seed in range(4):
        op = instance(cls, seed)
        if op is None or not any(map(is_float, op.operands)) or not any(map(is_float, op.results)):
            continue
        module = program(op)
        rng = np.random.default_rng(seed)
        for draw in DRAWS:
            inputs = drawn(module, rng, draw)
            if np.isfinite(value_of(module, inputs)):
                break
        else:
            continue
        try:
            check_gradient(module, inputs, rng)
        except InputError as error:
            assert str(error).startswith(f"{cls.name} at node ")
            print("REFUSED", error)
        checked += 1
    print("CHECKED", cls.name, checked)
