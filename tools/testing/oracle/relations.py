"""Relations between the results of a program and those of related programs.

    check_pass("canonicalize", relation=idempotent)
    check_pipeline(relation=(tile_count_invariant, batch_split))

A relation compares compiled programs with each other, so it needs no reference, and it finds bugs
that error bounds do not show. It is a function of a program, the compiled program, and a function
that compiles other programs with the same passes. It returns what is wrong, in words, or None. It
raises NotApplicable for programs that it cannot test.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, wraps
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from ....backends.codelets.conversion import float_limits
from ....backends.codelets.scalar import scalar_function
from ....backends.evaluate.host import Run
from ....backends.faults import IndexFault
from ....backends.prices.price import price, totals
from ....backends.reference import evaluate_structure, run_reference
from ....dialects import nn
from ....dialects.host import host_names
from ....dialects.levels import EXCHANGE, NN
from ....dialects.structured import Structured
from ....ir.equal import same_program
from ....ir.provenance import at, locate
from ....ir.support.errors import one_line
from ....ir.support.number_kinds import is_floating
from ....ir.upstream import ModuleOp
from ....passes.decompose import Decompose
from ....passes.plans.planned import TARGET
from ...driver.arrays import Array
from ..generators.program import Program
from ..generators.sketch import MOST_TILES, machine_of
from .batch import Batch, NoBatch, batch_slice, batches, main_of
from .degrees import Degree, degrees_of
from .oracles import Outcome, bounded_run, difference, run

Compiled: TypeAlias = "Callable[[Program], Program]"
"""Runs the passes under test on another program and returns the result. Does not change the
program."""

Relation: TypeAlias = "Callable[[Program, Program, Compiled], str | None]"
"""Returns how a program, the compiled program and further compiled programs violate a relation;
None if they do not. Raises NotApplicable."""


class NotApplicable(Exception):
    """Raised if a relation cannot be tested on a program. The message gives the reason."""


class _Violated(Exception):
    """Raised by helpers of a relation that does not hold."""


def _relation(function: Relation) -> Relation:
    @wraps(function)
    def relation(before: Program, after: Program, compiled: Compiled) -> str | None:
        try:
            return function(before, after, compiled)
        except _Violated as wrong:
            return str(wrong)
        except IndexFault as fault:
            raise NotApplicable(f"the program has a fault: {fault}") from None

    return relation


# Shared by several relations


@lru_cache(maxsize=4)
def expected_of(program: Program) -> Outcome:
    """The results of a program and their errors. The latest few are cached."""
    return bounded_run(program)


@lru_cache(maxsize=4)
def _run(program: Program) -> Run:
    """The results of a program. An error is raised as a violation of the relation."""
    try:
        return run(program)
    except (MemoryError, IndexFault):
        raise
    except Exception as error:
        raise _Violated(f"the compiled program cannot be run: {one_line(error)}") from error


def _unplanned(before: Program) -> Program:
    """The program itself. Raises NotApplicable if it is planned for one machine."""
    if before.level != NN or TARGET in before.module.attributes:
        raise NotApplicable("the program is already planned for a machine")
    return before


def _choice_number(program: Program) -> int:
    """A pseudorandom number for choices that depends on the program alone."""
    named = repr(program.sketch) if program.sketch is not None else program.target.spelling()
    return zlib.crc32(named.encode())


def _run_difference(
    expected: Outcome, one: Run, other: Run, what: str, exactly: bool
) -> str | None:
    """The difference of two runs beyond both errors, in words; None if there is none.

    Args:
        what: describes the other run, for the message.
        exactly: no difference is allowed.
    """
    for name, array in expected.outputs.items():
        if name not in one.outputs or one.outputs[name].shape != array.shape:
            return f"{name}: the compiled program has no such output, or in another shape"
    outcome = replace(
        expected,
        outputs={k: one.outputs[k] for k in expected.outputs},
        state={k: one.state[k] for k in expected.state if k in one.state},
    )
    if exactly:
        outcome = replace(outcome, errors={k: np.zeros_like(v) for k, v in expected.errors.items()})
    wrong = difference(outcome, other)
    return None if wrong is None else f"{what}: {wrong}"


def _rounds_the_same_everywhere(module: ModuleOp) -> bool:
    """Whether results are independent of the order of sums and of the tails of vector loops.

    They are if nothing is reduced by a sum or product and every function is correctly rounded.
    """
    for op in module.walk():
        if not isinstance(op, Structured):
            continue
        body = op.structure().body
        merged = body.combiner if body.along is None else body.along.name
        if merged in ("sum", "prod"):
            return False
        for name in (body.function, *(stage.function for stage in body.then)):
            if not scalar_function(name).is_rounded_correctly:
                return False
    return True


def _decomposed(program: Program) -> ModuleOp:
    """A copy of a program's module without composites."""
    module = program.module.clone()
    Decompose().apply(program.context, module)
    return module


# A second run


@_relation
def idempotent(before: Program, after: Program, compiled: Compiled) -> str | None:
    """A second run of the passes changes nothing.

    A pass replaces everything that matches a pattern. If a second run finds another match, the
    first run stopped too early or created the match. Only for passes that stay on one level: a pass
    to another level cannot be run twice.
    """
    if after.level != before.level:
        raise NotApplicable(f"the passes convert the program to level {after.level}")
    again = compiled(after)
    if same_program(again.module, after.module):
        return None
    pairs = zip(after.text.splitlines(), again.text.splitlines(), strict=False)
    change = next(
        (f"{a.strip()!r} becomes {b.strip()!r}" for a, b in pairs if a != b),
        "lines are added or removed",
    )
    return f"a second run changes the program: {change}"


# Another machine


@_relation
def tile_count_invariant(before: Program, after: Program, compiled: Compiled) -> str | None:
    """The same program compiled for another machine computes the same results.

    The number of tiles and workers decides where each element is computed and in which order sums
    are added, but not the results. Each result is within its error, so two results differ by at
    most both errors. Where the order does not matter, they are equal.
    """
    other = compiled(_for_another_machine(_unplanned(before)))
    if same_program(other.module, after.module):
        raise NotApplicable("the passes do not depend on the machine")
    what = f"compiled for {other.target.spelling()}"
    exactly = _rounds_the_same_everywhere(_decomposed(before))
    return _run_difference(expected_of(before), _run(after), _run(other), what, exactly)


def _for_another_machine(before: Program) -> Program:
    """The program for a machine with another number of tiles, and sometimes of workers."""
    tiles = before.target.tiles
    counts = [n for n in (1, 2, tiles - 1, tiles + 1, 2 * tiles + 1) if 0 < n <= MOST_TILES]
    number = _choice_number(before)
    tiles = counts[number % len(counts)]
    spelling = f"tiny:{tiles}" + (",workers=1" if number // 8 % 3 == 0 else "")
    return Program(before.module, before.context, before.inputs, machine_of(spelling))


# Halves of a batch


@_relation
def batch_split(before: Program, after: Program, compiled: Compiled) -> str | None:
    """Two parts of a batch, compiled and run separately, compute the same as the whole batch.

    A batch is an axis that is one whole parallel dimension of every operation, so no element
    depends on another one along it. A program for a part of the batch therefore computes the same
    elements. Programs without such an axis are skipped.
    """
    source = _unplanned(before)
    batch = next(batches(source), None)
    if batch is None:
        raise NotApplicable("the program has no batch")
    first = 1 if _choice_number(before) % 2 else batch.size // 2
    runs: list[Run] = []
    for low, high in ((0, first), (first, batch.size)):
        try:
            one = batch_slice(source, batch, low, high)
        except NoBatch:
            raise NotApplicable("the program cannot be cut along its batch") from None
        runs.append(_run(compiled(one)))
    whole = _run(after)
    exactly = _rounds_the_same_everywhere(_decomposed(before))
    for one in runs:
        joined = _joined(before, batch, runs, one)
        what = f"a batch of {batch.size}, run as {first} and {batch.size - first}"
        wrong = _run_difference(expected_of(before), whole, joined, what, exactly)
        if wrong is not None:
            return wrong
    return None


def _joined(before: Program, batch: Batch, runs: list[Run], one: Run) -> Run:
    """The outputs of all parts, concatenated along the batch.

    The states, and the outputs without the batch, are those of one part.
    """
    main = main_of(before.module)
    names = host_names(main, "result_names", len(batch.outputs))
    outputs: dict[str, Array] = {}
    for name, axis in zip(names, batch.outputs, strict=True):
        parts = [each.outputs[name] for each in runs]
        outputs[name] = one.outputs[name] if axis is None else np.concatenate(parts, axis)
    return Run(outputs, one.state)


# Unused operations


@_relation
def ignores_dead_code(before: Program, after: Program, compiled: Compiled) -> str | None:
    """An added operation whose result is unused changes no output.

    It adds a use of a value, which must not make a pass compute something else. It may change
    decisions such as what is fused, and with them the rounding, so both errors are allowed. Applies
    to levels with SSA values. Only outputs are compared, not the text of the program.
    """
    dead = before.clone()
    candidates = [op for op in main_of(dead.module).body.block.ops if _may_be_dead(op)]
    if not candidates:
        raise NotApplicable("the program has no operation that could be added again")
    number = _choice_number(before)
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
    what = f"with an added {op.name} whose result is unused"
    return _run_difference(expected, _run(after), _run(compiled(dead)), what, exactly=False)


def _may_be_dead(op: Operation) -> bool:
    """Whether adding an unused copy of an operation to its block leaves all results unchanged."""
    return op.has_trait(Pure) and not op.regions and bool(op.results) and bool(op.operands)


# Powers of two

EXPONENT = 2
"""An operand is multiplied by 2**EXPONENT. It is even, so that square roots scale exactly too."""

LEAST, MOST = 2.0**-20, 2.0**20
"""If two magnitudes are in this range, their product is in the range of float32, scaled or not."""


@_relation
def scales_by_powers_of_two(before: Program, after: Program, compiled: Compiled) -> str | None:
    """If an operand is multiplied by 4, a result that is linear in it is 4 times as large, exactly.

    A float times a power of two has the same digits, so products, quotients and sums of scaled
    numbers round as before. A constant that was added by mistake shows, however small it is. The
    degree of each value (see degrees) gives its factor: the square of the operand is multiplied by
    16, its reciprocal by 1/4. Values that are too small or too large to round the same way make the
    relation inapplicable. The compiled program is run twice; nothing else is compiled.
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
    raise NotApplicable("no result scales with an operand")


def _scales(after: Program, name: str, degrees: Mapping[str, Fraction]) -> str | None:
    """A message about a result that does not scale with an operand; None if all do.

    Args:
        degrees: the degree of each output in the operand.
    """
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
                f"{factor:g} times its former value"
            )
    return None


def _is_in_range(program: Program, module: ModuleOp, degrees: Mapping[SSAValue, Degree]) -> bool:
    """Whether all scaling values stay in the range of their dtypes, before rounding too."""
    right = True

    def look(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        nonlocal right
        scales = [degrees.get(v, Fraction(0)) != 0 for v in (*op.operands, *op.results)]
        if not any(scales):
            return
        if isinstance(op, Structured) and scales[-1] and is_floating(results[0].dtype):
            # A value that is 0 in a narrow dtype may have been nonzero before rounding.
            made = results[0]
            wide, _ = evaluate_structure(op.structure(), operands, made.dtype, made.shape)
            right = right and _holds(wide, made.dtype)
        for array, scaled in zip((*operands, *results), scales, strict=True):
            if scaled and is_floating(array.dtype):
                right = right and _holds(array, array.dtype)

    run_reference(module, program.inputs, observe=look)
    return right


def _holds(values: Array, dtype: np.dtype[np.generic]) -> bool:
    """Whether each value is 0, or stays normal in a dtype when multiplied or divided by 16."""
    limits = float_limits(dtype)
    size = np.abs(values.astype(np.float64))
    low, high = max(LEAST, 16 * limits.smallest_normal), min(MOST, limits.largest / 16)
    return bool(((size == 0) | ((size >= low) & (size <= high))).all())


# Cost


@_relation
def cost_monotone(before: Program, after: Program, compiled: Compiled) -> str | None:
    """A program with one more operation at its end never takes fewer cycles.

    The planner decides from the first operation to the last, so an operation at the end changes no
    earlier decision. A superstep with more work takes as long or longer. Stronger statements do not
    hold. A larger axis may be cheaper, since 8 elements fill whole vectors and 7 do not. An
    operation in the middle changes the layouts that later operations start from.
    The added operation reads only arguments and outputs, because no operations are fused across
    them. It reads no state and no constant, because the planner looks at all readers of these to
    place them. Only for passes that convert to exchange, because only exchange programs have a
    price. On a machine with little memory the statement may fail, since the planner then trades
    cycles for bytes.
    """
    source = _unplanned(before)
    if after.level != EXCHANGE:
        raise NotApplicable("only exchange programs have a price")
    more = source.clone()
    name = _append(more)
    one, other = cycles_of(after), cycles_of(compiled(more))
    if other >= one:
        return None
    return f"with {name} added at its end, the program takes {other} cycles; without, {one}"


def cycles_of(program: Program) -> int:
    """The price of an exchange program, in cycles per run."""
    return totals(price(program.module, program.target)).cycles


def _append(program: Program) -> str:
    """Append a copy of an operation whose result is a new output. Returns the operation's name.

    The operation reads only arguments and outputs, none of them a state or constant. Raises
    NotApplicable if there is none.
    """
    main = main_of(program.module)
    last = main.body.block.last_op
    assert isinstance(last, ReturnOp)
    placed = (nn.LoadOp, nn.ConstantOp)
    given = {v for v in last.operands if not isinstance(v.owner, placed)} | {*main.body.block.args}
    candidates = [
        op
        for op in main.body.block.ops
        if _may_be_dead(op) and len(op.results) == 1 and all(v in given for v in op.operands)
    ]
    if not candidates:
        raise NotApplicable("no operation reads only arguments and outputs of the program")
    op = candidates[_choice_number(program) % len(candidates)]
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
"""All relations of this file, by the names under which failures are saved."""


def name_of(relation: Relation) -> str:
    """The name of a relation, for messages and records."""
    return getattr(relation, "__name__", type(relation).__name__)
