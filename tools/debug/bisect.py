"""Which pass made a program wrong, which of its rewrites, and which value shows it first."""

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
from ...dialects.levels import legal_ops
from ...dialects.program import verify_symbols
from ...ir.equal import same_program
from ...ir.errors import DoesNotFit, InputError
from ...ir.pass_manager import parse_pipeline
from ...ir.provenance import is_known, origin, origin_names
from ...ir.rewriting import Source, Watcher, limited, watched
from ...ir.upstream import Context, FusedLoc, LocationAttr, ModuleOp, ModulePass, VerifyException
from ...ir.verify import verify
from ...passes.pipelines import PASSES, expand, way
from ..driver.arrays import Array, checked, read_npz, seeded
from ..driver.extensions.load import load_extensions
from ..driver.extensions.loaded import Extensions
from ..driver.program import Model, level_of, plan_target, read_program, signature, target_of
from ..importers.huge_weights import refusing_huge_weights
from .check import relative_error, tolerance
from .run_level import PhaseConflict, Value, run_level

Kind = Literal["value", "fault", "invalid", "crash"]
"""What went wrong: outputs, the run, the module, the pass itself."""

Tell = Callable[[str], None]
"""Told what is going on, in a few words."""

MOST_TURNS = 32
"""Values of one operation that are kept: of those in a loop, the first turns'."""

WORTH_COLLECTING = 1 << 26
"""Bytes of all tiles: looking for the memory of fewer takes longer than it helps."""


UNSEEN = (
    "  rewrites under xDSL's own walker are not seen: run the patterns under "
    "abele.ir.provenance.LocatingWalker"
)
"""What may be so of a pass that is not abele's."""


@dataclass(frozen=True)
class BlamedRewrite:
    """The rewrite that made a program wrong.

    number: from 1, of the pass's rewrites. root, node: the operation that was matched, and the
    framework's node it came from. searched: whether the program is right without it and wrong with
    it; otherwise it is the one that made the operation whose value is wrong.
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
    """The first value, in the order of the program, that is not what it was before the pass.

    node: the framework's. variable: what holds it, "" above tile. index: of the worst element, in
    the tensor's shape. tile: the first that holds it; None at nn. addresses: bytes on that tile,
    their end not included, where a fault of the machine names them; a fault has no index and no
    numbers. error: over the largest expected value.
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
    """What bisect has found.

    passes: names, in order. index: the first pass after which the program is wrong; None if it
    never is. since: the first that it may be, if the program could not be run in between. worst:
    the largest error of an output up to there, over its largest value. not_run: passes after which
    the program was on several levels at once, and could not be run.
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
        """The pass's name; None if nothing is wrong."""
        return None if self.index is None else self.passes[self.index]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.index is None

    @property
    def text(self) -> str:
        """For people."""
        count = len(self.passes)
        if self.index is None:
            which = "the pass" if count == 1 else f"any of {count} passes"
            text = f"nothing is wrong after {which}: outputs are within "
            text += f"{self.worst:.1e} of their largest value"
            return text + "".join(f"\nnot run: after '{name}'" for name in self.not_run)
        place = f"({self.index + 1} of {count})"
        lines = [f"pass '{self.name}' {place}: {self.problem}"]
        if self.since is not None and self.since != self.index:
            lines.append(f"  or one since '{self.passes[self.since]}': no run in between")
        if self.rewrite is not None:
            lines.append(f"  rewrite {self.rewrite}")
        elif self.rewrites:
            lines.append(f"  rewrite: none of {self.rewrites} alone could be told to do it")
        else:
            lines.append("  rewrite: the pass makes no single ones")
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
    """Read a model and run it after every pass, until one has made it wrong.

    model, target, dims, load: as compile_model takes them, but no compiled program. passes: a
    pipeline as text, in which a level's name stands for the passes that end there, or the passes;
    the whole way down if "". inputs: arrays by name, or an .npz file; missing ones are seeded.
    Raises InputError, and DoesNotFit.
    """
    extensions = load if isinstance(load, Extensions) else load_extensions(load)
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".abele"):
        raise InputError(f"{model}: compiled already, so no pass is left to look into")
    context = extensions.context()
    (watch or _silent)("read")
    program = read_program(model, context, dict(dims or {}), refusing_huge_weights(target))
    machine = plan_target(program.module, target, program.path)
    if isinstance(passes, str):
        spec = passes or ",".join(way(program.level))
        spec = expand(spec, machine.spelling(), extensions.passes) if spec else ""
        passes = parse_pipeline(spec, extensions.passes) if spec else ()
    if not passes:
        raise InputError(f"{program.path}: at {program.level}, so no pass is left to look into")
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
    """Run a module after every pass, until one has made it wrong.

    The module, which stays as it is, is what is right: nn by its reference in fp64, any other level
    by its own evaluator. A program is wrong when an output, or a state that it leaves behind, is
    further from that than `check.tolerance` allows (2e-3 of its largest value); when the strict
    machine, or another evaluator, refuses it; when it does not verify; and when the pass raises.
    InputError and DoesNotFit of a pass are answers to the user, and raised.
    """
    search = _Search(context, tuple(passes), inputs, target, watch or _silent)
    return search.verdict(module)


def _silent(_: str) -> None:
    return


@dataclass(frozen=True)
class _Problem:
    """What is wrong. value: where, if that is known without a comparison."""

    kind: Kind
    text: str
    value: WrongValue | None = None


class _CannotRun(Exception):
    """A module is on several levels at once, so that no evaluator knows all of it."""


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
        """Look at the module after each pass, in order."""
        self.tell("run the program as it came")
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
                # What holds of a program that could not be run holds of its like.
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
        """Run a pass on a module in place; what it raises, unless that is for the user."""
        try:
            with watched(log):
                each.apply(self.context, module)
        except (InputError, DoesNotFit, MemoryError):
            raise
        except Exception as error:
            notes = getattr(error, "__notes__", ())
            return _Problem("crash", "; ".join([_said(error), *notes]))
        return None

    def _run(self, module: ModuleOp, watch: Callable[[Value], None] | None = None) -> Run:
        level = level_of(module)
        target = target_of(module, None, "<module>") if level != "nn" else self.target
        try:
            return run_level(level, module, target, self.inputs, watch)
        finally:
            # Evaluators are cycles, which hold the memory of all tiles until they are looked for.
            if target.tiles * target.bytes_per_tile > WORTH_COLLECTING:
                gc.collect()

    def _problem(self, module: ModuleOp) -> _Problem | None:
        """What is wrong with a module, if anything. Raises _CannotRun."""
        try:
            verify(module)
            verify_symbols(module)
        except VerifyException as error:
            return _Problem("invalid", f"does not verify: {error}", _invalid(module))
        try:
            verify(module, legal_ops(level_of(module)))
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
            return _Problem("fault", f"cannot be run: {_said(error)}")
        # A pass may have narrowed what the program computes in.
        return self._differs(run, max(self.allowed, tolerance(module)))

    def _differs(self, run: Run, allowed: float) -> _Problem | None:
        kinds = (
            ("output", run.outputs, self.reference.outputs),
            ("state", run.state, self.reference.state),
        )
        for kind, found, expected in kinds:
            for name, right in expected.items():
                if name not in found:
                    # States that nobody uses may go, outputs may not.
                    if kind == "output":
                        return _Problem("value", f"there is no output '{name}'")
                    continue
                if found[name].shape != right.shape:
                    shapes = f"{list(found[name].shape)}; need {list(right.shape)}"
                    return _Problem("value", f"{kind} '{name}' is {shapes}")
                error = relative_error(found[name], right)
                if not error <= allowed:
                    off = _off(error, allowed)
                    return _Problem("value", f"{kind} '{name}' is {off}")
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
        # Whoever meets a fault of the machine need not be who made it.
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
        """The rewrite without which the module is right, and the module without it and with it.

        None if that cannot be searched for: modules between are on two levels, or the wrong is done
        outside of any rewrite.
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
        # A run that fails has nothing more to tell than what it has got to.
        except Exception:
            return expected.worst
        return expected.worst


def _off(error: float, allowed: float) -> str:
    """An error over the largest value, in words; it is infinite for integers and for NaN."""
    if not np.isfinite(error):
        return "not what it has to be"
    return f"off by {error:.3g} of its largest value; {allowed:g} is allowed"


def _invalid(module: ModuleOp) -> WrongValue | None:
    """The first operation that is wrong by itself."""
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
    """All that an operation was made from, nodes and lines, each once, in the program's order."""
    parts: Sequence[LocationAttr] = (op.location,)
    if isinstance(op.location, FusedLoc):
        parts = cast("ArrayAttr[LocationAttr]", op.location.locations).data
    return tuple(dict.fromkeys(name for part in parts for name in origin_names(part)))


def _node(op: Operation) -> str | None:
    """The origin of an operation; of several lines the last one, whose place it has taken."""
    return _made_from(op)[-1] if len(origin_names(op)) == 1 else origin(op)


def _is_step(op: Operation) -> bool:
    """Whether an operation only serves another one that was made of the same.

    A rewrite gives all that it makes one location; what takes the place of the root comes last.
    """
    uses = (use.operation for result in op.results for use in result.uses)
    return is_known(op.location) and any(user.location == op.location for user in uses)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


# Rewrites


@dataclass
class _Begun:
    source: Source
    root: str
    node: str | None
    inserted: list[Operation] = field(default_factory=list[Operation])


class _Log(Watcher):
    """Remembers the rewrites of a pass."""

    def __init__(self) -> None:
        self.begun: list[_Begun] = []
        self._open = False

    def begin(self, source: Source, root: Operation) -> None:
        """Note the rewrite."""
        self.begun.append(_Begun(source, root.name, _node(root)))
        self._open = True

    def inserted(self, op: Operation) -> None:
        """Note what it makes."""
        self.begun[-1].inserted.append(op)

    def end(self) -> None:
        """It is complete."""
        self._open = False

    def blamed(self, row: int, of: int, searched: bool) -> BlamedRewrite:
        """The rewrite of a row, which is its number less one."""
        each = self.begun[min(row, len(self.begun) - 1)]
        return BlamedRewrite(row + 1, of, each.source, each.root, each.node, searched)

    def unfinished(self) -> BlamedRewrite | None:
        """The one that was going on when the pass raised."""
        last = len(self.begun) - 1
        return self.blamed(last, last + 1, searched=True) if self._open else None

    def made(self, value: WrongValue) -> BlamedRewrite | None:
        """The last rewrite that made the operation which gave a value."""
        for row in reversed(range(len(self.begun))):
            made = self.begun[row].inserted
            if any(op.name == value.op and _node(op) == value.node for op in made):
                return self.blamed(row, len(self.begun), searched=False)
        return None


# Values


class _FirstWrong(Exception):
    """Ends a run at the first wrong value."""

    def __init__(self, value: WrongValue) -> None:
        super().__init__()
        self.value = value


class _Expected:
    """The values of a right run, by the node that they come from, and what differs from them.

    allowed: for an output. worst: of all differences, none of which is larger than that.
    """

    def __init__(self, allowed: float) -> None:
        self.allowed = allowed
        self.worst: WrongValue | None = None
        self._known: dict[tuple[str, ...], list[Array]] = {}
        self._with_steps: set[tuple[str, ...]] = set()

    def keep(self, value: Value) -> None:
        """Remember a value of the right run."""
        names = _made_from(value.op)
        known = self._known.setdefault(names, []) if names else []
        if len(known) < MOST_TURNS:
            known.append(value.values)
        if _is_step(value.op):
            self._with_steps.add(names)

    def compare(self, value: Value) -> None:
        """Raise _FirstWrong if a value has counterparts, and is like none of them.

        A variable that a wrong operation has read, and that nobody has filled with what belongs
        there, is named before the operation. A step on the way to what takes an operation's place
        has a counterpart only where there were steps before.
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
        """What the operation was made from whose place an operation has taken.

        Itself, or the most of its last parts that there was an operation of: a rule's result takes
        the place of the root, which is the last that it matches.
        """
        names = _made_from(op)
        ends = (names[start:] for start in range(len(names)))
        return next((each for each in ends if each in self._known), None)

    def _deviation(self, op: Operation, values: Array) -> tuple[Array, float] | None:
        """The nearest counterpart and its distance; None if there is no counterpart."""
        known = self._counterpart(op)
        if known is None:
            return None
        alike = [
            each.reshape(values.shape)
            for each in self._known[known]
            if each.size == values.size and each.dtype.kind == values.dtype.kind
        ]
        distances = [(relative_error(values, each), each) for each in alike]
        if not distances:
            return None
        error, expected = min(distances, key=lambda pair: pair[0])
        return (expected, error) if error > 0 else None


def _wrong(value: Value, expected: Array, error: float) -> WrongValue:
    found = value.values
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    # Where one of two is no number, nothing is further away.
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
