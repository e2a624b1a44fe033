"""Judges one program: finds its failure after the passes, if there is one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from ....backends.faults import IndexFault
from ....backends.reference import first_meaningless
from ....dialects.levels import EXCHANGE, NN, level_of
from ....ir.equal import same_program
from ....ir.level import Level
from ....ir.pass_levels import declared_levels
from ....ir.support.errors import DoesNotFit, InputError, one_line_with_notes
from ....ir.text import blobs_of, parse_module, print_module
from ....ir.upstream import ModuleOp, ModulePass, VerifyException
from ....ir.verify import verify_level
from ....passes.differentiate import Differentiate
from ...driver.context import with_users_dialects
from ..generators.program import Program, invalidity
from ..limits import TooLong, at_most, guarded
from ..oracle.gradients import wrong_gradients
from ..oracle.kernels import (
    Situation,
    has_kernels,
    is_deep,
    is_rare,
    prepare_kernels,
    situations,
    wrong_kernel,
)
from ..oracle.oracles import (
    Outcome,
    coarseness,
    difference,
    narrowed_run,
    run,
    with_both_errors,
)
from ..oracle.promises import narrowed_sum
from ..oracle.relations import NotApplicable, expected_of, name_of
from .failures import (
    AtFault,
    RelationFailed,
    StrategyFailed,
    Wrong,
    ending,
)
from .refusals import broken_before
from .report import Report
from .run import PassList, Refused, Watching, apply, is_abeles, unwatched
from .save import save_failure
from .settings import CheckSettings

STUCK = 3
"""The number of time limits after which the process ends, if a program cannot be interrupted."""
COMPILED_TWICE = 16
"""One program in this many is compiled and run twice, to see whether the results repeat."""
COMMONLY, RARELY = 2, 3
"""The largest factor by which new situations may increase the number of kernel runs: for common
and for rare situations."""
PARTED = 3
"""A number that makes the programs which run after some of the passes differ from those that run
twice."""
OFTEN = 4
"""The relative probability that a conversion, or a user's pass, is the last of those passes."""
READ_BACK = 12
"""One program in this many is printed and read again, which takes as long as all the rest."""


BEFORE = "running the program as it was before"
"""What a judgement does first. If it takes too long, no pass is to blame."""


@dataclass
class Judge:
    """Runs passes on one program after another, and finds the failure of each.

    Attributes:
        doing: the current step, named in the message if it takes too long.
        looks_for: the kind of failure to look for; any if "". Some steps that cannot show this kind
            are left out.
        watching: a context manager around each pass, when it runs on a program for the first time.
        part: the latest program after only some of the passes, and their number; None if none was
            wanted.
        met: the situations in which kernels have run programs.
    """

    passes: PassList
    settings: CheckSettings
    report: Report = field(default_factory=Report)
    doing: str = ""
    looks_for: str = ""
    watching: Watching = unwatched
    part: tuple[int, Program] | None = None
    met: set[Situation] = field(default_factory=set[Situation])

    def only(
        self, *, passes: PassList | None = None, looks_for: str | None = None, **settings: Any
    ) -> Judge:
        """A judge of fewer passes or with other settings, with its own report. It saves nothing."""
        less = replace(self.settings, **{"folder": None, "command": "", **settings})
        kind = self.looks_for if looks_for is None else looks_for
        return Judge(passes or self.passes, less, looks_for=kind)

    def _may_show(self, step: str) -> bool:
        """Whether a step that finds one kind of failure is needed."""
        return self.looks_for in ("", step)

    def wrong(self, program: Program) -> Wrong | None:
        """The failure of a program after the passes; None if there is none.

        Raises Refused, AtFault, and StrategyFailed for a program that cannot run before any pass.
        """
        limit = self.settings.limit
        if self._reaches_kernels(program):
            self.report.kernel_problems = prepare_kernels()
        try:
            with (
                guarded(STUCK * limit, lambda: self.last_words(program)),
                at_most(limit),
            ):
                return self._problem(program)
        except TooLong as late:
            if self.doing == BEFORE:
                # The program takes long by itself, whatever the passes do.
                self.report.undecided += 1
                return None
            return Wrong("hang", f"{self.doing} is not done after {limit:g} s ({late})")

    def last_words(self, program: Program) -> str:
        """Save a program that cannot be interrupted. Returns the message that ends the process."""
        saved = save_failure(program, self.passes, self.settings.relations, "hang", self.settings)
        late = f"{self.doing} is not done after {STUCK * self.settings.limit:g} s"
        names = ", ".join(each.name for each in self.passes.for_program(program))
        lines = [f"passes {names}: {late}, and cannot be interrupted", ""]
        return "\n".join([*lines, *ending(program, *saved)])

    def _problem(self, program: Program) -> Wrong | None:
        twice = self._may_show("random") and _is_nth(program, COMPILED_TWICE)
        self.doing = "compiling the program"
        try:
            after = self._compiled_first(program)
        except Refused as refused:
            passes = self.passes.for_program(program)
            problem = broken_before(refused, program, passes, self.settings.limit)
            if problem is None:
                raise
            return problem
        self.doing = "printing and reading the program"
        problem = invalid(after.module)
        if problem is None and self._may_show("text") and _is_nth(program, READ_BACK):
            problem = unreadable(after)
        if problem is not None:
            return problem
        # An unchanged program has unchanged results, so it need not run.
        runs = twice
        if not same_program(after.module, program.module):
            self.report.changed += 1
            runs = True
        if twice:
            self.doing = "compiling the program again"
            again = self.compiled(program)
            if print_module(again.module) != print_module(after.module):
                return Wrong("random", "two runs of the pass gave different programs")
        problem = None
        if self.settings.results:
            passes = self.passes.for_program(program)
            problem = self._differs(program, after, passes, twice, kernels=True) if runs else None
            if problem is None and self.part is not None:
                count, between = self.part
                problem = self._differs(program, between, passes[:count])
            if problem is None and runs and self._may_show("gradient"):
                problem = self._gradients(program, after, passes)
            if problem is None and runs and self._may_show("promise"):
                problem = _broken(program, after, passes)
        return problem or self._unrelated(program, after)

    def _differs(
        self,
        program: Program,
        after: Program,
        passes: Sequence[ModulePass],
        twice: bool = False,
        kernels: bool = False,
    ) -> Wrong | None:
        """The failure of a program after these passes.

        Args:
            twice, kernels: as for disagreement.
        """
        self.doing = BEFORE
        expected = self._expected(program)
        rounds = any(map(_rounds, passes))
        if rounds:
            self.doing = "computing the error bound of the compiled program"
            try:
                expected = with_both_errors(expected, narrowed_run(after))
            except IndexFault:
                # An index that is computed from narrow floats may round to another integer.
                expected = replace(expected, decided=expected.fault is not None)
        self.report.undecided += not expected.decided
        self.doing = "running the program"
        compiled = kernels and after.level == EXCHANGE and self._runs_kernels(program, after)
        self.report.by_kernels += compiled
        return disagreement(
            expected, after, twice, self.settings.rounded_once and not rounds, kernels=compiled
        )

    def _gradients(
        self, program: Program, after: Program, passes: Sequence[ModulePass]
    ) -> Wrong | None:
        """The failure of the gradients that passes have added; None if they are right."""
        self.doing = "comparing gradients with differences"
        loss = next((each.loss for each in passes if isinstance(each, Differentiate)), "")
        wrong = wrong_gradients(program, after, loss)
        return None if wrong is None else Wrong("gradient", wrong)

    def _reaches_kernels(self, program: Program) -> bool:
        """Whether the passes lead to exchange, where compiled kernels may run a program."""
        if not self.settings.kernels or not self._may_show("kernel"):
            return False
        if all(_leaves(each) != EXCHANGE for each in self.passes.for_program(program)):
            return False
        self.report.lacks_kernels = not has_kernels()
        return not self.report.lacks_kernels

    def _runs_kernels(self, program: Program, after: Program) -> bool:
        """Whether to run a program of exchange with compiled kernels too.

        True for every n-th program, and for programs with a new situation while the share of kernel
        runs is small: one program in eight, or in five if the situation is rare. Always true for a
        new situation with copies of many loops.
        """
        often = self.settings.kernels
        if not self._reaches_kernels(program):
            return False
        if _is_nth(program, often):
            return True
        new = situations(after) - self.met
        most = RARELY if any(map(is_rare, new)) else COMMONLY
        enough = self.report.by_kernels * often > most * (self.report.examples + often)
        if not new or (enough and not any(map(is_deep, new))):
            return False
        self.met |= new
        return True

    def _stop(self, program: Program, passes: Sequence[ModulePass]) -> int:
        """The number of passes after which an intermediate program is run too; 0 for none.

        Conversions and passes that are not abele's are likelier to be the last of them.
        """
        often = self.settings.parts
        if not often or len(passes) < 2 or not _is_nth(program, often, PARTED):
            return 0
        weights = [
            OFTEN if not is_abeles(each) or _leaves(each) is not None else 1 for each in passes[:-1]
        ]
        (found,) = Random(program.key or repr(program.sketch)).choices(
            range(1, len(passes)), weights
        )
        return found

    def _unrelated(self, program: Program, after: Program) -> Wrong | None:
        """The failure of the first relation that does not hold; None if all hold."""
        for relation in self.settings.relations:
            name = name_of(relation)
            self.doing = f"checking {name}"
            try:
                problem = relation(program, after, self.compiled)
            except (NotApplicable, Refused):
                self.report.skipped[name] += 1
                continue
            except (AtFault, MemoryError):
                raise
            except Exception as error:
                raise RelationFailed(
                    program, name, f"raised {one_line_with_notes(error)}"
                ) from error
            if problem is not None:
                return Wrong("relation", f"{name} does not hold: {problem}", name)
            self.report.held[name] += 1
        return None

    def _expected(self, program: Program) -> Outcome:
        source = self._lowered(program.source_program())
        try:
            return expected_of(source)
        except (InputError, DoesNotFit) as error:
            raise Refused(str(error), not isinstance(error, DoesNotFit)) from None
        except MemoryError:
            raise
        except Exception as error:
            problem = (
                f"made a program that cannot run before any pass ({one_line_with_notes(error)})"
            )
            raise StrategyFailed(problem, source) from error

    def _compiled_first(self, program: Program) -> Program:
        """The program after all passes. Counts which of several passes change it."""
        passes = self.passes.for_program(program)
        changed_by = self.report.changed_by if len(passes) > 1 else None
        self.part, stop = None, self._stop(program, passes)

        def see(count: int, after: Program) -> None:
            if count == stop:
                self.part = count, after.clone()

        return self.passes.compiled(
            program,
            self.settings.limit,
            self.report,
            changed_by,
            self.watching,
            see if stop else None,
        )

    def _lowered(self, program: Program) -> Program:
        """The program that defines the results: the first form that can run, perhaps after a pass.

        Raises Refused if it can run after no pass.
        """
        if can_run(program):
            return program
        lowered = program.clone()
        lowered.source = lowered.sketch = None
        for each in self.passes.for_program(program):
            apply(each, lowered, program, self.settings.limit)
            if can_run(lowered):
                self.report.began_after[each.name] += 1
                return lowered
        raise Refused(f"no pass gives a meaning to {unknown_operation(program)}")

    def compiled(self, program: Program) -> Program:
        """The program after all passes. Raises Refused and PassFailed."""
        return self.passes.compiled(program, self.settings.limit, self.report)


def unknown_operation(program: Program) -> str:
    """The name of an operation of nn that only a pass makes runnable; "" if there is none."""
    module = program.module
    found = first_meaningless(module) if level_of(module) == NN else None
    return "" if found is None else found.name


def can_run(program: Program) -> bool:
    """Whether all operations of a program can be run as they are."""
    return not unknown_operation(program)


def _rounds(each: ModulePass) -> bool:
    """Whether a pass declares that it may give up precision."""
    declared = declared_levels(type(each))
    return declared is not None and declared.rounds


def _broken(program: Program, after: Program, passes: Sequence[ModulePass]) -> Wrong | None:
    """The first broken promise of passes about the structure of a program; None if all are kept."""
    declared = [declared_levels(type(each)) for each in passes]
    promised = after.level == NN and any(each is not None and each.wide_sums for each in declared)
    problem = narrowed_sum(program.module, after.module) if promised else None
    return None if problem is None else Wrong("promise", problem)


def _leaves(each: ModulePass) -> Level | None:
    """The level at which a pass declares to leave programs; None if it declares no levels."""
    declared = declared_levels(type(each))
    return None if declared is None else declared.leaves


def invalid(module: ModuleOp) -> Wrong | None:
    """The failure of a module that does not verify; None if it is valid."""
    why = invalidity(module)
    return Wrong("invalid", f"the program does not verify: {why}") if why else None


def unreadable(program: Program) -> Wrong | None:
    """The failure of a program whose text is not read back as the same program; else None."""
    text = print_module(program.module)
    # A pass of an extension may have put operations there that programs are not made of.
    context = with_users_dialects(program.context)
    for blob in blobs_of(program.module):
        context.blobs.add(blob)
    try:
        again = print_module(parse_module(text, context))
    except InputError as error:
        return Wrong("text", f"its text cannot be read: {error}")
    if again == text:
        return None
    pairs = zip(text.splitlines(), again.splitlines(), strict=False)
    line = next((f"{a!r} is read as {b!r}" for a, b in pairs if a != b), "lines are missing")
    return Wrong("text", f"its text reads as another program: {line}")


def disagreement(
    expected: Outcome,
    after: Program,
    twice: bool = False,
    rounded_once: bool = True,
    kernels: bool = False,
) -> Wrong | None:
    """The failure of a program's results; None if they are within their bounds.

    Raises Refused for a program with several levels.

    Args:
        twice: run it again and require the same bits.
        rounded_once: require narrow results to be as exact as 32-bit results that are rounded once.
        kernels: run a program of exchange with compiled kernels too, and require the bytes that
            NumPy gives.
    """
    try:
        verify_level(after.module, level_of(after.module))
    except VerifyException as error:
        raise Refused(f"left on several levels: {error}") from None
    try:
        found = run(after, expected.cache)
        again = run(after) if twice else found
    except MemoryError:
        raise
    except IndexFault as fault:
        if expected.fault is not None or expected.dead_fault or not expected.decided:
            return None
        return Wrong("fault", f"the program cannot be run: {fault}", error="IndexFault")
    except Exception as error:
        raised = type(error).__name__
        return Wrong("fault", f"the program cannot be run: {raised}: {error}", error=raised)
    if expected.fault is not None and expected.decided:
        return Wrong("fault", f"the program runs; need the fault {expected.fault}")
    differs = difference(expected, found)
    if differs is not None:
        return Wrong("value", str(differs))
    coarse = coarseness(expected, found) if rounded_once else None
    if coarse is not None:
        return Wrong("narrow", str(coarse))
    for name, array in found.outputs.items():
        if array.tobytes() != again.outputs[name].tobytes():
            return Wrong("random", f"{name}: two runs differ")
    wrong = wrong_kernel(after, found) if kernels else None
    return None if wrong is None else Wrong("kernel", wrong[1], blamed=wrong[0])


def _is_nth(program: Program, n: int, which: int = 0) -> bool:
    """Whether a program is one of every n, a choice that depends on the program alone.

    Always true for a program that was not generated.

    Args:
        which: a number that makes another choice.
    """
    key = program.key if program.sketch is None else repr(program.sketch)
    return not key or zlib.crc32(key.encode()) % n == which % n
