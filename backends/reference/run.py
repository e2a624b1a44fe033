"""Run a module of nn: operations compute in float64, and round each result once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects import control, nn
from ...dialects.host import host_names
from ...dialects.structured import Composite, Movement, Reinterpretation, Structured
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..faults import IndexFault
from ..iterations import Iterations
from .gather import Array
from .operation import operation_value, parts_of, tensor_kind

Observer = Callable[[Operation, Sequence[Array], Sequence[Array]], None]
"""Called after each operation of the module with its operands and results."""


class Evaluate(Protocol):
    """Computes one result of a constant, or of a structured, moving or reshaping operation."""

    def __call__(self, op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
        """Compute a result.

        Args:
            result: its index.
        """
        ...


_Environment = dict[SSAValue, Array]


class TooManyIterations(InputError):
    """A loop has more iterations than a run allows."""


@dataclass(frozen=True)
class Run:
    """The outputs of a run and the states after it, by name."""

    outputs: dict[str, Array]
    state: dict[str, Array]


def run_reference(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    state: Mapping[str, Array] | None = None,
    observe: Observer | None = None,
    max_turns: int | None = None,
    parts: bool = False,
    evaluate: Evaluate = operation_value,
    wide: bool = False,
) -> Run:
    """Execute @main of a module of nn.

    Raises InputError for missing, unknown or ill-shaped inputs, TooManyIterations for loops of more
    than max_turns, and IterationLimit for a run of more iterations and calls than are allowed.

    Args:
        inputs: by argument name.
        state: initial values that replace the module's own. A load returns the value at the
            beginning of the run; a store sets the value after it.
        observe: called for each composite as a whole; if `parts` is set, also for its parts before
            it.
        evaluate: computes operations without parts; pass another function to reuse known results.
        max_turns: the most iterations of one loop; None for no limit but that of the whole run.
        wide: inputs and states of floats may be float64, whatever their types.
    """
    functions = {
        op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)
    }
    if ENTRY not in functions:
        raise InputError("the module has no function @main")
    main = functions[ENTRY]
    names = host_names(main, "arg_names", len(main.body.block.args))
    arguments = _checked(
        "input", inputs, {n: a for n, a in zip(names, main.body.block.args, strict=True)}, wide
    )
    states = [op for op in module.body.block.ops if isinstance(op, nn.StateOp)]
    first: dict[str, Array] = {op.sym_name.data: op.value.array for op in states}
    for name, array in (state or {}).items():
        if name not in first:
            raise InputError(f"state {name!r}: there is {', '.join(first) or 'none'}")
        _check("state", name, array, first[name].shape, first[name].dtype, wide)
        first[name] = array
    run = _Interpreter(functions, first, dict(first), observe, max_turns, parts, evaluate)
    results = run.block(main.body.block, arguments, {})
    names = host_names(main, "result_names", len(results))
    return Run(dict(zip(names, results, strict=True)), run.after)


def evaluate_pure(op: Operation, operands: Sequence[Array]) -> list[Array]:
    """The results of a structured, moving, reshaping or composite operation, or a constant.

    A composite is evaluated part by part, each rounded to its dtype.
    """
    return list(_Interpreter({}, {}, {}, None, None).results(op, operands))


_EVALUABLE = (Structured, Movement, Reinterpretation, Composite, nn.ConstantOp)


def is_evaluable(op: Operation) -> bool:
    """Whether evaluate_pure can evaluate an operation."""
    return isinstance(op, _EVALUABLE)


def has_meaning(cls: type[Operation]) -> bool:
    """Whether the reference can run operations of a class, ignoring those in its regions."""
    return cls in _HANDLERS or issubclass(cls, _EVALUABLE)


def first_meaningless(module: ModuleOp) -> Operation | None:
    """The first operation of a module of nn that the reference cannot run; None if there is none.

    Such an operation belongs to a user's dialect, and a pass has to replace it.
    """
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp):
            for block in op.body.blocks:
                found = _meaningless(block)
                if found is not None:
                    return found
    return None


def _meaningless(block: Block) -> Operation | None:
    for op in block.ops:
        if op is block.last_op:
            break
        if type(op) in _HANDLERS:
            inner = (_meaningless(each) for region in op.regions for each in region.blocks)
            found = next((each for each in inner if each is not None), None)
        else:
            known = is_evaluable(op) and all(_meaningless(each) is None for each in _parts(op))
            found = None if known else op
        if found is not None:
            return found
    return None


def _parts(op: Operation) -> list[Block]:
    """The parts of a user's composite, which may contain operations of the user's."""
    if not isinstance(op, Composite) or op.name.startswith("nn."):
        return []
    try:
        return [parts_of(op)[0]]
    except Exception:  # decompose reports it, and names the operation
        return []


def _check(
    kind: str,
    name: str,
    array: Array,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    wide: bool = False,
) -> None:
    is_widened = wide and array.dtype == np.float64 and is_floating(dtype)
    if array.shape != shape or not (array.dtype == dtype or is_widened):
        raise InputError(
            f"{kind} {name!r}: {array.dtype.name}{list(array.shape)}; need {dtype}{list(shape)}"
        )


def _checked(
    kind: str, given: Mapping[str, Array], wanted: Mapping[str, SSAValue], wide: bool
) -> list[Array]:
    for name in given:
        if name not in wanted:
            raise InputError(f"no {kind} {name!r}; there is {', '.join(wanted) or 'none'}")
    for name, value in wanted.items():
        if name not in given:
            raise InputError(f"{kind} {name!r} is missing; given: {', '.join(given) or 'none'}")
        _check(kind, name, given[name], *tensor_kind(value.type), wide)
    return [given[name] for name in wanted]


@dataclass
class _Interpreter:
    """Runs blocks. Environments drop a value after its last use."""

    functions: dict[str, func.FuncOp]
    before: Mapping[str, Array]
    after: dict[str, Array]
    observe: Observer | None
    max_turns: int | None
    observe_parts: bool = False
    evaluate: Evaluate = operation_value
    last_uses: dict[Block, dict[Operation, tuple[SSAValue, ...]]] = field(
        default_factory=dict[Block, dict[Operation, tuple[SSAValue, ...]]]
    )
    parts: dict[Operation, tuple[Block, tuple[int, ...]]] = field(
        default_factory=dict[Operation, tuple[Block, tuple[int, ...]]]
    )

    def __post_init__(self) -> None:
        self.iterations = Iterations(self.functions)

    def block(self, block: Block, arguments: Sequence[Array], outer: _Environment) -> list[Array]:
        """Run a block, and return the operands of its terminator."""
        dying = self.last_uses.get(block)
        if dying is None:
            dying = self.last_uses[block] = last_uses(block)
        values = outer
        values.update(zip(block.args, arguments, strict=True))
        del arguments
        last = block.last_op
        for op in block.ops:
            operands = [values[v] for v in op.operands]
            if op is last:
                for v in dying[op]:
                    values.pop(v, None)
                return operands
            results = self._step(op, operands, values)
            values.update(zip(op.results, results, strict=True))
            for v in dying[op]:
                values.pop(v, None)
            if self.observe is not None:
                self.observe(op, operands, results)
        raise InputError("a block without a terminator")

    def _step(self, op: Operation, operands: list[Array], values: _Environment) -> Sequence[Array]:
        handler = _HANDLERS.get(type(op))
        try:
            if handler is not None:
                return handler(self, op, operands, values)
            return self.results(op, operands)
        except IndexFault as fault:
            raise fault if fault.operation else fault.of(op) from None
        except Exception as error:
            error.add_note(f"in {op.name} at {place(op)}")
            raise

    def results(self, op: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        """The results of an operation that only computes."""
        if not isinstance(op, Composite):
            if len(op.results) == 1:
                return [self.evaluate(op, operands)]
            return [self.evaluate(op, operands, i) for i in range(len(op.results))]
        if op not in self.parts:
            self.parts[op] = parts_of(op)
        block, order = self.parts[op]
        observe = self.observe
        if not self.observe_parts:
            # An observer looks up operations of its module, and these are made for this run only.
            self.observe = None
        try:
            return self.block(block, [operands[i] for i in order], {})
        finally:
            self.observe = observe

    def check_iteration(self, iteration: int, op: Operation) -> None:
        if self.max_turns is not None and iteration >= self.max_turns:
            raise TooManyIterations(
                f"{op.name} at {place(op)}: not done after {self.max_turns} iterations"
            )


def last_uses(block: Block) -> dict[Operation, tuple[SSAValue, ...]]:
    """For each operation of a block, the values of the block that it is the last to use.

    An operation also reads the values that its regions read. An unused value dies at its own
    definition.
    """
    dying: dict[Operation, tuple[SSAValue, ...]] = {}
    seen: set[SSAValue] = set()
    for op in reversed(tuple(block.ops)):
        inner = op.walk() if op.regions else (op,)
        reads = dict.fromkeys(v for each in inner for v in each.operands)
        local = [*op.results, *(v for v in reads if _is_of(v, block))]
        dying[op] = tuple(v for v in local if v not in seen)
        seen.update(local)
    return dying


def _is_of(value: SSAValue, block: Block) -> bool:
    return (value.owner.parent if isinstance(value, OpResult) else value.owner) is block


def _is_true(predicate: Array) -> bool:
    return bool(predicate.reshape(-1)[0])


@lru_cache(maxsize=4096)
def _iteration_number(iteration: int) -> Array:
    """The number of an iteration, as the same array in each run: caches compare arrays by identity.

    The array must not be written to.
    """
    number = np.array(iteration, np.int32)
    number.flags.writeable = False
    return number


def _repeat(
    run: _Interpreter, op: Operation, operands: list[Array], values: _Environment
) -> Sequence[Array]:
    assert isinstance(op, control.RepeatOp)
    carried = operands
    if run.max_turns is not None and op.iterations > run.max_turns:
        run.check_iteration(run.max_turns, op)
    body, numbered = op.body.block, op.iteration_number is not None
    for iteration in range(run.iterations.repeat(op)):
        number = [_iteration_number(iteration)] if numbered else []
        if op.runs is not None:
            run.before = {**run.before, **run.after}
        carried = run.block(body, [*carried, *number], values)
    return carried


def _if(
    run: _Interpreter, op: Operation, operands: list[Array], values: _Environment
) -> Sequence[Array]:
    assert isinstance(op, control.IfOp)
    region = op.then if _is_true(operands[0]) else op.otherwise
    return run.block(region.block, [], values)


def _while(
    run: _Interpreter, op: Operation, operands: list[Array], values: _Environment
) -> Sequence[Array]:
    assert isinstance(op, control.WhileOp)
    carried, iteration = operands, 0
    test, body = op.test.block, op.body.block
    while _is_true(run.block(test, carried, values)[0]):
        run.check_iteration(iteration, op)
        run.iterations.take(op)
        carried = run.block(body, carried, values)
        iteration += 1
    return carried


def _call(
    run: _Interpreter, op: Operation, operands: list[Array], values: _Environment
) -> Sequence[Array]:
    assert isinstance(op, func.CallOp)
    name = op.callee.string_value()
    if name not in run.functions:
        raise InputError(f"{op.name} at {place(op)}: no function @{name}")
    run.iterations.call(op, run.functions[name])
    found = run.block(run.functions[name].body.block, operands, {})
    run.iterations.back()
    return found


def _load(
    run: _Interpreter, op: Operation, operands: list[Array], values: _Environment
) -> Sequence[Array]:
    assert isinstance(op, nn.LoadOp)
    return [run.before[op.state.string_value()]]


def _store(
    run: _Interpreter, op: Operation, operands: list[Array], values: _Environment
) -> Sequence[Array]:
    assert isinstance(op, nn.StoreOp)
    run.after[op.state.string_value()] = operands[0]
    return []


_HANDLERS: dict[
    type[Operation],
    Callable[[_Interpreter, Operation, list[Array], _Environment], Sequence[Array]],
] = {
    control.RepeatOp: _repeat,
    control.IfOp: _if,
    control.WhileOp: _while,
    func.CallOp: _call,
    nn.LoadOp: _load,
    nn.StoreOp: _store,
}
"""The operations that are more than a function of their operands."""
