"""What a program computes, how far a right one may be from it, and whether another one is.

A run is watched, and every value gets an error: how far it may be from what exact arithmetic would
have made of the program's inputs. Two programs that mean the same are then at most both errors
apart, element by element, in every result. Nothing is picked: the errors follow from the dtypes,
the lengths of sums and the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....backends.codelets.scalar import converted, float_limits, is_floating
from ....backends.evaluate.host import Run
from ....backends.evaluate.partition import Stacked, run_partition
from ....backends.reference import (
    Evaluate,
    evaluate_structure,
    operation_value,
    run_reference,
    tensor_kind,
    worst_of,
)
from ....dialects import control, nn, partition
from ....dialects.host import host_names
from ....dialects.levels import EXCHANGE, NN, PARTITION, TILE
from ....dialects.program import Copy, HostInput, HostOutput, ReadPredicate, Variable, Vertices
from ....dialects.structured import Movement, Reinterpretation, Structured
from ....ir.level import Level
from ...debug.run_level import Value, run_level
from ...driver.arrays import Array
from ..generators.program import Program
from .bounds import Errors, bounded_structure, moved_error, no_error, structure_error

TWICE = 2.002
"""Of the errors of two right runs, which are alike but not equal, each is taken to be the other."""

WIDE = 4
"""Bytes of a float that is not narrow."""

Admit = Callable[[Array, Errors], Errors]
"""What error a value may have, of the error that its operation says."""


class Known:
    """What operations of nn have made of which arrays.

    A pass leaves most of a program as it was: of that nothing has to be computed again. Arrays are
    told apart by identity, and those that something is known of are kept; nobody writes to them.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[Sequence[Array], Array]] = {}

    def learned(self, op: Operation, operands: Sequence[Array], evaluate: Evaluate) -> Array:
        """The result of an operation, which evaluate gives where none is known, and is kept.

        Of operations that mean the same on the same arrays it is the same array.
        """
        key = _key(op, operands)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = operands, evaluate(op, operands)
        return found[1]

    def value(self, op: Operation, operands: Sequence[Array]) -> Array:
        """The result of an operation, computed where none is known, and not kept then."""
        found = self._made.get(_key(op, operands))
        return operation_value(op, operands) if found is None else found[1]


def _key(op: Operation, operands: Sequence[Array]) -> tuple[object, ...]:
    return (_meaning(op), op.results[0].type, *map(id, operands))


def _meaning(op: Operation) -> object:
    """What, beside operands and the type of the result, decides on the result."""
    if isinstance(op, Structured):
        return op.structure()
    if isinstance(op, Movement):
        return tuple(op.moves())
    if isinstance(op, nn.ConstantOp):
        return op.value
    return Reinterpretation if isinstance(op, Reinterpretation) else op


@dataclass(frozen=True)
class Outcome:
    """What a run has left behind, and how far each element may be from what is exact.

    outputs, state: by name; of states those that the program stores. errors: of both, by the same
    names, states as "@name". exact: by these names, what exact arithmetic makes of operands without
    an error, of results of fewer than 32 bits. decided: false if a branch hung on a value that a
    right run may have otherwise: then nothing follows. known: of a program of nn, what its
    operations have made.
    """

    outputs: dict[str, Array]
    state: dict[str, Array]
    errors: dict[str, Errors]
    decided: bool = True
    exact: dict[str, Array] = field(default_factory=dict[str, "Array"])
    known: Known = field(default_factory=Known, repr=False)

    def named(self) -> dict[str, Array]:
        """Outputs and states by the names of their errors."""
        return {**self.outputs, **{f"@{name}": array for name, array in self.state.items()}}


@dataclass(frozen=True)
class Difference:
    """The first value that is not what it has to be. index: of the worst element; ratio: its error
    over the bound, inf where numbers stand for NaN or infinities, or the other way round."""

    value: str
    text: str
    index: tuple[int, ...] = ()
    found: float = 0.0
    expected: float = 0.0
    bound: float = 0.0
    ratio: float = float("inf")

    def __str__(self) -> str:
        return f"{self.value}: {self.text}"


def run(program: Program, known: Known | None = None) -> Run:
    """Run a program by the meaning of its level; on the machine strictly. Raises as evaluators.

    known: what need not be computed again, where the level is nn.
    """
    if known is not None and program.level == NN:
        done = run_reference(program.module, program.inputs, evaluate=known.value)
        return Run(done.outputs, done.state)
    return run_level(program.level, program.module, program.target, program.inputs)


def bounded_run(program: Program) -> Outcome:
    """Run a program of any level, and bound the error of all that it leaves behind."""
    return BOUNDED[program.level](program, _as_said)


def narrowed_run(program: Program) -> Outcome:
    """The same of a program that a pass has narrowed: what has left its range may be any number.

    A narrow float that is not finite, or the last finite one, where every right run has it, but one
    in wider floats has not.
    """
    return BOUNDED[program.level](program, _any_beyond)


def with_both_errors(first: Outcome, second: Outcome) -> Outcome:
    """The first outcome, with errors that bound how far the second may be from it.

    For programs that round differently, such as one in float32 and one in float16.
    """
    none = np.zeros(())
    errors = {n: (e + second.errors.get(n, none)) / 2 for n, e in first.errors.items()}
    decided = first.decided and second.decided
    return replace(first, errors=errors, decided=decided, exact={})


def difference(expected: Outcome, found: Run) -> Difference | None:
    """The first output or state that is further from the expected one than two right runs can be.

    An output that is missing, or has another shape or dtype, differs; a state that is gone does
    not. None also where the expected outcome is not decided.
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
    bound = float(np.broadcast_to(error, right.shape)[index]) * TWICE
    actual, need = float(found[index]), float(right[index])
    within = f" within {bound:.3g}" if bound else " exactly"
    text = f"element {list(index)} is {actual:.9g}; need {need:.9g}{within}"
    return Difference(name, text, index, actual, need, bound, worst)


def coarseness(expected: Outcome, found: Run) -> Difference | None:
    """The first result of fewer than 32 bits that is further from the exact one than what is
    computed in 32 bits and rounded once.

    Two right runs may be apart by both their roundings, and as far is a sum whose parts are held in
    so few bits: only beside the exact value does that show. (A median of errors says less: right
    ones have half of a bound, and those of narrow partial sums twice as much.)
    """
    if not expected.decided:
        return None
    there = {**found.outputs, **{f"@{name}": array for name, array in found.state.items()}}
    for name, exact in expected.exact.items():
        if name not in there or there[name].shape != exact.shape:
            continue
        # Where anything is right, what is there is.
        bounded = np.isfinite(expected.errors[name])
        wanted = np.where(bounded, exact, there[name].astype(np.float64))
        worst = worst_of(there[name], wanted, np.where(bounded, expected.errors[name], 0.0))
        if worst.ratio > 1:
            text = (
                f"element {list(worst.index)} is {worst.actual:.9g}; need {worst.expected:.9g} "
                f"within {worst.bound:.3g}, as {there[name].dtype.name} rounded once: something "
                "is held in fewer bits on the way"
            )
            return Difference(
                name, text, worst.index, worst.actual, worst.expected, worst.bound, worst.ratio
            )
    return None


def ratios(right: Array, found: Array, error: Errors) -> Errors:
    """|found - right| over the largest distance of two right runs, element by element."""
    with np.errstate(all="ignore"):
        bound = np.broadcast_to(error, right.shape) * TWICE
        if not is_floating(right.dtype):
            wrong = (right != found) & (bound == 0)
            distance = np.abs(right.astype(np.float64) - found.astype(np.float64))
            limit = np.maximum(bound, 1.0)
            return np.where(wrong, np.inf, np.where(bound > 0, distance / limit, 0.0))
        a, b = right.astype(np.float64), found.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(same, 0.0, np.abs(a - b))
        ratio = np.where(distance == 0, 0.0, distance / bound)
        # A number where there was none has no distance.
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        return np.where(np.isinf(bound), 0.0, ratio)


def _as_said(array: Array, error: Errors) -> Errors:
    return error


def _any_beyond(array: Array, error: Errors) -> Errors:
    if array.dtype.itemsize >= WIDE or not is_floating(array.dtype):
        return error
    held = np.abs(array.astype(np.float64)) < float_limits(array.dtype).largest
    return np.where(held, error, np.inf)


# nn


def _nn(program: Program, admit: Admit) -> Outcome:
    watch = _Watch(admit)
    done = run_reference(
        program.module, program.inputs, observe=watch.of_nn, parts=True, evaluate=watch.value
    )
    errors = {name: watch.error(array) for name, array in done.outputs.items()}
    stored = {op.state.string_value() for op in program.module.walk() if isinstance(op, nn.StoreOp)}
    state = {name: array for name, array in done.state.items() if name in stored}
    errors |= {f"@{name}": watch.error(array) for name, array in state.items()}
    named = {**done.outputs, **{f"@{name}": array for name, array in state.items()}}
    exact = {n: watch.exact[id(a)] for n, a in named.items() if id(a) in watch.exact}
    return Outcome(done.outputs, state, errors, watch.decided, exact, watch.made)


@dataclass
class _Watch:
    """Keeps the errors of values by the identity of what holds them: through calls and loops the
    same arrays are handed on."""

    admit: Admit
    decided: bool = True
    known: dict[int, tuple[object, Errors]] = field(
        default_factory=dict[int, "tuple[object, Errors]"]
    )
    of_values: dict[SSAValue, Errors] = field(default_factory=dict[SSAValue, "Errors"])
    exact: dict[int, Array] = field(default_factory=dict[int, "Array"])
    made: Known = field(default_factory=Known)
    evaluated: tuple[Array, Errors] | None = None

    def error(self, holder: object, array: Array | None = None) -> Errors:
        found = self.known.get(id(holder))
        if found is not None:
            return found[1]
        return no_error(np.asarray(holder if array is None else array))

    def made_of(self, result: SSAValue, array: Array, error: Errors) -> None:
        """Keep the error of what an operation of nn has made."""
        self.keep(result, array, self.admit(array, error))

    def keep(self, result: SSAValue, holder: object, error: Errors) -> None:
        # The holder is kept too, so that nothing else gets its identity.
        self.known[id(holder)] = holder, error
        self.of_values[result] = error
        if error.any() and any(isinstance(u.operation, _DECIDES) for u in result.uses):
            self.decided = False

    def value(self, op: Operation, operands: Sequence[Array]) -> Array:
        """What an operation of nn makes, for of_nn to bound next.

        evaluated is then its value before it is rounded, and the bound; None where a chain follows,
        or the result was known.
        """
        self.evaluated = None
        return self.made.learned(op, operands, self._evaluate)

    def _evaluate(self, op: Operation, operands: Sequence[Array]) -> Array:
        structure = op.structure() if isinstance(op, Structured) else None
        if structure is None or structure.body.then:
            return operation_value(op, operands)
        # Its bound comes with the value.
        shape, dtype = tensor_kind(op.results[0].type)
        self.evaluated = evaluate_structure(structure, operands, dtype, shape)
        return converted(self.evaluated[0], dtype)

    def of_nn(self, op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Bound what an operation of nn has made, a part of a composite too."""
        there = [id(each) in self.known for each in results]
        if any(there):
            # Handed on, of a composite by its last part, or made of the same before.
            for result, array in compress(zip(op.results, results, strict=True), there):
                self.keep(result, array, self.error(array))
            return
        errors = [self.error(each) for each in operands]
        if isinstance(op, Structured):
            made = results[0]
            bounded = bounded_structure(op.structure(), operands, errors, made, self.evaluated)
            self.made_of(op.results[0], made, bounded.error)
            if bounded.exact is not None and is_floating(made.dtype) and made.dtype.itemsize < 4:
                self.exact[id(made)] = bounded.exact
        elif isinstance(op, Movement):
            error = moved_error(op.moves(), errors, results[0].shape)
            self.made_of(op.results[0], results[0], error)
        elif isinstance(op, Reinterpretation):
            self.keep(op.results[0], results[0], errors[0].reshape(results[0].shape))

    def of_partition(
        self, op: Operation, operands: Sequence[Stacked], results: Sequence[Stacked]
    ) -> None:
        """Bound what an operation of partition has made."""
        if not isinstance(op, partition.ComputeOp | partition.RelayoutOp | partition.ReshapeOp):
            return
        (result,) = results
        values = [each.values for each in operands]
        errors = [self.error(h, v) for h, v in zip(operands, values, strict=True)]
        made = result.values
        if isinstance(op, partition.ComputeOp):
            error = structure_error(op.structure(), values, errors, made)
        elif isinstance(op, partition.RelayoutOp):
            moves = None if op.moves is None else [m.data for m in op.moves]
            error = moved_error(moves, errors, made.shape)
        else:
            error = errors[0].reshape(made.shape)
        self.keep(op.results[0], result, self.admit(made, error))


_DECIDES = (control.IfOp, control.ConditionOp)


# partition


def _partition(program: Program, admit: Admit) -> Outcome:
    watch = _Watch(admit)
    done = run_partition(program.module, program.inputs, observe=watch.of_partition)
    functions = {
        op.sym_name.data: op for op in program.module.body.block.ops if isinstance(op, FuncOp)
    }
    find = _Find(watch.of_values, functions)
    main = functions["main"]
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
    return Outcome(done.outputs, state, errors, watch.decided)


@dataclass
class _Find:
    """The errors of values that control flow and calls hand on."""

    known: Mapping[SSAValue, Errors]
    functions: Mapping[str, FuncOp]
    open: set[SSAValue] = field(default_factory=set[SSAValue])

    def error(self, value: SSAValue, array: Array) -> Errors:
        """Of a value that no operation of the level has made: the largest of those it may be."""
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
                # Perhaps there is no turn at all.
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


def _program(program: Program, admit: Admit) -> Outcome:
    watch = _Variables(program, admit)
    done = run_level(program.level, program.module, program.target, program.inputs, watch.wrote)
    # What nothing writes may be held in part: a weight lives in the layout that its users want.
    state = {name: array for name, array in done.state.items() if name in watch.errors}
    errors = {f"@{name}": watch.error_of(name, array) for name, array in state.items()}
    for op in program.module.walk():
        if isinstance(op, HostOutput):
            name = op.host_name.data
            array = done.outputs[name]
            errors[name] = watch.error_of(op.reads.string_value(), array)
    return Outcome(done.outputs, state, errors, watch.decided)


class _Variables:
    """What variables hold, and the errors of it."""

    def __init__(self, program: Program, admit: Admit) -> None:
        self.admit = admit
        self.decided = True
        self.values: dict[str, Array] = {}
        self.errors: dict[str, Errors] = {}
        self.read: set[str] = set()
        for op in program.module.walk():
            if isinstance(op, Variable) and op.initial is not None:
                self.values[op.symbol] = op.initial.array
            elif isinstance(op, ReadPredicate):
                self.read.add(op.variable.string_value())
            elif isinstance(op, HostInput):
                self.values[op.writes.string_value()] = program.inputs[op.host_name.data]

    def error_of(self, name: str, array: Array) -> Errors:
        error = self.errors.get(name)
        return no_error(array) if error is None else error.reshape(array.shape)

    def wrote(self, value: Value) -> None:
        """Bound what a copy or a vertex set has written."""
        op = value.op
        assert isinstance(op, Copy | Vertices)
        names = op.sources
        operands = [self.values[name] for name in names]
        errors = [self.error_of(name, array) for name, array in zip(names, operands, strict=True)]
        if isinstance(op, Vertices):
            error = structure_error(op.structure(), operands, errors, value.values)
        else:
            error = moved_error(op.spaces, errors, value.values.shape)
        self.values[value.variable] = value.values
        self.errors[value.variable] = error = self.admit(value.values, error)
        if value.variable in self.read and error.any():
            self.decided = False


BOUNDED: dict[Level, Callable[[Program, Admit], Outcome]] = {
    NN: _nn,
    PARTITION: _partition,
    TILE: _program,
    EXCHANGE: _program,
}
"""How a program of each level runs with an error bound for every value."""
