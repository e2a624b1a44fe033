"""Random programs for clocks, whose supersteps take made-up cycles, and a slow simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
from xdsl.dialects import func

from abele.backends.clocks.advance import Advance
from abele.dialects import control
from abele.dialects.steps import Read, Superstep
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp

from ...strategies import context

READ = "exchange.variable @p at 0 : tensor<i1> layout <[] () of []>"


class _Text:
    """Writes a random program."""

    def __init__(self, random: Random, functions: int) -> None:
        self.random = random
        self.steps = 0
        self.functions = functions

    def block(self, depth: int, callable_: int) -> str:
        kinds = ["step"] * 4 + (["repeat", "if", "while"] if depth else [])
        kinds += ["call"] * bool(callable_)
        return "\n".join(
            self._operation(self.random.choice(kinds), depth, callable_)
            for _ in range(self.random.randint(1, 4))
        )

    def _operation(self, kind: str, depth: int, callable_: int) -> str:
        if kind == "step":
            self.steps += 1
            return f'exchange.superstep @s{self.steps} {{ exchange.sync "internal" }}'
        if kind == "call":
            return f"func.call @f{self.random.randrange(callable_)}() : () -> ()"
        inner = [self.block(depth - 1, callable_) for _ in range(2)]
        name = f"%p{self.random.randrange(10**9)}"
        read = f"{name} = exchange.read @p : i1"
        if kind == "repeat":
            count = self.random.choice((0, 1, 2, 3, 7, 12))
            return f"control.repeat {count} () : () -> () {{ {inner[0]} control.yield }}"
        if kind == "if":
            return (
                f"{read} control.if {name} : i1 {{ {inner[0]} control.yield }} "
                f"else {{ {inner[1]} control.yield }}"
            )
        return (
            f"control.while () : () -> () {{ {inner[0]} {read} control.condition {name} : i1 }} "
            f"do {{ {inner[1]} control.yield }}"
        )


def random_program(random: Random) -> ModuleOp:
    """A program with functions, loops and branches, and supersteps in which nothing happens."""
    text = _Text(random, random.randint(0, 3))
    functions = [
        f"func.func @f{k} () {{ {text.block(1, k)} func.return }}" for k in range(text.functions)
    ]
    main = f"func.func @main () {{ {text.block(2, text.functions)} func.return }}"
    return parse_module("\n".join([READ, *functions, main]), context())


def random_advances(module: ModuleOp, random: Random, zones: int) -> dict[Superstep, Advance]:
    """For each superstep, random zones that work, of which some meet in random groups."""
    steps = [op for op in module.walk() if isinstance(op, Superstep)]
    return {step: _advance(random, zones) for step in steps}


def _advance(random: Random, zones: int) -> Advance:
    works = np.array([random.random() < 0.5 for _ in range(zones)])
    if not works.any():
        works[random.randrange(zones)] = True
    groups = random.choice((0, 0, 1, 2))
    group = np.array([random.choice((-1, random.randrange(max(groups, 1)))) for _ in works])
    group = np.where(works & (groups > 0), group, -1)
    sync, exchange, compute = (
        np.where(works, [random.choice((0, 1, 5, random.randrange(100))) for _ in works], 0)
        for _ in range(3)
    )
    return Advance(works, group, np.arange(zones), sync, exchange, compute, compute)


def simulated(
    module: ModuleOp, advances: Mapping[Superstep, Advance]
) -> tuple[list[int], dict[Superstep, list[list[int]]]]:
    """The clock of each zone at the end, and for each superstep its executions: where each zone
    starts, or -1. Every event happens, one after the other."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    zones = len(next(iter(advances.values())).tile)
    clocks = [0] * zones
    started: dict[Superstep, list[list[int]]] = {step: [] for step in advances}
    for op in events(functions["main"].body.block.ops, functions, advances):
        if isinstance(op, Read):
            clocks = [max(clocks)] * zones
            continue
        advance = advances[op]
        before = list(clocks)
        for zone in range(zones):
            own = advance.group[zone]
            if own >= 0:
                clocks[zone] = max(before[z] for z in range(zones) if advance.group[z] == own)
        started[op].append([c if t else -1 for c, t in zip(clocks, advance.takes_part)])
        clocks = [c + int(advance.cycles[zone]) for zone, c in enumerate(clocks)]
    return clocks, started


def events(ops, functions, advances) -> Iterator[Superstep | Read]:
    """The supersteps and reads of a run, of an if those of the branch that takes longer alone."""
    for op in ops:
        match op:
            case Superstep() | Read():
                yield op
            case control.RepeatOp():
                for _ in range(op.iterations):
                    yield from events(op.body.block.ops, functions, advances)
            case control.IfOp():
                branches = op.then.block, op.otherwise.block
                alone = [duration(each.ops, functions, advances) for each in branches]
                yield from events(branches[alone[1] > alone[0]].ops, functions, advances)
            case control.WhileOp():
                yield from events(op.test.block.ops, functions, advances)
                yield from events(op.body.block.ops, functions, advances)
            case func.CallOp():
                callee = functions[op.callee.string_value()]
                yield from events(callee.body.block.ops, functions, advances)
            case _:
                pass


def duration(ops, functions, advances) -> int:
    """The cycles of operations that begin when all clocks show 0."""
    zones = len(next(iter(advances.values())).tile)
    clocks = [0] * zones
    for op in events(ops, functions, advances):
        if isinstance(op, Read):
            clocks = [max(clocks)] * zones
            continue
        group, before = advances[op].group, list(clocks)
        clocks = [
            int(advances[op].cycles[z])
            + max(before[w] for w in range(zones) if w == z or group[z] == group[w] >= 0)
            for z in range(zones)
        ]
    return max(clocks)
