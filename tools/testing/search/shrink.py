"""Making a failing program small: its sketch, its source, its operations, then its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from time import process_time

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ....dialects.blob_attr import BlobAttr
from ....dialects.host import DEFAULTS, host_names
from ....ir.blob import Blob
from ....ir.errors import DoesNotFit, InputError
from ....ir.upstream import ModuleOp, VerifyException
from ....passes.plans.planned import TARGET
from ...driver.arrays import Array
from ...driver.reduce import reduced
from ..generators.build import build, default_operators
from ..generators.levels import at_level, lowered
from ..generators.program import Program
from ..generators.sketch import DATA, Sketch, Step, machine_of
from ..generators.training import PLAINEST
from .failures import AtFault, StrategyFailed, Wrong
from .judge import Judge
from .run import Refused

SHRINKING = 60.0
"""CPU seconds for making one failing program smaller. Most programs take a few."""

SHARE = 0.5
"""The share of the time that simpler sketches, and then simpler sources, may use."""

Fails = Callable[[Program], bool]
"""Whether a program still shows the failure. It does not change the program."""


@dataclass(frozen=True)
class Shrunk:
    """A small program that fails. complete: False if time ran out before all ways were tried."""

    program: Program
    complete: bool = True

    @property
    def note(self) -> str:
        """What to tell the user if the program may still be too large; "" otherwise."""
        if self.complete:
            return ""
        return (
            f"This program is not fully reduced: {SHRINKING:g} s of CPU time were not enough. "
            "Replay it to see whether a smaller one fails too."
        )


def smallest(program: Program, level: str, fails: Fails, seconds: float | None = None) -> Shrunk:
    """A small program that fails like a given one.

    level: what the program was generated for. seconds: of CPU time; SHRINKING if None.
    Returns the program itself if it does not fail again, as one that fails only now and then.
    """
    limit = SHRINKING if seconds is None else seconds
    begin = process_time()
    best = Shrunk(program)
    try:
        if program.sketch is not None:
            best = _of_sketch(program, level, fails, begin + SHARE * limit)
        if best.program.source is not None and best.program.sketch is not None:
            half = SHARE * (begin + limit - process_time())
            best = _of_source(best.program, level, fails, half)
        end = begin + limit
        best = _of_module(best, fails, max(0.0, end - process_time()))
        return _of_values(best, fails, end)
    except ValueError:
        return best


def fails_with(judge: Judge, wrong: Wrong) -> Fails:
    """Whether a program is wrong in the same way."""

    def fails(program: Program) -> bool:
        try:
            found = judge.wrong(program)
        # Another failure is not the one to show.
        except (Refused, AtFault, StrategyFailed, InputError, VerifyException):
            return False
        return found is not None and found.way == wrong.way

    return fails


def fails_alike(judge: Judge, failed: AtFault) -> Fails:
    """Whether the same pass or relation raises the same kind of error on a program."""
    way = _way(failed)

    def fails(program: Program) -> bool:
        try:
            judge.wrong(program)
        except AtFault as other:
            return _way(other) == way
        except (Refused, StrategyFailed):
            return False
        return False

    return fails


def _way(failed: AtFault) -> tuple[type, type, str]:
    return type(failed), type(failed.__cause__), failed.name


def both(fails: Fails, valid: Fails) -> Fails:
    """Whether a program fails, and is valid by itself. A program that does not fail is not run."""
    return lambda program: fails(program) and valid(program)


# Sketches


def _of_sketch(program: Program, level: str, fails: Fails, end: float) -> Shrunk:
    """Build programs from simpler sketches, as long as one of them fails."""
    best, changed, operators = program, True, default_operators()
    tried: set[Sketch] = set()
    while changed:
        changed = False
        assert best.sketch is not None
        for sketch in simpler(best.sketch):
            if process_time() > end:
                return Shrunk(best, complete=False)
            if sketch in tried:
                continue
            tried.add(sketch)
            candidate = at_level(build(sketch, operators), level)
            if candidate is not None and _weight(candidate) < _weight(best) and fails(candidate):
                best, changed = candidate, True
                break
    return Shrunk(best)


def _weight(program: Program) -> tuple[int, int, int, int, int]:
    """The size of a program: operations, elements, tiles, the machine's text, kind of values."""
    elements = sum(array.size for array in (*program.inputs.values(), *program.state.values()))
    target, sketch = program.target, program.sketch
    values = 0 if sketch is None else DATA.index(sketch.data)
    operations = sum(1 for _ in program.module.walk())
    return operations, elements, target.tiles, len(target.spelling()), values


FEW = (1, 2, 3)
"""Sizes, numbers of tiles and seeds to try in place of larger ones."""


def simpler(sketch: Sketch) -> Iterator[Sketch]:
    """Simpler sketches, the most promising first."""
    steps = sketch.steps
    if sketch.training:
        yield replace(sketch, training=0)
        yield replace(sketch, training=PLAINEST)
    for keep in range(len(steps)):
        yield replace(sketch, steps=steps[keep : keep + 1])
    for gone in range(len(steps)):
        yield replace(sketch, steps=steps[:gone] + steps[gone + 1 :])
    for i, step in enumerate(steps):
        if step.within:
            plain = Step(step.kind, step.operand, step.seed)
            yield replace(sketch, steps=(*steps[:i], plain, *steps[i + 1 :]))
    for size in FEW:
        yield replace(sketch, sizes=(size,))
    for i, size in enumerate(sketch.sizes):
        for smaller in (*FEW, size - 1):
            if 0 < smaller < size:
                sizes = (*sketch.sizes[:i], smaller, *sketch.sizes[i + 1 :])
                yield replace(sketch, sizes=sizes)
    for target in smaller_machines(sketch.target):
        yield replace(sketch, target=target)
    for data in DATA[: DATA.index(sketch.data)]:
        yield replace(sketch, data=data)
    # Other leaves, attributes and bodies of control flow, which may take fewer operations.
    for seed in FEW:
        yield replace(sketch, seed=seed)
        if sketch.training > PLAINEST:
            yield replace(sketch, training=seed)
        for i, step in enumerate(steps):
            yield replace(sketch, steps=(*steps[:i], replace(step, seed=seed), *steps[i + 1 :]))


def smaller_machines(spelling: str) -> Iterator[str]:
    """Spellings of machines with fewer tiles, and without changes to the preset machine."""
    machine, comma, changes = spelling.partition(",")
    preset, colon, count = machine.partition(":")
    if changes:
        yield machine
    if not (colon and count.isdecimal()):
        return
    tiles = int(count)
    for fewer in dict.fromkeys((*FEW, tiles // 2, tiles - 1)):
        if 0 < fewer < tiles:
            yield f"{preset}:{fewer}{comma}{changes}"


# The source of a program of a lower level


def _of_source(program: Program, level: str, fails: Fails, seconds: float) -> Shrunk:
    """Leave out operations of nn, and lower what remains by the same decisions."""
    assert program.sketch is not None
    source = program.source_program()
    named = source.with_module(_with_names(source.module.clone()))
    seed = program.sketch.seed

    def below(module: ModuleOp) -> Program | None:
        try:
            return lowered(named.with_module(module), level, Random(seed))
        except (InputError, DoesNotFit, ValueError, VerifyException):
            return None

    def still_fails(module: ModuleOp) -> bool:
        candidate = below(module)
        return candidate is not None and fails(candidate)

    if seconds <= 0 or not still_fails(named.module.clone()):
        return Shrunk(program)
    found = reduced(named.module, still_fails, seconds)
    small = below(found.module.clone())
    if small is None or _weight(small) > _weight(program):
        return Shrunk(program)
    return Shrunk(small, found.complete)


# The program itself


def _of_module(best: Shrunk, fails: Fails, seconds: float) -> Shrunk:
    """Leave out operations, as long as the program fails."""
    program = best.program
    named = program.with_module(_with_names(program.module.clone()))
    # A program may be wrong only compared with its source, which the copy does not have.
    if not fails(named):
        return best

    def still_fails(module: ModuleOp) -> bool:
        try:
            candidate = named.with_module(module)
        except InputError:
            # Without this operation the program cannot start.
            return False
        return fails(candidate)

    found = reduced(named.module, still_fails, seconds)
    return Shrunk(named.with_module(found.module), found.complete)


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


# Values and machine


def _of_values(shrunk: Shrunk, fails: Fails, end: float) -> Shrunk:
    """Make the machine smaller, and weights and inputs simple, as long as the program fails.

    The program has no more parts to leave out, so this is complete whenever it stops.
    """
    best, complete = shrunk.program, shrunk.complete
    if best.source is not None:
        # Its source would have to change with it.
        return shrunk
    for change in _simpler_values(best):
        if process_time() > end:
            break
        candidate = change(best)
        if candidate is not None and fails(candidate):
            best = candidate
    return Shrunk(best, complete)


Change = Callable[[Program], Program | None]
"""A simpler program; None if the change does not apply."""


def _simpler_values(program: Program) -> Iterator[Change]:
    # A module that is planned has decisions for its machine.
    if TARGET not in program.module.attributes:
        for spelling in smaller_machines(program.target.spelling()):
            yield partial(_on_machine, spelling=spelling)
    for name in program.inputs:
        for simple in _SIMPLE:
            yield partial(_with_input, name=name, simple=simple)
    for number in range(sum(1 for _ in _holders(program.module))):
        for simple in _SIMPLE:
            yield partial(_with_constant, number=number, simple=simple)


def _on_machine(program: Program, spelling: str) -> Program | None:
    target = machine_of(spelling)
    if target.tiles >= program.target.tiles:
        return None
    return Program(program.module, program.context, program.inputs, target, plans=program.plans)


_SIMPLE: tuple[Callable[[Array], Array], ...] = (
    lambda array: np.rint(np.nan_to_num(array.astype(np.float64))).clip(-8, 8).astype(array.dtype),
    lambda array: (np.arange(array.size) % 8 + 1).reshape(array.shape).astype(array.dtype),
    np.ones_like,
)
"""Simpler values of an array, the simplest last, so that it wins."""


def _with_input(program: Program, name: str, simple: Callable[[Array], Array]) -> Program | None:
    array = program.inputs[name]
    values = simple(array)
    if values.tobytes() == array.tobytes():
        return None
    inputs = {**program.inputs, name: values}
    return Program(program.module, program.context, inputs, program.target, plans=program.plans)


def _holders(module: ModuleOp) -> Iterator[tuple[Operation, str, Array]]:
    """The operations that hold an array, the names of the properties, and the arrays."""
    for op in module.walk():
        for name, value in op.properties.items():
            if isinstance(value, BlobAttr) and value.array.size:
                yield op, name, value.array


def _with_constant(
    program: Program, number: int, simple: Callable[[Array], Array]
) -> Program | None:
    found = program.clone()
    op, name, array = tuple(_holders(found.module))[number]
    values = simple(array)
    if values.tobytes() == array.tobytes():
        return None
    op.properties[name] = BlobAttr(Blob(values))
    return found
