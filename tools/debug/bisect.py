"""Find the first pass, rewrite and value that make a program wrong."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation

from ...backends.check import tile_of
from ...backends.evaluate.host import Run
from ...backends.evaluate.shadow import MachineFault
from ...backends.target import Target
from ...dialects.levels import NN, level_of
from ...dialects.verify_symbols import verify_symbols
from ...ir.equal import same_program
from ...ir.errors import DoesNotFit, InputError
from ...ir.pass_manager import parse_pipeline
from ...ir.provenance import is_known, origin, origin_names
from ...ir.rewriting import Source, Watcher, limited, watched
from ...ir.upstream import Context, FusedLoc, LocationAttr, ModuleOp, ModulePass, VerifyException
from ...ir.verify import verify
from ...passes.pipelines import PASSES, expand, shorthand_from
from ..driver.arrays import Array, checked, read_npz, seeded
from ..driver.extensions.load import load_extensions
from ..driver.extensions.loaded import Extensions
from ..driver.program import Model, plan_target, read_program, signature, target_of
from ..importers.huge_weights import refusing_huge_weights
from .check import relative_error, tolerance
from .run_level import PhaseConflict, Value, run_level

Kind = Literal["value", "fault", "invalid", "crash"]
"""What is wrong: a value, the run, the module, or the pass itself."""

Tell = Callable[[str], None]
"""Called with each step of the work, in a few words."""

MOST_TURNS = 32
"""Values kept of each operation. Of an operation in a loop, these are those of the first turns."""

WORTH_COLLECTING = 1 << 26
"""Bytes of all tiles together. Collecting fewer takes longer than the memory is worth."""


UNSEEN = (
    "  rewrites under xDSL's own walker are not recorded: run the patterns under "
    "abele.ir.provenance.LocatingWalker"
)
"""A possible reason why a pass that is not abele's has no rewrites."""


@dataclass(frozen=True)
class BlamedRewrite:
    """The rewrite that made a program wrong.

    number: counts the rewrites of the pass from 1. root, node: the matched operation, and the
    framework's node that it came from. searched: whether the program is right without this rewrite
    and wrong with it; otherwise, this rewrite made the operation whose value is wrong.
    """

    number: int
    of: int
    source: Source
    root: str
    node: str | None
    searched: bool = True

    def __str__(self) -> str:
        where = f' at "{self.node}"' if self.node else ""
        likely = "" if self.searched else ", which made that operation"
        return f"{self.number} of {self.of}: {self.source} on {self.root}{where}{likely}"


@dataclass(frozen=True)
class WrongValue:
    """The first value, in program order, that differs from its value before the pass.

    node: the framework's. variable: the variable that holds the value, "" above tile. index: of the
    worst element, in the tensor's shape. tile: the first tile that holds it; None at nn. addresses:
    the bytes on that tile that a machine fault names, end exclusive; a fault has no index and no
    numbers. error: relative to the largest expected value.
    """

    op: str
    node: str | None
    variable: str = ""
    index: tuple[int, ...] | None = None
    found: float | None = None
    expected: float | None = None
    error: float | None = None
    tile: int | None = None
    addresses: tuple[int, int] | None = None

    def __str__(self) -> str:
        words = [self.op]
        words += [f'"{self.node}"'] if self.node else []
        words += [f"@{self.variable}"] if self.variable else []
        text = " ".join(words)
        if self.index is not None:
            text += f": element {list(self.index)} is {self.found:.9g}; need {self.expected:.9g}"
        if self.addresses is not None:
            text += f": bytes {self.addresses[0]}..{self.addresses[1] - 1}"
        return text if self.tile is None else f"{text}; tile {self.tile}"


@dataclass(frozen=True)
class Verdict:
    """The result of bisection.

    passes: names, in order. index: the first pass after which the program is wrong; None if there
    is none. since: the first pass that may be to blame, if the program could not run in between.
    worst: the largest error of any output before that, relative to its largest value. not_run:
    passes that left the program on several levels at once, so that it could not run.
    """

    passes: tuple[str, ...]
    worst: float
    index: int | None = None
    since: int | None = None
    kind: Kind | None = None
    problem: str = ""
    rewrite: BlamedRewrite | None = None
    rewrites: int = 0
    value: WrongValue | None = None
    not_run: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        """The name of the wrong pass; None if nothing is wrong."""
        return None if self.index is None else self.passes[self.index]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.index is None

    @property
    def text(self) -> str:
        """A description for users."""
        count = len(self.passes)
        if self.index is None:
            which = "the pass" if count == 1 else f"any of {count} passes"
            text = f"nothing is wrong after {which}: outputs are within "
            text += f"{self.worst:.1e} of their largest value"
            return text + "".join(f"\nnot run: after '{name}'" for name in self.not_run)
        place = f"({self.index + 1} of {count})"
        lines = [f"pass '{self.name}' {place}: {self.problem}"]
        if self.since is not None and self.since != self.index:
            lines.append(f"  or a pass since '{self.passes[self.since]}': no run in between")
        if self.rewrite is not None:
            lines.append(f"  rewrite {self.rewrite}")
        elif self.rewrites:
            lines.append(f"  rewrite: no single one of the {self.rewrites} makes the difference")
        else:
            lines.append("  rewrite: the pass records none")
            if self.name not in PASSES:
                lines.append(UNSEEN)
        if self.value is not None:
            lines.append(f"  value: {self.value}")
        return "\n".join(lines)


def bisect(
    model: Model,
    target: str | Target | None = None,
    *,
    passes: str | Sequence[ModulePass] = "",
    inputs: str | os.PathLike[str] | Mapping[str, Array] | None = None,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    load: Sequence[str | os.PathLike[str]] | Extensions = (),
    watch: Tell | None = None,
) -> Verdict:
    """Read a model and run it after every pass, until it is wrong.

    model, target, dims, load: as for compile_model, but model cannot be a compiled program.
    passes: a pipeline as text, in which a level stands for the passes that lead there, or a
    sequence of passes; "" for all passes down to the machine. inputs: arrays by name, or an .npz
    file; missing ones get seeded values.
    Raises InputError, and DoesNotFit.
    """
    extensions = load if isinstance(load, Extensions) else load_extensions(load)
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".abele"):
        raise InputError(f"{model}: compiled already, so there is no pass to test; need the model")
    context = extensions.context()
    (watch or _silent)("read")
    program = read_program(model, context, dict(dims or {}), refusing_huge_weights(target))
    machine = plan_target(program.module, target, program.path)
    if isinstance(passes, str):
        spec = passes or shorthand_from(program.level)
        spec = expand(spec, machine.spelling(), extensions.passes) if spec else ""
        passes = parse_pipeline(spec, extensions.passes) if spec else ()
    if not passes:
        raise InputError(f"{program.path}: at {program.level}, so there is no pass to test")
    tensors = signature(program.module, program.path).inputs
    given = dict[str, Array]()
    if inputs is not None:
        given.update(inputs if isinstance(inputs, Mapping) else read_npz(inputs, tensors))
    values = checked({**seeded(tensors, seed), **given}, tensors)
    return bisect_module(program.module, context, passes, values, machine, watch)


def bisect_module(
    module: ModuleOp,
    context: Context,
    passes: Sequence[ModulePass],
    inputs: Mapping[str, Array],
    target: Target,
    watch: Tell | None = None,
) -> Verdict:
    """Run a module after every pass, until it is wrong. The module itself does not change.

    The given module defines the right results: the float64 reference computes them for nn, the
    level's own evaluator for any other level. A program is wrong if an output, or a state that it
    leaves, differs by more than `check.tolerance` allows (2e-3 of its largest value); if the strict
    machine or another evaluator rejects it; if it does not verify; or if the pass raises.
    InputError and DoesNotFit are for the user, so they are raised again.
    """
    search = _Search(context, tuple(passes), inputs, target, watch or _silent)
    return search.verdict(module)


def _silent(_: str) -> None:
    return


@dataclass(frozen=True)
class _Problem:
    """What is wrong. value: the wrong value, if known without a comparison."""

    kind: Kind
    text: str
    value: WrongValue | None = None


class _CannotRun(Exception):
    """Raised for a module on several levels at once, which no evaluator can run."""


@dataclass
class _Search:
    context: Context
    passes: tuple[ModulePass, ...]
    inputs: Mapping[str, Array]
    target: Target
    tell: Tell
    reference: Run = field(default_factory=lambda: Run({}, {}))
    worst: float = 0.0
    allowed: float = 0.0

    def verdict(self, module: ModuleOp) -> Verdict:
        """Check the module after each pass, in order."""
        self.tell("run the program before all passes")
        self.reference = self._run(module)
        self.allowed = tolerance(module)
        names = tuple(each.name for each in self.passes)
        right, since, not_run = module, 0, list[str]()
        current = module
        for index, each in enumerate(self.passes):
            self.tell(f"{each.name} ({index + 1} of {len(names)})")
            before, current = current, current.clone()
            log = _Log()
            problem = self._applied(each, current, log)
            if problem is None and same_program(current, before):
                # If the program before could not run, this equal one cannot either.
                if before is right:
                    right, since = current, index + 1
                continue
            try:
                problem = problem or self._problem(current)
            except _CannotRun:
                not_run.append(each.name)
                continue
            if problem is not None:
                return self._blame(names, index, since, problem, right, current, log, not_run)
            right, since = current, index + 1
        return Verdict(names, self.worst, not_run=tuple(not_run))

    def _applied(self, each: ModulePass, module: ModuleOp, log: _Log) -> _Problem | None:
        """Run a pass on a module in place; the problem if it raises an error not for the user."""
        try:
            with watched(log):
                each.apply(self.context, module)
        except (InputError, DoesNotFit, MemoryError):
            raise
        except Exception as error:
            notes = getattr(error, "__notes__", ())
            return _Problem("crash", "; ".join([_summary(error), *notes]))
        return None

    def _run(self, module: ModuleOp, watch: Callable[[Value], None] | None = None) -> Run:
        level = level_of(module)
        target = target_of(module, None, "<module>") if level != NN else self.target
        try:
            return run_level(level, module, target, self.inputs, watch)
        finally:
            # Evaluators are reference cycles: only a collection frees the memory of their tiles.
            if target.tiles * target.bytes_per_tile > WORTH_COLLECTING:
                gc.collect()

    def _problem(self, module: ModuleOp) -> _Problem | None:
        """What is wrong with a module, or None. Raises _CannotRun."""
        try:
            verify(module)
            verify_symbols(module)
        except VerifyException as error:
            return _Problem("invalid", f"does not verify: {error}", _invalid(module))
        try:
            verify(module, level_of(module).legal)
        except VerifyException as error:
            raise _CannotRun from error
        try:
            run = self._run(module)
        except (MemoryError, _CannotRun):
            raise
        except MachineFault as fault:
            return _Problem("fault", str(fault), _of_fault(fault))
        except PhaseConflict as conflict:
            op, name = conflict.op, conflict.variable
            return _Problem("fault", str(conflict), WrongValue(op.name, _node(op), name))
        except Exception as error:
            return _Problem("fault", f"cannot be run: {_summary(error)}")
        # The pass may have made the program compute in a narrower dtype.
        return self._differs(run, max(self.allowed, tolerance(module)))

    def _differs(self, run: Run, allowed: float) -> _Problem | None:
        kinds = (
            ("output", run.outputs, self.reference.outputs),
            ("state", run.state, self.reference.state),
        )
        for kind, found, expected in kinds:
            for name, right in expected.items():
                if name not in found:
                    # A pass may remove unused states, but no output.
                    if kind == "output":
                        return _Problem("value", f"output '{name}' is missing")
                    continue
                if found[name].shape != right.shape:
                    shapes = f"{list(found[name].shape)}; need {list(right.shape)}"
                    return _Problem("value", f"{kind} '{name}' is {shapes}")
                error = relative_error(found[name], right)
                if not error <= allowed:
                    described = _described(error, allowed)
                    return _Problem("value", f"{kind} '{name}' is {described}")
                self.worst = max(self.worst, error)
        return None

    # The first wrong pass

    def _blame(
        self,
        names: tuple[str, ...],
        index: int,
        since: int,
        problem: _Problem,
        right: ModuleOp,
        wrong: ModuleOp,
        log: _Log,
        not_run: Sequence[str],
    ) -> Verdict:
        rewrite: BlamedRewrite | None = None
        made = len(log.begun)
        if problem.kind == "crash":
            rewrite = log.unfinished()
        elif since == index and made:
            self.tell(f"{names[index]}: which of {made} rewrite{'s' * (made != 1)}")
            found = self._rewrite(self.passes[index], right, made)
            if found is not None:
                rewrite, right, wrong = found
        value = None
        if problem.kind != "crash":
            self.tell(f"{names[index]}: which value")
            value = problem.value or self._value(right, wrong)
        # The operation at which the machine faults need not be the one to blame.
        if rewrite is None and value is not None and problem.kind == "value":
            rewrite = log.made(value)
        return Verdict(
            names,
            self.worst,
            index,
            since,
            problem.kind,
            problem.text,
            rewrite,
            made,
            value,
            tuple(not_run),
        )

    def _rewrite(
        self, each: ModulePass, module: ModuleOp, made: int
    ) -> tuple[BlamedRewrite, ModuleOp, ModuleOp] | None:
        """The first wrong rewrite, the module just before it, and the module just after it.

        None if no search is possible: the module is on two levels in between, or the pass goes
        wrong outside of its rewrites.
        """
        modules: dict[int, ModuleOp] = {}
        logs: dict[int, _Log] = {}

        def is_wrong(rewrites: int) -> bool:
            clone, log = module.clone(), _Log()
            with limited(rewrites):
                crashed = self._applied(each, clone, log)
            modules[rewrites], logs[rewrites] = clone, log
            return crashed is not None or self._problem(clone) is not None

        try:
            if is_wrong(0) or not is_wrong(made):
                return None
            low, high = 0, made
            while high - low > 1:
                middle = (low + high) // 2
                if is_wrong(middle):
                    high = middle
                else:
                    low = middle
        except (_CannotRun, InputError, DoesNotFit):
            return None
        return logs[high].blamed(high - 1, made, searched=True), modules[low], modules[high]

    def _value(self, right: ModuleOp, wrong: ModuleOp) -> WrongValue | None:
        """The first value that differs."""
        expected = _Expected(self.allowed)
        self._run(right, expected.keep)
        try:
            self._run(wrong, expected.compare)
        except _FirstWrong as first:
            return first.value
        # A run that fails still has a worst value up to there.
        except Exception:
            return expected.worst
        return expected.worst


def _described(error: float, allowed: float) -> str:
    """An error relative to the largest value, in words; infinite for integers and for NaN."""
    if not np.isfinite(error):
        return "not what it should be"
    return f"off by {error:.3g} of its largest value; {allowed:g} is allowed"


def _invalid(module: ModuleOp) -> WrongValue | None:
    """The first operation that does not verify on its own."""
    for op in module.walk(region_first=True):
        try:
            op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError):
            return WrongValue(op.name, _node(op))
    return None


def _of_fault(fault: MachineFault) -> WrongValue:
    return WrongValue(
        fault.op or "exchange.variable",
        fault.node,
        fault.variable or "",
        tile=fault.tile,
        addresses=fault.addresses,
    )


def _made_from(op: Operation) -> tuple[str, ...]:
    """The nodes and lines that an operation was made from, each once, in program order."""
    parts: Sequence[LocationAttr] = (op.location,)
    if isinstance(op.location, FusedLoc):
        parts = cast("ArrayAttr[LocationAttr]", op.location.locations).data
    return tuple(dict.fromkeys(name for part in parts for name in origin_names(part)))


def _node(op: Operation) -> str | None:
    """The origin of an operation. Of several lines, the last one, whose place it has taken."""
    return _made_from(op)[-1] if len(origin_names(op)) == 1 else origin(op)


def _is_step(op: Operation) -> bool:
    """Whether an operation only serves another operation made from the same nodes.

    A rewrite gives one location to all operations that it makes, and makes the root's replacement
    last.
    """
    uses = (use.operation for result in op.results for use in result.uses)
    return is_known(op.location) and any(user.location == op.location for user in uses)


def _summary(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


# Rewrites


@dataclass
class _Begun:
    source: Source
    root: str
    node: str | None
    inserted: list[Operation] = field(default_factory=list[Operation])


class _Log(Watcher):
    """Records the rewrites of a pass."""

    def __init__(self) -> None:
        self.begun: list[_Begun] = []
        self._open = False

    def begin(self, source: Source, root: Operation) -> None:
        """Record the start of a rewrite."""
        self.begun.append(_Begun(source, root.name, _node(root)))
        self._open = True

    def inserted(self, op: Operation) -> None:
        """Record an operation that the rewrite makes."""
        self.begun[-1].inserted.append(op)

    def end(self) -> None:
        """Record that the rewrite is complete."""
        self._open = False

    def blamed(self, row: int, of: int, searched: bool) -> BlamedRewrite:
        """The rewrite of a row. Its number is the row plus 1."""
        each = self.begun[min(row, len(self.begun) - 1)]
        return BlamedRewrite(row + 1, of, each.source, each.root, each.node, searched)

    def unfinished(self) -> BlamedRewrite | None:
        """The rewrite during which the pass raised, if any."""
        last = len(self.begun) - 1
        return self.blamed(last, last + 1, searched=True) if self._open else None

    def made(self, value: WrongValue) -> BlamedRewrite | None:
        """The last rewrite that made the operation with a wrong value."""
        for row in reversed(range(len(self.begun))):
            made = self.begun[row].inserted
            if any(op.name == value.op and _node(op) == value.node for op in made):
                return self.blamed(row, len(self.begun), searched=False)
        return None


# Values


class _FirstWrong(Exception):
    """Ends a run at its first wrong value."""

    def __init__(self, value: WrongValue) -> None:
        super().__init__()
        self.value = value


class _Expected:
    """The values of a right run by the nodes they come from, and how other runs differ from them.

    allowed: the largest error for an output. worst: the largest difference that is allowed.
    """

    def __init__(self, allowed: float) -> None:
        self.allowed = allowed
        self.worst: WrongValue | None = None
        self._known: dict[tuple[str, ...], list[Array]] = {}
        self._with_steps: set[tuple[str, ...]] = set()

    def keep(self, value: Value) -> None:
        """Record a value of the right run."""
        names = _made_from(value.op)
        known = self._known.setdefault(names, []) if names else []
        if len(known) < MOST_TURNS:
            known.append(value.values)
        if _is_step(value.op):
            self._with_steps.add(names)

    def compare(self, value: Value) -> None:
        """Raise _FirstWrong if a value has counterparts and differs from all of them.

        If a wrong operation has read a variable with wrong contents, the variable is to blame. An
        intermediate operation of a replacement has a counterpart only if there were intermediate
        operations before.
        """
        if _is_step(value.op) and self._counterpart(value.op) not in self._with_steps:
            return
        found = self._deviation(value.op, value.values)
        if found is None:
            return
        expected, error = found
        if error <= self.allowed:
            if self.worst is None or error > (self.worst.error or 0.0):
                self.worst = _wrong(value, expected, error)
            return
        for held in value.operands():
            deviation = self._deviation(held.variable, held.values)
            if deviation is not None and deviation[1] > self.allowed:
                name = held.variable.symbol
                one = Value(held.variable, held.values, held.variable.placed, name)
                raise _FirstWrong(_wrong(one, *deviation))
        raise _FirstWrong(_wrong(value, expected, error))

    def _counterpart(self, op: Operation) -> tuple[str, ...] | None:
        """The key of the values that an operation should reproduce; None if there are none.

        All nodes it was made from, or the longest tail of them with known values: the result of a
        rule replaces the root, which is the last operation that the rule matches.
        """
        names = _made_from(op)
        ends = (names[start:] for start in range(len(names)))
        return next((each for each in ends if each in self._known), None)

    def _deviation(self, op: Operation, values: Array) -> tuple[Array, float] | None:
        """The nearest counterpart and its distance; None if there is none, or no difference."""
        known = self._counterpart(op)
        if known is None:
            return None
        candidates = [
            each.reshape(values.shape)
            for each in self._known[known]
            if each.size == values.size and each.dtype.kind == values.dtype.kind
        ]
        distances = [(relative_error(values, each), each) for each in candidates]
        if not distances:
            return None
        error, expected = min(distances, key=lambda pair: pair[0])
        return (expected, error) if error > 0 else None


def _wrong(value: Value, expected: Array, error: float) -> WrongValue:
    found = value.values
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    # An element that is NaN on one side only is the farthest.
    distance = np.where(np.isnan(distance) & (found != expected), np.inf, distance)
    at = tuple(int(i) for i in np.unravel_index(int(distance.argmax()), found.shape))
    tile = None
    if value.layout is not None:
        row = int(np.ravel_multi_index(at, found.shape)) if at else 0
        viewed = tuple(int(i) for i in np.unravel_index(row, value.layout.shape))
        tile = tile_of(value.layout, viewed)
    return WrongValue(
        value.op.name,
        _node(value.op),
        value.variable,
        at,
        float(found[at]),
        float(expected[at]),
        error,
        tile,
    )
