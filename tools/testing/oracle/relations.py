"""What must hold between a program and others that are known to compute the same, or less.

    check_pass("canonicalize", relation=idempotent)
    check_pipeline(relation=(tile_count_invariant, batch_split))

Such relations need no reference, and see what no bound does. One is a function of a program, of
what the passes have made of it, and of the passes as a function from a program to another. It gives
what is wrong in words, or None; it raises NotApplicable where it says nothing of a program.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, wraps
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from ....backends.codelets.scalar import float_limits, is_floating, scalar_function
from ....backends.evaluate.host import Run
from ....backends.price import price, totals
from ....backends.reference import evaluate_structure, run_reference
from ....dialects.host import host_names
from ....dialects.levels import EXCHANGE, NN
from ....dialects.structured import Structured
from ....ir.equal import same_program
from ....ir.provenance import at, locate
from ....passes.convert_nn_to_partition import TARGET
from ....passes.decompose import Decompose
from ...driver.arrays import Array
from ..generators.program import Program
from ..generators.sketch import MOST_TILES, machine_of
from .batch import Batch, NoBatch, batches, main_of, part
from .degrees import Degree, degrees_of
from .oracles import Outcome, bounded_run, difference, run

Compiled: TypeAlias = "Callable[[Program], Program]"
"""Runs the passes that are tested on another program, which stays as it is."""

Relation: TypeAlias = "Callable[[Program, Program, Compiled], str | None]"
"""Says what is wrong between a program, what passes have made of it, and what they make of others;
None if nothing is. Raises NotApplicable."""


class NotApplicable(Exception):
    """A relation says nothing of a program; why, in words."""


class _Violated(Exception):
    """What is wrong, from within."""


def _relation(function: Relation) -> Relation:
    @wraps(function)
    def relation(before: Program, after: Program, compiled: Compiled) -> str | None:
        try:
            return function(before, after, compiled)
        except _Violated as wrong:
            return str(wrong)

    return relation


# What several of them do


@lru_cache(maxsize=4)
def expected_of(program: Program) -> Outcome:
    """What a program computes, with the error that it may have; kept for who asks next."""
    return bounded_run(program)


@lru_cache(maxsize=4)
def _run(program: Program) -> Run:
    try:
        return run(program)
    except MemoryError:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise _Violated(f"the compiled program cannot be run: {problem}") from error


def _source(before: Program) -> Program:
    """A program that can be compiled for any machine. Raises NotApplicable."""
    if before.level != NN or TARGET in before.module.attributes:
        raise NotApplicable("it is planned for a machine already")
    return before


def _number(program: Program) -> int:
    """A number that is the same for one program each time, to choose by."""
    named = repr(program.sketch) if program.sketch is not None else program.target.spelling()
    return zlib.crc32(named.encode())


def _as_expected(expected: Outcome, one: Run, other: Run, what: str, exactly: bool) -> str | None:
    """What is wrong with another run of the same program, which may be off by both errors."""
    for name, array in expected.outputs.items():
        if name not in one.outputs or one.outputs[name].shape != array.shape:
            return f"{name}: is not what the program gives"
    outcome = replace(
        expected,
        outputs={k: one.outputs[k] for k in expected.outputs},
        state={k: one.state[k] for k in expected.state if k in one.state},
    )
    if exactly:
        outcome = replace(outcome, errors={k: np.zeros_like(v) for k, v in expected.errors.items()})
    wrong = difference(outcome, other)
    return None if wrong is None else f"{what}: {wrong}"


def _is_rounded_alike(module: ModuleOp) -> bool:
    """Whether no float depends on the order of a sum, or on what a vector loop makes of its tail.

    So it is where nothing is summed or multiplied together, and every function is rounded right.
    """
    for op in module.walk():
        if not isinstance(op, Structured):
            continue
        body = op.structure().body
        if body.combiner in ("sum", "prod"):
            return False
        for name in (body.function, *(stage.function for stage in body.then)):
            if not scalar_function(name).is_rounded_correctly:
                return False
    return True


def _decomposed(program: Program) -> ModuleOp:
    module = program.module.clone()
    Decompose().apply(program.context, module)
    return module


# Twice


@_relation
def idempotent(before: Program, after: Program, compiled: Compiled) -> str | None:
    """A second run of the passes changes nothing.

    A pass looks for something and replaces it; if the second run still finds some, the first has
    stopped too early, or undoes what it does. For passes that stay on a level: one that leads to
    another cannot be run twice.
    """
    if after.level != before.level:
        raise NotApplicable(f"the passes lead to {after.level}")
    again = compiled(after)
    if same_program(again.module, after.module):
        return None
    pairs = zip(after.text.splitlines(), again.text.splitlines(), strict=False)
    change = next((f"{a.strip()!r} becomes {b.strip()!r}" for a, b in pairs if a != b), "lines go")
    return f"a second run changes the program: {change}"


# Another machine


@_relation
def tile_count_invariant(before: Program, after: Program, compiled: Compiled) -> str | None:
    """The same program compiled for another machine computes the same.

    How many tiles and workers there are decides who computes what, and in which order sums are
    added up, but not what is computed. Both results are right within their errors, so they are at
    most both errors apart; where no order matters, they are equal.
    """
    other = compiled(_elsewhere(_source(before)))
    if same_program(other.module, after.module):
        raise NotApplicable("the passes do not ask for the machine")
    what = f"compiled for {other.target.spelling()}"
    exactly = _is_rounded_alike(_decomposed(before))
    return _as_expected(expected_of(before), _run(after), _run(other), what, exactly)


def _elsewhere(before: Program) -> Program:
    """The program, for a machine with another number of tiles or workers."""
    tiles = before.target.tiles
    counts = [n for n in (1, 2, tiles - 1, tiles + 1, 2 * tiles + 1) if 0 < n <= MOST_TILES]
    number = _number(before)
    tiles = counts[number % len(counts)]
    spelling = f"tiny:{tiles}" + (",workers=1" if number // 8 % 3 == 0 else "")
    return Program(before.module, before.context, before.inputs, machine_of(spelling))


# Halves of a batch


@_relation
def batch_split(before: Program, after: Program, compiled: Compiled) -> str | None:
    """Two parts of a batch, compiled and run one by one, give what the whole gives.

    Along an axis that every operation has as one parallel dimension, alone and whole, no element
    depends on another; so a program for some of them gives these elements. Programs without such an
    axis are skipped.
    """
    source = _source(before)
    batch = next(batches(source), None)
    if batch is None:
        raise NotApplicable("it has no batch")
    first = 1 if _number(before) % 2 else batch.size // 2
    runs: list[Run] = []
    for low, high in ((0, first), (first, batch.size)):
        try:
            one = part(source, batch, low, high)
        except NoBatch:
            raise NotApplicable("it cannot be cut along its batch") from None
        runs.append(_run(compiled(one)))
    whole = _run(after)
    exactly = _is_rounded_alike(_decomposed(before))
    for one in runs:
        joined = _joined(before, batch, runs, one)
        what = f"a batch of {batch.size}, run as {first} and {batch.size - first}"
        wrong = _as_expected(expected_of(before), whole, joined, what, exactly)
        if wrong is not None:
            return wrong
    return None


def _joined(before: Program, batch: Batch, runs: list[Run], one: Run) -> Run:
    """The results of parts put together; those without a batch are one part's."""
    main = main_of(before.module)
    names = host_names(main, "result_names", len(batch.outputs))
    outputs: dict[str, Array] = {}
    for name, axis in zip(names, batch.outputs, strict=True):
        parts = [each.outputs[name] for each in runs]
        outputs[name] = one.outputs[name] if axis is None else np.concatenate(parts, axis)
    return Run(outputs, one.state)


# What nobody reads


@_relation
def ignores_dead_code(before: Program, after: Program, compiled: Compiled) -> str | None:
    """An operation whose result nobody reads changes no result.

    One more reader of a value, and one operation more to look at, must not lead a pass to do
    otherwise to those that matter. Decisions may change, and the rounding of what was fused with
    them: so both errors are allowed. At levels whose values are SSA; what the program gives counts.
    """
    dead = before.clone()
    candidates = [op for op in main_of(dead.module).body.block.ops if _may_be_dead(op)]
    if not candidates:
        raise NotApplicable("nothing in it computes values")
    number = _number(before)
    op = candidates[number % len(candidates)]
    copy = op.clone()
    locate(copy, at(op, "dead"))
    block = op.parent
    last = block.last_op if block is not None else None
    assert block is not None
    assert last is not None
    where = op.next_op if number // 8 % 2 else last
    block.insert_op_before(copy, where or last)
    expected = expected_of(before.source_program())
    what = f"with one more {op.name} that nobody reads"
    return _as_expected(expected, _run(after), _run(compiled(dead)), what, exactly=False)


def _may_be_dead(op: Operation) -> bool:
    return op.has_trait(Pure) and not op.regions and bool(op.results) and bool(op.operands)


# Powers of two

EXPONENT = 2
"""What a scaled operand is multiplied by, as a power of two. An even one: roots halve it."""

LEAST, MOST = 2.0**-20, 2.0**20
"""Between these, products of two are in the range of float32, and so are they if scaled."""


@_relation
def scales_by_powers_of_two(before: Program, after: Program, compiled: Compiled) -> str | None:
    """A result that is linear in an operand is scaled by 4 with it, to the bit.

    A floating-point number times a power of two has the same digits, so every product, quotient and
    sum of scaled numbers is rounded as before; a constant that was added where none belongs shows
    however small it is. Which results scale, and how, follows from what each operation does with
    the operand (see degrees): the square scales by 16, a quotient by it by 1/4. Nothing may be so
    small, or so large, that it is rounded otherwise. The passes have nothing to do with it: their
    program is run twice.
    """
    program = before.source_program()
    module = _decomposed(program)
    main = main_of(module)
    names = host_names(main, "arg_names", len(main.body.block.args))
    last = main.body.block.last_op
    assert isinstance(last, ReturnOp)
    outputs = host_names(main, "result_names", len(last.operands))
    for name, argument in zip(names, main.body.block.args, strict=True):
        given = program.inputs[name]
        if not is_floating(given.dtype) or not given.size:
            continue
        degrees = degrees_of(main, argument)
        scaled = {
            output: degree
            for output, value in zip(outputs, last.operands, strict=True)
            if (degree := degrees[value]) is not None and (2 * degree).denominator == 1
        }
        moves = any(d != 0 for d in scaled.values()) and _holds(given, given.dtype)
        if moves and _is_in_range(program, module, degrees):
            return _scales(after, name, scaled)
    raise NotApplicable("nothing scales with an operand")


def _scales(after: Program, name: str, degrees: Mapping[str, Fraction]) -> str | None:
    inputs = dict(after.inputs)
    inputs[name] = (inputs[name] * inputs[name].dtype.type(2.0**EXPONENT)).astype(
        inputs[name].dtype
    )
    one = _run(after)
    other = _run(Program(after.module, after.context, inputs, after.target))
    for output, degree in degrees.items():
        if output not in one.outputs or output not in other.outputs:
            continue
        factor = 2.0 ** float(EXPONENT * degree)
        old, new = one.outputs[output], other.outputs[output]
        wanted = old.astype(np.float64) * factor if is_floating(old.dtype) else old
        found = new.astype(wanted.dtype)
        wrong = (found != wanted) & ~((found != found) & (wanted != wanted))
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            return (
                f"{name} times {2**EXPONENT}: {output}: element {list(index)} is "
                f"{float(found[index]):.9g}; need {float(wanted[index]):.9g}, "
                f"{factor:g} times what it was"
            )
    return None


def _is_in_range(program: Program, module: ModuleOp, degrees: Mapping[SSAValue, Degree]) -> bool:
    """Whether all that scales is far from what a dtype cannot hold, before rounding too."""
    right = True

    def look(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        nonlocal right
        scales = [degrees.get(v, Fraction(0)) != 0 for v in (*op.operands, *op.results)]
        if not any(scales):
            return
        if isinstance(op, Structured) and scales[-1] and is_floating(results[0].dtype):
            # What has become 0 in a narrow dtype may not have been.
            made = results[0]
            wide, _ = evaluate_structure(op.structure(), operands, made.dtype, made.shape)
            right = right and _holds(wide, made.dtype)
        for array, scaled in zip((*operands, *results), scales, strict=True):
            if scaled and is_floating(array.dtype):
                right = right and _holds(array, array.dtype)

    run_reference(module, program.inputs, observe=look)
    return right


def _holds(values: Array, dtype: np.dtype[np.generic]) -> bool:
    """Whether values, and 16 times more or less, are normal numbers of a dtype, or 0."""
    limits = float_limits(dtype)
    size = np.abs(values.astype(np.float64))
    low, high = max(LEAST, 16 * limits.smallest_normal), min(MOST, limits.largest / 16)
    return bool(((size == 0) | ((size >= low) & (size <= high))).all())


# More work


@_relation
def cost_monotone(before: Program, after: Program, compiled: Compiled) -> str | None:
    """A program with one more operation at its end never takes fewer cycles.

    The planner goes from the first operation to the last and takes what is cheapest so far, so an
    operation at the end changes no decision before it; a superstep with more in it takes as long or
    longer. No more can be said: an axis that is larger may be cheaper, since 8 elements are whole
    vectors and 7 are not, and an operation in the middle gives others another layout to begin from.
    The operation reads values that the program gives anyway, so that nothing was fused across them.
    For passes that lead to exchange, where a program has a price. Little memory makes the planner
    trade cycles for bytes: programs for such machines are compiled for one with more.
    """
    source = _source(before)
    if after.level != EXCHANGE:
        raise NotApplicable("only programs of exchange have a price")
    more = source.clone()
    name = _append(more)
    one, other = cycles_of(after), cycles_of(compiled(more))
    if other >= one:
        return None
    return f"with one more {name} at its end it takes {other} cycles; it took {one} without"


def cycles_of(program: Program) -> int:
    """The cycles that a run of a program of exchange takes, as it is priced."""
    return totals(price(program.module, program.target)).cycles


def _append(program: Program) -> str:
    """Let a program compute one more result from those it gives. Raises NotApplicable."""
    main = main_of(program.module)
    last = main.body.block.last_op
    assert isinstance(last, ReturnOp)
    given = {*last.operands, *main.body.block.args}
    candidates = [
        op
        for op in main.body.block.ops
        if _may_be_dead(op) and len(op.results) == 1 and all(v in given for v in op.operands)
    ]
    if not candidates:
        raise NotApplicable("it gives nothing that can be computed on")
    op = candidates[_number(program) % len(candidates)]
    copy = op.clone()
    locate(copy, at(op, "more"))
    main.body.block.insert_op_before(copy, last)
    count = len(last.operands)
    if "result_names" in main.attributes:
        names = (*host_names(main, "result_names", count), f"more{count}")
        main.attributes["result_names"] = ArrayAttr(map(StringAttr, names))
    last.operands = [*last.operands, copy.results[0]]
    main.update_function_type()
    return op.name


RELATIONS: dict[str, Relation] = {
    "idempotent": idempotent,
    "tile_count_invariant": tile_count_invariant,
    "batch_split": batch_split,
    "ignores_dead_code": ignores_dead_code,
    "scales_by_powers_of_two": scales_by_powers_of_two,
    "cost_monotone": cost_monotone,
}
"""All of them, by the names that saved failures have for them."""


def name_of(relation: Relation) -> str:
    """What a relation is called."""
    return getattr(relation, "__name__", type(relation).__name__)
