"""Random programs of stablehlo."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr, f32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .....dialects import nn
from .....dialects.dtypes import numpy_dtype
from .....dialects.source_types import is_complex
from .....ir.text import blobs_of
from .....ir.upstream import ModuleOp
from .....ir.well_known import ENTRY
from ....driver.context import new_context
from ..build import PLANNED_AT_RANDOM
from ..program import Program
from ..sketch import machine_of, random_sketch
from ..values import values_of
from .draft import Draft, Shared
from .table import TABLE, add_operation

MOST_OPERATIONS = 8

LARGEST = 9
"""The largest size of an axis that is drawn."""

ALL_RESULTS = 0.3
"""How often a program returns all values that @main computes, and not only those that nobody
reads."""

MOST_RESULTS = 12

ALONE = 0.3
"""How often a program has one operation of those that are asked for, and no other."""


def random_program(random: Random, names: Sequence[str] = (), key: str = "") -> Program:
    """A program of a few operations, with inputs and a machine.

    Args:
        names: operations that most of its operations are; any if empty.
        key: identifies the program.
    """
    sketch = random_sketch(random)
    sizes = tuple(n for n in sketch.sizes if n <= LARGEST) or (random.randint(1, LARGEST),)
    shared = Shared(random, sizes, sketch.data, add_operation)
    block = Block()

    def argument(type_: Attribute) -> SSAValue:
        return block.insert_arg(type_, len(block.args))

    draft = Draft(shared, block, argument=argument)
    count = random.randint(2, MOST_OPERATIONS)
    for name in _wanted(random, names, count):
        if name is None:
            add_operation(draft)
        else:
            TABLE[name](draft, name)
    results = _results(draft)
    block.add_op(func.ReturnOp(*results))
    types = [each.type for each in block.args], [each.type for each in results]
    main = func.FuncOp(ENTRY, types, Region(block))
    named = {"arg_names": len(block.args), "result_names": len(results)}
    for (attribute, each), letter in zip(named.items(), "xy", strict=True):
        main.attributes[attribute] = ArrayAttr([StringAttr(f"{letter}{i}") for i in range(each)])
    ops: list[Operation] = [*shared.states.values(), main, *shared.functions]
    inputs = {
        f"x{i}": values_of(
            nn.shape_of(each), numpy_dtype(nn.element_of(each)), sketch.seed + i, sketch.data
        )
        for i, each in enumerate(block.args)
    }
    plans = random.randrange(1 << 16) if random.random() < PLANNED_AT_RANDOM else None
    target = machine_of(sketch.target)
    module, context = ModuleOp(ops), new_context()
    for blob in blobs_of(module):
        context.blobs.add(blob)
    return Program(module, context, inputs, target, key=key, plans=plans)


def _wanted(random: Random, names: Sequence[str], count: int) -> list[str | None]:
    """The operations to draw, by name; None for any."""
    if not names:
        return [None] * count
    if random.random() < ALONE:
        return [random.choice(names)]
    found = [random.choice(names) if random.random() < 0.6 else None for _ in range(count)]
    found[random.randrange(count)] = random.choice(names)
    return found


def _results(draft: Draft) -> list[SSAValue]:
    """What @main returns: the values that nobody reads, or all values that it computes."""
    results: list[SSAValue] = [each for op in draft.block.ops for each in op.results]
    made = [each for each in results if not is_complex(each)]
    unread = [each for each in made if not each.first_use]
    found = made if draft.chance(ALL_RESULTS) or not unread else unread
    # A drawn operation may add nothing, where it stands too deep.
    return list(found[-MOST_RESULTS:]) or [draft.value((f32,))]
