"""The expected results of a program with error bounds, and the comparison with another program.

A program is run, and every value gets an error: its largest distance from the exact result for the
program's inputs. If two programs mean the same, each result of one is at most the sum of both
errors away from the other's, element by element. No tolerance is chosen by hand: the errors come
from the dtypes, the lengths of sums and the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....backends.codelets.conversion import converted, float_limits
from ....backends.evaluate.host import Run
from ....backends.evaluate.partition import Stacked, run_partition
from ....backends.evaluate.users_levels import EVALUATORS, as_own
from ....backends.faults import IndexFault
from ....backends.reference import (
    Evaluate,
    evaluate_structure,
    operation_value,
    run_reference,
    tensor_kind,
    worst_of,
)
from ....backends.reference.operand_errors import (
    Errors,
    bounded_structure,
    moved_error,
    no_error,
    structure_error,
)
from ....backends.stablehlo import run_stablehlo
from ....dialects import control, nn, partition
from ....dialects.host import host_names
from ....dialects.levels import EXCHANGE, NN, PARTITION, STABLEHLO, TILE
from ....dialects.steps import Copy, Input, Load, Output, Read, Store, Vertices
from ....dialects.structured import Movement, Reinterpretation, Structured
from ....dialects.variable import Variable
from ....ir.level import Level
from ....ir.provenance import place
from ....ir.support.errors import InputError
from ....ir.support.number_kinds import is_floating
from ....ir.well_known import ENTRY
from ....ir.xdsl.walk import operations
from ....passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from ....passes.eliminate_dead import EliminateDead
from ....passes.stablehlo_to_nn.special_functions import FORMULAS
from ...debug.run_level import ComputedValue, run_level
from ...driver.arrays import Array
from ..generators.program import Program

TWO_ERRORS = 2.002
"""Two correct runs differ by at most this many times the error of one of them.

Each may be off by its own error. The two errors are nearly equal, so only one is computed.
"""

UNDERFLOW = float(np.finfo(np.float32).smallest_normal)
"""What the steps of a formula in float32 may lose where a result is nearly 0."""

WIDE = 4
"""Bytes of the smallest float that is not narrow."""

AdjustError = Callable[[Array, Errors], Errors]
"""Returns the error to use for a value, from the value and the error bound of its operation."""


class ResultCache:
    """The results of nn operations, by operation and operands.

    A pass leaves most of a program unchanged, so those parts need not be computed again. Arrays are
    compared by identity. The cache keeps the operands of every entry alive, and they must not be
    modified.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[object, ...], tuple[Sequence[Array], Array]] = {}

    def get_or_add(
        self, op: Operation, operands: Sequence[Array], evaluate: Evaluate, result: int = 0
    ) -> Array:
        """The cached result of an operation. A missing one is computed by `evaluate` and cached.

        Operations that mean the same and read the same arrays return the same array.
        """
        key = _key(op, operands, result)
        found = self._entries.get(key)
        if found is None:
            found = self._entries[key] = operands, evaluate(op, operands, result)
        return found[1]

    def get_or_compute(self, op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
        """The cached result of an operation. If there is none, it is computed but not cached."""
        found = self._entries.get(_key(op, operands, result))
        return operation_value(op, operands, result) if found is None else found[1]


def _key(op: Operation, operands: Sequence[Array], result: int) -> tuple[object, ...]:
    return (_meaning(op), result, op.results[result].type, *map(id, operands))


def _meaning(op: Operation) -> object:
    """A key of everything besides operands and result type that determines a result."""
    if isinstance(op, Structured):
        return op.structure()
    if isinstance(op, Movement):
        return tuple(op.moves())
    if isinstance(op, nn.ConstantOp):
        return op.value
    return Reinterpretation if isinstance(op, Reinterpretation) else op


@dataclass(frozen=True)
class Outcome:
    """The results of a run, and the error bound of each element.

    Attributes:
        outputs: by name.
        state: the states that the program stores, by name.
        errors: the error of each output and state, by name; states are called "@name".
        decided: False if a branch depends on a value that may differ between correct runs. The
            results then prove nothing.
        exact: the exact results, by the names of errors. Only results of fewer than 32 bits whose
            last operation has operands without an error.
        fault: the fault that ends the run, for an index out of range; None if it ends with results.
            There are no outputs after a fault. A pass may drop a fault only together with an
            operation whose value reaches neither an output nor a state, and the fault of a run may
            be any of its faults.
        dead_fault: whether the run ended with a fault of operations whose values reach no output or
            state. The results are then those without these operations.
        cache: the results of the operations of an nn program.
    """

    outputs: dict[str, Array]
    state: dict[str, Array]
    errors: dict[str, Errors]
    decided: bool = True
    exact: dict[str, Array] = field(default_factory=dict[str, "Array"])
    cache: ResultCache = field(default_factory=ResultCache, repr=False)
    fault: IndexFault | None = None
    dead_fault: bool = False

    def named(self) -> dict[str, Array]:
        """Outputs and states, by the names that errors uses."""
        return {**self.outputs, **{f"@{name}": array for name, array in self.state.items()}}


@dataclass(frozen=True)
class Difference:
    """The first output or state that is wrong.

    Attributes:
        value: its name.
        text: what is wrong, in words.
        index: the worst element.
        found, expected: the values there.
        bound: the largest allowed distance.
        ratio: the distance over the bound; infinite if one value is NaN or infinite and the other
            is not.
    """

    value: str
    text: str
    index: tuple[int, ...] = ()
    found: float = 0.0
    expected: float = 0.0
    bound: float = 0.0
    ratio: float = float("inf")

    def __str__(self) -> str:
        return f"{self.value}: {self.text}"


def run(program: Program, cache: ResultCache | None = None) -> Run:
    """Run a program with the evaluator of its level. Raises whatever the evaluator raises.

    Args:
        cache: results that need not be computed again. Used for nn programs only.
    """
    if cache is not None and program.level == NN:
        done = run_reference(program.module, program.inputs, evaluate=cache.get_or_compute)
        return Run(done.outputs, done.state)
    return run_level(program.level, program.module, program.target, program.inputs)


def bounded_run(program: Program) -> Outcome:
    """The results of a program of any level, with error bounds of its outputs and states.

    A program of nn whose run ends with a fault is run again without its dead operations, because a
    correct program may have dropped them.
    """
    try:
        return _bounded(program, _unadjusted)
    except IndexFault as fault:
        if program.level != NN:
            return Outcome({}, {}, {}, fault=fault)
    living = program.clone()
    EliminateDead().apply(living.context, living.module)
    tracker = _ErrorTracker(_unadjusted)
    try:
        return replace(_bounded_nn(living, _unadjusted, tracker), dead_fault=True)
    except IndexFault as fault:
        return Outcome({}, {}, {}, tracker.decided, fault=fault)


def narrowed_run(program: Program) -> Outcome:
    """The results of a program narrowed by a pass, with any value allowed where a float overflows.

    Every correct run of the narrowed program overflows there, but a run in wider floats does not.
    So where a narrow float is not finite, or is the largest finite number, its error is infinite.
    """
    return _bounded(program, _infinite_on_overflow)


def _bounded(program: Program, adjust: AdjustError) -> Outcome:
    """The results of a program with error bounds, computed at its level if that is abele's.

    A program of a user's level is computed at the level of abele's that it is like.

    Raises InputError for an operation of a user's of which no bound is known.
    """
    level = program.level
    if level.like is None:
        return BOUNDED[level](program, adjust)
    own, module = as_own(level, program.module, program.target)
    unknown = next((op for op in operations(module) if op.name in EVALUATORS), None)
    if unknown is not None:
        raise InputError(
            f"{unknown.name} at {place(unknown)}: an evaluator computes it, so no error bound is "
            f"known; give the operation a meaning, or generate programs of a level above {level}"
        )
    return BOUNDED[own](program.meaning(module), adjust)


def with_both_errors(first: Outcome, second: Outcome) -> Outcome:
    """The first outcome, with errors that also cover the errors of the second.

    For programs that round differently, such as one in float32 and one in float16. Each error is
    the mean of both, because `difference` doubles it.
    """
    none = np.zeros(())
    errors = {n: (e + second.errors.get(n, none)) / 2 for n, e in first.errors.items()}
    decided = first.decided and second.decided
    return replace(first, errors=errors, decided=decided, exact={})


def difference(expected: Outcome, found: Run) -> Difference | None:
    """The first output or state that is further from the expected value than correct runs can be.

    An output that is missing or has another shape or dtype is wrong; a missing state is not.
    Returns None if all are within their bounds, or if the expected outcome is not decided.
    """
    if not expected.decided:
        return None
    there = {**found.outputs, **{f"@{name}": array for name, array in found.state.items()}}
    for name, right in expected.named().items():
        if name not in there:
            if name.startswith("@"):
                continue
            return Difference(name, "there is no such output")
        wrong = _differs(name, right, there[name], expected.errors[name])
        if wrong is not None:
            return wrong
    return None


def _differs(name: str, right: Array, found: Array, error: Errors) -> Difference | None:
    if found.shape != right.shape or found.dtype != right.dtype:
        kinds = (f"{a.dtype.name}{list(a.shape)}" for a in (found, right))
        return Difference(name, "; need ".join(kinds))
    if right.size == 0:
        return None
    ratio = ratios(right, found, error)
    at = int(ratio.argmax())
    worst = float(ratio.ravel()[at])
    if not worst > 1:
        return None
    index = tuple(int(i) for i in np.unravel_index(at, right.shape))
    bound = float(np.broadcast_to(error, right.shape)[index]) * TWO_ERRORS
    actual, need = float(found[index]), float(right[index])
    within = f" within {bound:.3g}" if bound else " exactly"
    text = f"element {list(index)} is {actual:.9g}; need {need:.9g}{within}"
    return Difference(name, text, index, actual, need, bound, worst)


def coarseness(expected: Outcome, found: Run) -> Difference | None:
    """The first result of fewer than 32 bits that is less exact than a 32-bit result rounded once.

    `difference` does not find sums whose partials have too few bits: two correct runs may be as far
    apart. Only the exact value shows the loss. (Medians of errors show it less clearly: for correct
    results the median is half a bound, for narrow partials it is twice as much.)
    """
    if not expected.decided:
        return None
    there = {**found.outputs, **{f"@{name}": array for name, array in found.state.items()}}
    for name, exact in expected.exact.items():
        if name not in there or there[name].shape != exact.shape:
            continue
        # Where any value is correct, take the value found as the expected one.
        bounded = np.isfinite(expected.errors[name])
        wanted = np.where(bounded, exact, there[name].astype(np.float64))
        worst = worst_of(there[name], wanted, np.where(bounded, expected.errors[name], 0.0))
        if worst.ratio > 1:
            text = (
                f"element {list(worst.index)} is {worst.actual:.9g}; need {worst.expected:.9g} "
                f"within {worst.bound:.3g}, the error of {there[name].dtype.name} rounded once: an "
                "intermediate value has too few bits"
            )
            return Difference(
                name, text, worst.index, worst.actual, worst.expected, worst.bound, worst.ratio
            )
    return None


def ratios(right: Array, found: Array, error: Errors) -> Errors:
    """|found - right| divided by the largest distance of two correct runs, element by element."""
    with np.errstate(all="ignore"):
        bound = np.broadcast_to(error, right.shape) * TWO_ERRORS
        if not is_floating(right.dtype):
            wrong = (right != found) & (bound == 0)
            distance = np.abs(right.astype(np.float64) - found.astype(np.float64))
            limit = np.maximum(bound, 1.0)
            return np.where(wrong, np.inf, np.where(bound > 0, distance / limit, 0.0))
        a, b = right.astype(np.float64), found.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(same, 0.0, np.abs(a - b))
        ratio = np.where(distance == 0, 0.0, distance / bound)
        # The distance is NaN where exactly one of the values is NaN.
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        return np.where(np.isinf(bound), 0.0, ratio)


def _unadjusted(array: Array, error: Errors) -> Errors:
    return error


def _infinite_on_overflow(array: Array, error: Errors) -> Errors:
    if array.dtype.itemsize >= WIDE or not is_floating(array.dtype):
        return error
    held = np.abs(array.astype(np.float64)) < float_limits(array.dtype).largest
    return np.where(held, error, np.inf)


# nn


def _bounded_nn(
    program: Program, adjust: AdjustError, tracker: _ErrorTracker | None = None
) -> Outcome:
    tracker = tracker or _ErrorTracker(adjust)
    done = run_reference(
        program.module,
        program.inputs,
        observe=tracker.observe_nn,
        parts=True,
        evaluate=tracker.value,
    )
    errors = {name: tracker.error(array) for name, array in done.outputs.items()}
    stored = {op.state.string_value() for op in program.module.walk() if isinstance(op, nn.StoreOp)}
    state = {name: array for name, array in done.state.items() if name in stored}
    errors |= {f"@{name}": tracker.error(array) for name, array in state.items()}
    named = {**done.outputs, **{f"@{name}": array for name, array in state.items()}}
    exact = {n: tracker.exact[id(a)] for n, a in named.items() if id(a) in tracker.exact}
    return Outcome(done.outputs, state, errors, tracker.decided, exact, tracker.cache)


def _bounded_stablehlo(program: Program, adjust: AdjustError) -> Outcome:
    """The results of the interpreter of stablehlo, with the bounds of the same program at nn.

    The interpreter shares nothing with the pass that leads to nn, so a wrong result of that pass
    is found. Its bounds are those of the operations that it makes: if they lose digits that they
    need not lose, this is not found.
    """
    done = run_stablehlo(program.module, program.inputs)
    lowered = program.clone()
    ConvertStablehloToNn().apply(lowered.context, lowered.module)
    bounds = _bounded_nn(lowered, adjust)
    if any(op.name in FORMULAS for op in program.module.walk()):
        bounds = replace(bounds, errors={n: e + UNDERFLOW for n, e in bounds.errors.items()})
    state = {name: done.state[name] for name in bounds.state}
    return replace(bounds, outputs=done.outputs, state=state)


@dataclass
class _ErrorTracker:
    """The errors of all values of a run, by the identity of the object that holds the elements.

    Calls and loops pass the same objects on, so the errors stay known.

    Attributes:
        adjust: a function applied to every error.
        decided: as in Outcome.
        by_holder: each holder and its error, by id.
        by_value: the errors by SSA value.
        exact: exact results by the id of their holder.
        cache: the results of nn operations.
        evaluated: the value and bound of the latest nn operation.
    """

    adjust: AdjustError
    decided: bool = True
    by_holder: dict[int, tuple[object, Errors]] = field(
        default_factory=dict[int, "tuple[object, Errors]"]
    )
    by_value: dict[SSAValue, Errors] = field(default_factory=dict[SSAValue, "Errors"])
    exact: dict[int, Array] = field(default_factory=dict[int, "Array"])
    cache: ResultCache = field(default_factory=ResultCache)
    evaluated: tuple[Array, Errors] | None = None

    def error(self, holder: object, array: Array | None = None) -> Errors:
        """The error of the elements that an object holds; 0 if none is recorded.

        Args:
            array: the elements, if the object is not an array itself.
        """
        found = self.by_holder.get(id(holder))
        if found is not None:
            return found[1]
        return no_error(np.asarray(holder if array is None else array))

    def record_adjusted(self, result: SSAValue, array: Array, error: Errors) -> None:
        """Adjust an error and record it for the result of an nn operation."""
        self.record(result, array, self.adjust(array, error))

    def record(self, result: SSAValue, holder: object, error: Errors) -> None:
        """Record the error of a result.

        Args:
            holder: the object with the result's elements.
        """
        # Keep the holder alive, so that no other object gets its id.
        self.by_holder[id(holder)] = holder, error
        self.by_value[result] = error
        if error.any() and any(isinstance(u.operation, _BRANCHES) for u in result.uses):
            self.decided = False

    def value(self, op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
        """A result of an nn operation. `observe_nn` bounds its error next.

        Sets `evaluated` to the result before rounding and its bound, or to None if the operation
        has a chain or its result was in the cache.
        """
        self.evaluated = None
        if isinstance(op, Structured):
            named = (operands[r.operand] for r in op.structure().space.relations)
            if any(self.error(each).any() for each in named):
                # Another index may be a fault, or name another element.
                self.decided = False
        return self.cache.get_or_add(op, operands, self._evaluate, result)

    def _evaluate(self, op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
        structure = op.structure() if isinstance(op, Structured) else None
        if structure is None or structure.body.then or len(op.results) > 1:
            return operation_value(op, operands, result)
        # The bound is computed together with the value.
        shape, dtype = tensor_kind(op.results[0].type)
        self.evaluated = evaluate_structure(structure, operands, dtype, shape)
        return converted(self.evaluated[0], dtype)

    def observe_nn(
        self, op: Operation, operands: Sequence[Array], results: Sequence[Array]
    ) -> None:
        """Record the error bound of the result of an nn operation or of a part of a composite."""
        known = [id(each) in self.by_holder for each in results]
        if any(known):
            # A composite returns the array of its last part, and the cache an earlier array.
            for result, array in compress(zip(op.results, results, strict=True), known):
                self.record(result, array, self.error(array))
            return
        errors = [self.error(each) for each in operands]
        if isinstance(op, Structured):
            evaluated = self.evaluated if len(results) == 1 else None
            for i, (value, made) in enumerate(zip(op.results, results, strict=True)):
                bounded = bounded_structure(
                    op.structure(), operands, errors, made, evaluated, number=i
                )
                self.record_adjusted(value, made, bounded.error)
                narrow = is_floating(made.dtype) and made.dtype.itemsize < 4
                if bounded.exact is not None and narrow:
                    self.exact[id(made)] = bounded.exact
        elif isinstance(op, Movement):
            error = moved_error(op.moves(), errors, results[0].shape)
            self.record_adjusted(op.results[0], results[0], error)
        elif isinstance(op, Reinterpretation):
            self.record(op.results[0], results[0], errors[0].reshape(results[0].shape))

    def observe_partition(
        self, op: Operation, operands: Sequence[Stacked], results: Sequence[Stacked]
    ) -> None:
        """Record the error bound of the result of a partition operation."""
        if not isinstance(op, partition.ComputeOp | partition.RelayoutOp | partition.ReshapeOp):
            return
        values = [each.values for each in operands]
        errors = [self.error(h, v) for h, v in zip(operands, values, strict=True)]
        if isinstance(op, partition.ComputeOp):
            for i, (value, each) in enumerate(zip(op.results, results, strict=True)):
                error = structure_error(op.structure(), values, errors, each.values, i)
                self.record(value, each, self.adjust(each.values, error))
            return
        (result,) = results
        made = result.values
        if isinstance(op, partition.RelayoutOp):
            moves = None if op.moves is None else [m.data for m in op.moves]
            error = moved_error(moves, errors, made.shape)
        else:
            error = errors[0].reshape(made.shape)
        self.record(op.results[0], result, self.adjust(made, error))


_BRANCHES = (control.IfOp, control.ConditionOp)


# partition


def _bounded_partition(program: Program, adjust: AdjustError) -> Outcome:
    tracker = _ErrorTracker(adjust)
    done = run_partition(program.module, program.inputs, observe=tracker.observe_partition)
    functions = {
        op.sym_name.data: op for op in program.module.body.block.ops if isinstance(op, FuncOp)
    }
    find = _ForwardedErrors(tracker.by_value, functions)
    main = functions[ENTRY]
    last = main.body.block.last_op
    assert isinstance(last, ReturnOp)
    names = host_names(main, "result_names", len(last.operands))
    errors = {
        name: find.error(value, done.outputs[name])
        for name, value in zip(names, last.operands, strict=True)
    }
    state: dict[str, Array] = {}
    for op in program.module.walk():
        if isinstance(op, partition.StoreOp):
            name = op.state.string_value()
            state[name] = done.state[name]
            errors[f"@{name}"] = find.error(op.value, done.state[name])
    return Outcome(done.outputs, state, errors, tracker.decided)


@dataclass
class _ForwardedErrors:
    """The errors of values that come through control flow and calls.

    Attributes:
        known: the errors of the results of operations.
        functions: by name.
        open: the values that are being looked up, because loops make them depend on themselves.
    """

    known: Mapping[SSAValue, Errors]
    functions: Mapping[str, FuncOp]
    open: set[SSAValue] = field(default_factory=set[SSAValue])

    def error(self, value: SSAValue, array: Array) -> Errors:
        """The error of a value; the largest error of its sources if no operation computes it."""
        if value in self.known:
            return self.known[value].reshape(array.shape)
        if value in self.open:
            return no_error(array)
        self.open.add(value)
        found = no_error(array)
        for source in self._sources(value):
            found = np.maximum(found, self.error(source, array))
        self.open.discard(value)
        return found

    def _sources(self, value: SSAValue) -> list[SSAValue]:
        """The values from which a control flow result or a block argument may come."""
        owner = value.owner
        if isinstance(value, OpResult):
            assert isinstance(owner, Operation)
            callee = owner.properties.get("callee")
            regions = owner.regions
            if callee is not None:
                assert isinstance(callee, SymbolRefAttr)
                regions = (self.functions[callee.string_value()].body,)
            ends = [r.block.last_op for r in regions]
            if isinstance(owner, control.RepeatOp | control.WhileOp):
                # A loop with no iterations returns its operands.
                ends.append(owner)
            index = value.index
        else:
            assert isinstance(owner, Block)
            parent = owner.parent_op()
            if parent is None or isinstance(parent, FuncOp):
                return []
            index = next(i for i, a in enumerate(owner.args) if a is value)
            ends = [parent]
            ends += [r.block.last_op for r in parent.regions]
        return [
            end.operands[index]
            for end in ends
            if end is not None
            and not isinstance(end, control.ConditionOp)
            and index < len(end.operands)
        ]


# tile and exchange


def _bounded_program(program: Program, adjust: AdjustError) -> Outcome:
    variables = _Variables(program, adjust)
    done = run_level(program.level, program.module, program.target, program.inputs, variables.wrote)
    # A state that is never written may be stored in part only: a weight has the layout that its
    # users need.
    state = {name: array for name, array in done.state.items() if name in variables.errors}
    errors = {f"@{name}": variables.error_of(name, array) for name, array in state.items()}
    for op in program.module.walk():
        if isinstance(op, Output):
            name = op.host_name.data
            array = done.outputs[name]
            errors[name] = variables.error_of(op.reads.string_value(), array)
    return Outcome(done.outputs, state, errors, variables.decided)


class _Variables:
    """The values of variables during a run, and their errors."""

    def __init__(self, program: Program, adjust: AdjustError) -> None:
        self.adjust = adjust
        self.decided = True
        self.values: dict[str, Array] = {}
        self.errors: dict[str, Errors] = {}
        self.read: set[str] = set()
        for op in program.module.walk():
            if isinstance(op, Variable) and op.initial is not None:
                self.values[op.symbol] = op.initial.array
            elif isinstance(op, Read):
                self.read.add(op.variable.string_value())
            elif isinstance(op, Input):
                self.values[op.writes.string_value()] = program.inputs[op.host_name.data]

    def error_of(self, name: str, array: Array) -> Errors:
        """The error of a variable with these elements; 0 if no operation has written it."""
        error = self.errors.get(name)
        return no_error(array) if error is None else error.reshape(array.shape)

    def wrote(self, value: ComputedValue) -> None:
        """Record the error bound of a variable that a copy or a vertex set has written."""
        op = value.op
        if isinstance(op, control.RepeatOp):
            self.values[value.variable] = value.values
            return
        if isinstance(op, Load | Store):
            # What comes back is as wrong as what went there.
            loads = isinstance(op, Load)
            error = self.error_of(op.remote.string_value() if loads else op.source, value.values)
            self.values[value.variable] = value.values
            self.errors[value.variable] = error
            return
        assert isinstance(op, Copy | Vertices)
        names = op.sources
        operands = [self.values[name] for name in names]
        errors = [self.error_of(name, array) for name, array in zip(names, operands, strict=True)]
        if isinstance(op, Vertices):
            number = op.destinations.index(value.variable)
            error = structure_error(op.structure(), operands, errors, value.values, number)
        else:
            error = moved_error(op.spaces, errors, value.values.shape)
        self.values[value.variable] = value.values
        self.errors[value.variable] = error = self.adjust(value.values, error)
        if value.variable in self.read and error.any():
            self.decided = False


BOUNDED: dict[Level, Callable[[Program, AdjustError], Outcome]] = {
    STABLEHLO: _bounded_stablehlo,
    NN: _bounded_nn,
    PARTITION: _bounded_partition,
    TILE: _bounded_program,
    EXCHANGE: _bounded_program,
}
"""Runs a program of each of abele's levels, and of those above, and bounds the error of every
value."""
