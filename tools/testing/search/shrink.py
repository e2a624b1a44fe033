"""Making a failing program small: first its sketch, then its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import process_time

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from ....dialects.host import DEFAULTS, host_names
from ....ir.errors import InputError
from ....ir.upstream import ModuleOp, VerifyException
from ...driver.reduce import reduce_module
from ..generators.build import build, default_operators
from ..generators.levels import at_level
from ..generators.program import Program
from ..generators.sketch import Sketch, Step
from .failures import AtFault, StrategyFailed, Wrong
from .judge import Judge
from .run import Refused

SHRINKING = 20.0
"""CPU seconds for making one failing program smaller."""

Fails = Callable[[Program], bool]
"""Whether a program still shows the failure. It does not change the program."""


def smallest(program: Program, level: str, fails: Fails) -> Program:
    """A small program that fails like a given one, found in about SHRINKING seconds.

    Returns the program itself if it does not fail again, as one that fails only now and then.
    """
    end = process_time() + SHRINKING
    best = program
    try:
        if program.sketch is not None:
            best = _of_sketch(program, level, fails, end)
        return _of_module(best, fails, max(1.0, end - process_time()))
    except ValueError:
        return program


def fails_with(judge: Judge, wrong: Wrong) -> Fails:
    """Whether a program is wrong in the same way."""

    def fails(program: Program) -> bool:
        try:
            found = judge.wrong(program)
        # Another failure is not the one to show.
        except (Refused, AtFault, StrategyFailed, InputError, VerifyException):
            return False
        return found is not None and found.kind == wrong.kind

    return fails


def fails_alike(judge: Judge, failed: AtFault) -> Fails:
    """Whether the same kind of error is raised on a program."""
    kind = (type(failed), type(failed.__cause__))

    def fails(program: Program) -> bool:
        try:
            judge.wrong(program)
        except AtFault as other:
            return (type(other), type(other.__cause__)) == kind
        except (Refused, StrategyFailed):
            return False
        return False

    return fails


def _of_sketch(program: Program, level: str, fails: Fails, end: float) -> Program:
    """Build programs from simpler sketches, as long as one of them fails."""
    best, changed, operators = program, True, default_operators()
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
    """The size of a program: its operations, then its elements, then its tiles."""
    elements = sum(array.size for array in (*program.inputs.values(), *program.state.values()))
    return sum(1 for _ in program.module.walk()), elements, program.target.tiles


def simpler(sketch: Sketch) -> Iterator[Sketch]:
    """Simpler sketches, the most promising first."""
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
    """Leave out operations, as long as the program fails."""
    named = program.with_module(_with_names(program.module.clone()))
    # A program may be wrong only compared with its source, which the copy does not have.
    if not fails(named):
        return program

    def still_fails(module: ModuleOp) -> bool:
        try:
            candidate = named.with_module(module)
        except InputError:
            # Without this operation the program cannot start.
            return False
        return fails(candidate)

    return named.with_module(reduce_module(named.module, still_fails, seconds))


def _with_names(module: ModuleOp) -> ModuleOp:
    """Name arguments and results for the host, so that they keep their names if others go."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            counts = {"arg_names": len(op.body.block.args)}
            for attribute in DEFAULTS:
                count = counts.get(attribute, len(op.function_type.outputs.data))
                names = host_names(op, attribute, count)
                if names:
                    op.attributes[attribute] = ArrayAttr(map(StringAttr, names))
    return module
