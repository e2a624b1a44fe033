"""Shrinks a failing program: its sketch, its source, its operations, then its values."""

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
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.well_known import ENTRY
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

SKETCHED, SHARE = 0.3, 0.5
"""The shares of the time that simpler sketches, and then simpler sources, may use."""

Fails = Callable[[Program], bool]
"""Whether a program still shows the failure. It does not change the program."""

Better = Callable[[Program], None]
"""Is given each smaller program that fails."""


def _all_valid(program: Program) -> bool:
    return True


def _not_shown(program: Program) -> None:
    pass


@dataclass(frozen=True)
class Shrunk:
    """A shrunk program that fails.

    Attributes:
        complete: False if time ran out before every reduction was tried.
        stopped: whether the user ended the search.
        seconds: the CPU time limit of the search.
    """

    program: Program
    complete: bool = True
    stopped: bool = False
    seconds: float = SHRINKING

    @property
    def note(self) -> str:
        """A message that the program may still be too large; "" if it is fully reduced."""
        if self.stopped:
            why = "reducing it was stopped"
        elif not self.complete:
            why = f"{self.seconds:g} s of CPU time were not enough"
        else:
            return ""
        return (
            f"This program is not fully reduced: {why}. "
            "Replay it to see whether a smaller one fails too."
        )


def smallest(
    program: Program,
    level: str,
    fails: Fails,
    seconds: float | None = None,
    *,
    valid: Fails = _all_valid,
    better: Better = _not_shown,
) -> Shrunk:
    """A small program that fails like a given one.

    Returns the given program if it does not fail again, because it fails only sometimes.

    A KeyboardInterrupt ends the search with the smallest program so far.

    Args:
        level: the level for which the program was generated.
        seconds: CPU time limit; SHRINKING if None.
        valid: whether a program is fit to be a reproducer, a slower test than `fails`.
        better: is given each smaller program that fails, valid or not.
    """
    limit = SHRINKING if seconds is None else seconds
    search = _Shrinking(program, level, fails, valid, better, process_time() + limit)
    complete = stopped = False
    try:
        complete = search.run()
    except KeyboardInterrupt:
        stopped = True
        search.settle()
    return Shrunk(search.sure, complete, stopped, limit)


@dataclass
class _Shrinking:
    """A search for a small program.

    best: the smallest program that fails.

    Attributes:
        sure: the smallest failing program known to be valid.
    """

    sure: Program
    level: str
    fails: Fails
    valid: Fails
    better: Better
    end: float

    def __post_init__(self) -> None:
        self.best = self.sure

    @property
    def left(self) -> float:
        """The CPU seconds left."""
        return max(0.0, self.end - process_time())

    def show(self, program: Program) -> None:
        """Record a smaller program that fails."""
        self.best = program
        self.better(program)

    def settle(self) -> bool:
        """Accept the smallest program if it is valid, or else return to the last valid one.

        Returns whether it is valid.
        """
        if self.best is not self.sure and not self.valid(self.best):
            self.best = self.sure
            return False
        self.sure = self.best
        return True

    def run(self) -> bool:
        """Run one reduction after another. Returns whether the time was enough."""
        if self.sure.sketch is not None:
            self._take(_of_sketch, SKETCHED)
            if self.sure.source is not None:
                self._take(_of_source, SHARE)
        # No part of the result can be left out, however little time there was before.
        complete = self._take(_of_module, 1.0)
        self._take(_of_values, 1.0)
        return complete

    def _take(self, way: Shrinker, share: float) -> bool:
        """Run a reduction with a share of the time left. Returns whether the time was enough.

        Most smaller programs are valid, so only the smallest is tested for validity; if it is
        invalid, the reduction runs again and tests each program.
        """
        seconds = share * self.left
        complete = way(self, self.fails, seconds)
        if not self.settle():
            complete = way(self, both(self.fails, self.valid), share * self.left)
            self.settle()
        return complete


Shrinker = Callable[[_Shrinking, Fails, float], bool]
"""A reduction: makes the best program of a search smaller, within a number of CPU seconds.
Returns whether they were enough."""


def fails_with(judge: Judge, wrong: Wrong) -> Fails:
    """A function that tells whether a program fails in the same way."""

    def fails(program: Program) -> bool:
        try:
            found = judge.wrong(program)
        # Another failure must not replace the one to show.
        except (Refused, AtFault, StrategyFailed, InputError, VerifyException):
            return False
        return found is not None and found.way == wrong.way

    return fails


def fails_alike(judge: Judge, failed: AtFault) -> Fails:
    """A function that tells whether a pass or relation fails on a program with the same error."""
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
    """A function that tells whether a program fails and is valid. Validity is tested last."""
    return lambda program: fails(program) and valid(program)


# Sketches


def _of_sketch(search: _Shrinking, fails: Fails, seconds: float) -> bool:
    """Build programs from simpler sketches, as long as one of them fails."""
    changed, operators, end = True, default_operators(), process_time() + seconds
    # Where operations can be left out of the program itself, that takes less time.
    is_lowered = search.best.source is not None
    tried: set[Sketch] = set()
    while changed:
        changed = False
        assert search.best.sketch is not None
        sketch = search.best.sketch
        for simple in (*fewer_steps(sketch), *(simpler(sketch) if is_lowered else ())):
            if process_time() > end:
                return False
            if simple in tried:
                continue
            tried.add(simple)
            candidate = at_level(build(simple, operators), search.level)
            if (
                candidate is not None
                and _weight(candidate) < _weight(search.best)
                and fails(candidate)
            ):
                search.show(candidate)
                changed = True
                break
    return True


def _weight(program: Program) -> tuple[int, int, int, int, int]:
    """The size of a program: operations, elements, tiles, the machine's text, kind of values."""
    elements = sum(array.size for array in (*program.inputs.values(), *program.state.values()))
    target, sketch = program.target, program.sketch
    values = 0 if sketch is None else DATA.index(sketch.data)
    operations = sum(1 for _ in program.module.walk())
    return operations, elements, target.tiles, len(target.spelling()), values


FEW = (1, 2, 3)
"""Sizes, numbers of tiles and seeds to try in place of larger ones."""


def fewer_steps(sketch: Sketch) -> Iterator[Sketch]:
    """Sketches with fewer steps, the shortest first."""
    steps = sketch.steps
    if sketch.training:
        yield replace(sketch, training=0)
        yield replace(sketch, training=PLAINEST)
    for keep in range(len(steps)):
        yield replace(sketch, steps=steps[keep : keep + 1])
    for gone in range(len(steps)):
        yield replace(sketch, steps=steps[:gone] + steps[gone + 1 :])


def simpler(sketch: Sketch) -> Iterator[Sketch]:
    """Sketches of the same steps that are simpler, the most promising first."""
    steps = sketch.steps
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
    """Spellings of machines with fewer tiles, or without changes to the preset machine."""
    plain, comma, changes = spelling.partition(",")
    preset, colon, count = plain.partition(":")
    if changes:
        yield plain
    if not (colon and count.isdecimal()):
        return
    tiles = int(count)
    # Chips have the same number of tiles each.
    machine = machine_of(spelling)
    chips, aside = machine.chips, machine.io_tiles
    for fewer in dict.fromkeys((*FEW, tiles // 2, tiles - 1)):
        if chips * aside < fewer < tiles and fewer % chips == 0:
            yield f"{preset}:{fewer}{comma}{changes}"


# The source of a program of a lower level


def _of_source(search: _Shrinking, fails: Fails, seconds: float) -> bool:
    """Remove operations of nn from the source, and lower the rest by the same decisions."""
    program = search.best
    assert program.sketch is not None
    source = program.source_program()
    named = source.with_module(_with_names(source.module.clone()))
    seed = program.sketch.seed
    latest = program

    def still_fails(module: ModuleOp) -> bool:
        nonlocal latest
        try:
            latest = lowered(named.with_module(module), search.level, Random(seed))
        except (InputError, DoesNotFit, ValueError, VerifyException):
            return False
        return fails(latest)

    def better(module: ModuleOp) -> None:
        if _weight(latest) <= _weight(search.best):
            search.show(latest)

    return _reduced(named.module, still_fails, seconds, better)


def _reduced(
    module: ModuleOp,
    fails: Callable[[ModuleOp], bool],
    seconds: float,
    better: Callable[[ModuleOp], None],
) -> bool:
    """Reduce a module. Returns whether the time was enough."""
    if seconds <= 0:
        return False
    try:
        return reduced(module, fails, seconds, better).complete
    except ValueError:
        # The module alone does not fail: it may be wrong only compared with its source.
        return True


# The program itself


def _of_module(search: _Shrinking, fails: Fails, seconds: float) -> bool:
    """Remove operations as long as the program fails."""
    program = search.best
    named = program.with_module(_with_names(program.module.clone()))
    latest = program

    def still_fails(module: ModuleOp) -> bool:
        nonlocal latest
        try:
            latest = named.with_module(module)
        except InputError:
            # Without this operation the program cannot start.
            return False
        return fails(latest)

    def better(_: ModuleOp) -> None:
        search.show(latest)

    return _reduced(named.module, still_fails, seconds, better)


def _with_names(module: ModuleOp) -> ModuleOp:
    """The module with names for arguments and results, which stay when others are removed."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == ENTRY:
            counts = {"arg_names": len(op.body.block.args)}
            for attribute in DEFAULTS:
                count = counts.get(attribute, len(op.function_type.outputs.data))
                names = host_names(op, attribute, count)
                if names:
                    op.attributes[attribute] = ArrayAttr(map(StringAttr, names))
    return module


# Values and machine


def _of_values(search: _Shrinking, fails: Fails, seconds: float) -> bool:
    """Simplify the machine, the weights and the inputs, as long as the program fails.

    The program has no more parts to remove, so this is complete whenever it stops.
    """
    end = process_time() + seconds
    if search.best.source is not None:
        # The source would have to change with the program.
        return True
    for change in _simpler_values(search.best):
        if process_time() > end:
            break
        candidate = change(search.best)
        if candidate is not None and fails(candidate):
            search.show(candidate)
    return True


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
    """Each array in a module: the operation that holds it, the property's name, and the array."""
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
