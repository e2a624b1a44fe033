"""A failing program made small: first what it is generated from, then its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import process_time

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from ....dialects.host import DEFAULTS, host_names
from ....ir.errors import InputError
from ....ir.upstream import ModuleOp
from ...driver.reduce import reduce_module
from ..generators.build import Operators, build, default_operators
from ..generators.levels import at_level
from ..generators.program import Program
from ..generators.sketch import Sketch, Step

Fails = Callable[[Program], bool]
"""Whether a program still shows what is wrong. It leaves the program as it is."""


def smallest(
    program: Program,
    level: str,
    fails: Fails,
    seconds: float,
    operators: Operators | None = None,
) -> Program:
    """A small program that fails like a given one, which fails; found in about so many seconds."""
    end = process_time() + seconds
    best = program
    if program.sketch is not None:
        best = _of_sketch(program, level, fails, end, operators or default_operators())
    return _of_module(best, fails, max(1.0, end - process_time()))


def _of_sketch(
    program: Program, level: str, fails: Fails, end: float, operators: Operators
) -> Program:
    best, changed = program, True
    while changed and process_time() < end:
        changed = False
        assert best.sketch is not None
        for sketch in simpler(best.sketch):
            if process_time() > end:
                break
            candidate = at_level(build(sketch, operators), level)
            if candidate is not None and _weight(candidate) < _weight(best) and fails(candidate):
                best, changed = candidate, True
                break
    return best


def _weight(program: Program) -> tuple[int, int, int]:
    """What is to be small: operations, then elements, then tiles."""
    elements = sum(array.size for array in (*program.inputs.values(), *program.state.values()))
    return sum(1 for _ in program.module.walk()), elements, program.target.tiles


def simpler(sketch: Sketch) -> Iterator[Sketch]:
    """Sketches with less in them, the most promising first."""
    steps = sketch.steps
    for keep in range(len(steps)):
        yield replace(sketch, steps=steps[keep : keep + 1])
    for gone in range(len(steps)):
        yield replace(sketch, steps=steps[:gone] + steps[gone + 1 :])
    for i, step in enumerate(steps):
        if step.within:
            plain = Step(step.kind, step.operand, step.seed)
            yield replace(sketch, steps=(*steps[:i], plain, *steps[i + 1 :]))
    for size in (1, 2, 3):
        yield replace(sketch, sizes=(size,))
    for i, size in enumerate(sketch.sizes):
        for smaller in (1, 2, 3, size - 1):
            if 0 < smaller < size:
                sizes = (*sketch.sizes[:i], smaller, *sketch.sizes[i + 1 :])
                yield replace(sketch, sizes=sizes)


def _of_module(program: Program, fails: Fails, seconds: float) -> Program:
    """Leave operations out."""
    named = program.with_module(_with_names(program.module.clone()))
    # A program that is only wrong beside what it was made from cannot be cut.
    if not fails(named):
        return program

    def still_fails(module: ModuleOp) -> bool:
        try:
            candidate = named.with_module(module)
        except InputError:
            # Left out was what a run begins with.
            return False
        return fails(candidate)

    return named.with_module(reduce_module(named.module, still_fails, seconds))


def _with_names(module: ModuleOp) -> ModuleOp:
    """Name arguments and results for the host, so that they keep their names when some go."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            counts = {"arg_names": len(op.body.block.args)}
            for attribute in DEFAULTS:
                count = counts.get(attribute, len(op.function_type.outputs.data))
                names = host_names(op, attribute, count)
                if names:
                    op.attributes[attribute] = ArrayAttr(map(StringAttr, names))
    return module
