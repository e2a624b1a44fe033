"""Programs of the exchange level for tests: written by hand, or lowered from random ones."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES

from ..strategies import Program, context

DOWN = (
    "convert-nn-to-partition,convert-partition-to-tile,schedule-supersteps,allocate,"
    "group-supersteps,convert-tile-to-exchange"
)
LAYOUT = "<[24 by 4] (d0) of [24]>"
SPACE = "<[i = 24] (i) of [24] -> (i) of [24]>"
SHIFT = "#abele.space<[i = 24] (i - 6 fill) of [24] -> (i) of [24]>"


def lowered(program: Program) -> ModuleOp:
    """A planned program at the exchange level."""
    for each in parse_pipeline(DOWN, PASSES):
        each.apply(program.context, program.module)
    return program.module


def relu(read: str, written: str, plan: str = "split [4]") -> str:
    """A vertex set."""
    return (
        f"exchange.compute space {SPACE} body <relu> plan <{plan}> reads [@{read}] "
        f'writes @{written} loc("{written}/relu")'
    )


def step(name: str, *ops: str, zone: str = "internal") -> str:
    """A superstep."""
    lines = "\n".join(ops)
    return f'exchange.superstep @{name} {{ exchange.sync "{zone}"\n{lines} }} loc("{name}")\n'


def variable(name: str, address: int, layout: str = LAYOUT, initial: str = "") -> str:
    """A variable of 24 floats; 24 bytes on each of four tiles by default."""
    first = f'state = blob <"{initial}">' if initial else ""
    return (
        f"exchange.variable @{name} at {address} : tensor<24xf32> layout {layout} {first} "
        f'loc("{name}/value")\n'
    )


def exchange_module(body: str, variables: str = "", functions: str = "") -> ModuleOp:
    """A module with state @w at 0, @a to @e at 24 and on, and a body of @main."""
    made = context()
    ramp = made.blobs.add(np.arange(-12, 12, dtype=np.float32)).digest
    text = variable("w", 0, initial=ramp)
    text += "".join(variable(n, 24 * (i + 1)) for i, n in enumerate("abcde"))
    text += "exchange.variable @p at 400 : tensor<1xi1> layout <[] (0) of [1]>\n" + variables
    text += f"{functions}\nfunc.func @main() {{ {body}\n func.return }}"
    return parse_module(text, made)
