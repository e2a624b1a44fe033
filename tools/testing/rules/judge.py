"""Judges a rule on one program: it must fire where it matches, and keep the meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.ir import Operation

from ....dialects.levels import level_of
from ....ir.provenance import place
from ....ir.rewriting import Source, Watcher, watched
from ....ir.rules import RuleSet, RulesPass, Vocabulary
from ....ir.rules.bound_rule import BoundRule
from ....ir.rules.evaluate import CallFailed
from ....ir.rules.match import match_rule
from ....ir.support.errors import DoesNotFit, InputError, one_line
from ....ir.upstream import ModuleOp, ModulePass, VerifyException
from ....ir.verify import verify
from ..generators.program import Program
from ..generators.rules.reading import Fit, fit, misfit
from ..generators.rules.sources import level_of_rule, way_down
from ..limits import TooLong, at_most
from ..oracle.oracles import Outcome, bounded_run
from ..search.failures import Wrong
from ..search.judge import can_run, disagreement, invalid, unknown_operation
from ..search.run import Refused
from ..search.watch import watching_rules
from .failures import RuleFailed
from .settings import RuleReport


@dataclass
class RuleJudge:
    """Applies a rule to one program after another and finds its failures.

    Attributes:
        rules: the set that the rule belongs to.
        limit: CPU seconds for one program.
        report: counts the programs.
        lowered_by: passes that give a meaning to operations of a user's dialect.
    """

    rule: BoundRule
    rules: RuleSet
    limit: float
    report: RuleReport = field(default_factory=RuleReport)
    lowered_by: tuple[ModulePass, ...] = ()

    def __post_init__(self) -> None:
        self.level = level_of_rule(self.rule, self.vocabulary)
        self._applied = (
            self.rules if self.rule.kind == "lower" else RuleSet((self.rule,), self.vocabulary)
        )

    @property
    def vocabulary(self) -> Vocabulary:
        """The operations that rules may use."""
        return self.rules.vocabulary

    def uncounted(self) -> RuleJudge:
        """The same judge with a report of its own."""
        return RuleJudge(self.rule, self.rules, self.limit, lowered_by=self.lowered_by)

    def fit(self, op: Operation, program: Program) -> Fit | None:
        """The match of the rule with an operation; None if there is none. Raises RuleFailed."""
        try:
            with at_most(self.limit / 2):
                return fit(self.rule, op, self.vocabulary)
        except TooLong as late:
            raise self._failed(program, f"is not done after {self.limit / 2:g} s") from late
        except CallFailed as failure:
            raise self._raised(program, failure.error) from failure.error

    def wrong(self, program: Program, must: bool = False) -> Wrong | None:
        """The failure of the rule on a program; None if there is none.

        Raises Refused if the program cannot be compiled or run, and RuleFailed.

        Args:
            must: the program contains the rule's left side.
        """
        fitting = [op for op in program.module.walk() if self.fit(op, program) is not None]
        problem = self._mismatch(program, fitting)
        if problem is not None:
            return problem
        if self.rule.kind == "lower" and not must:
            # A near-miss that the rule does not lower cannot be run.
            return None
        after, fired = self.applied(program)
        alone = self.rule.kind == "rule"
        if alone and fitting and not fired and not self._declines(fitting):
            return Wrong("unfired", f"it matches {_named(fitting[0])} but does not fire")
        if alone and fired and not fitting:
            return Wrong("fires", "it fires but matches no operation")
        if not fired and (alone or not must):
            # The program is unchanged.
            return None
        self.report.changed += 1
        return invalid(after.module) or self._differs(program, after)

    def _differs(self, program: Program, after: Program) -> Wrong | None:
        """The difference between the results before and after the rule; None if there is none."""
        try:
            with at_most(self.limit):
                expected = _expected(self._runnable(program))
                self.report.undecided += not expected.decided
                return disagreement(expected, self.uncounted()._runnable(after))
        except TooLong as late:
            return Wrong("hang", f"the program is not done after {self.limit:g} s ({late})")

    def _runnable(self, program: Program) -> Program:
        """The program, or its first lowered form that can run.

        Raises Refused if nothing gives a meaning to an operation.
        """
        if can_run(program):
            return program
        lowered = program.clone()
        lowered.source = lowered.sketch = None
        for name, lower in self._lowerings():
            try:
                lower(lowered)
            except (InputError, DoesNotFit) as error:
                raise Refused(str(error)) from None
            if can_run(lowered):
                self.report.began_after[name] += 1
                return lowered
        raise Refused(
            f"no rule gives a meaning to {unknown_operation(lowered)}; load a file with a rule "
            "that replaces it, or write this rule with `lower` if it is the definition"
        )

    def _lowerings(self) -> Iterator[tuple[str, Callable[[Program], object]]]:
        """The lowerings of operations of users' dialects, by name: the set's rules, then passes."""
        bound = tuple(rule for rule in self.rules.bound if rule.kind == "lower")
        if bound:
            own = RuleSet(bound, self.vocabulary)
            yield Path(bound[0].source.file).name, lambda program: own.apply(program.module)
        for each in self.lowered_by:
            yield each.name, lambda program, each=each: self._lower(each, program)

    def _lower(self, each: ModulePass, program: Program) -> None:
        """Apply a pass without the tested rule, which must not decide the expected results."""
        if isinstance(each, RulesPass) and self.rule.name in each.rule_set().names:
            each.rule_set().chosen(skip=[self.rule.name]).apply(program.module)
        else:
            each.apply(program.context, program.module)

    def _mismatch(self, program: Program, fitting: Sequence[Operation]) -> Wrong | None:
        """The disagreement between the matcher and the text of the rule; None if they agree."""
        for op in program.module.walk():
            if type(op) not in self.rule.roots:
                continue
            try:
                found = match_rule(self.rule, op, self.vocabulary) is not None
            except CallFailed as failure:
                raise self._raised(program, failure.error) from failure.error
            if found and op not in fitting:
                why = misfit(self.rule, op, self.vocabulary)
                return Wrong("fires", f"the matcher accepts {_named(op)}, but {why}")
            if not found and op in fitting:
                return Wrong("unfired", f"it matches {_named(op)}, but the matcher rejects it")
        return None

    def _declines(self, fitting: Sequence[Operation]) -> bool:
        """Whether Python code of the rule rejects every match."""
        matches = [match_rule(self.rule, op, self.vocabulary) for op in fitting]
        return all(match is not None and self.rule.make(match) is None for match in matches)

    def applied(self, program: Program) -> tuple[Program, int]:
        """The program after the rule, and the number of times that the rule fired.

        Raises Refused and RuleFailed.
        """
        after = program.clone()
        firing = _Firing(self.rule.name)
        try:
            with at_most(self.limit / 2), watched(firing), watching_rules(self.report):
                self._applied.apply(after.module)
        except (InputError, DoesNotFit) as error:
            if self.rule.kind == "lower":
                raise Refused(str(error)) from None
            raise self._failed(program, f"cannot be applied: {error}") from error
        except TooLong as late:
            raise self._failed(program, f"is not done after {self.limit / 2:g} s") from late
        except MemoryError:
            raise
        except Exception as error:
            raise self._raised(program, error) from error
        if self.rule.kind == "lower" and not _is_on_one_level(after.module):
            try:
                way_down(self.level, program)[-1].apply(after.context, after.module)
            except (InputError, DoesNotFit) as error:
                raise Refused(str(error)) from None
        return after, firing.count

    def _raised(self, program: Program, error: BaseException) -> RuleFailed:
        return self._failed(program, f"raised {one_line(error)}")

    def _failed(self, program: Program, problem: str) -> RuleFailed:
        return RuleFailed(self.rule, program, problem)


@dataclass
class _Firing(Watcher):
    """Counts the rewrites of one rule."""

    name: str
    count: int = 0

    def begin(self, source: Source, root: Operation) -> None:
        self.count += source.name == self.name


def _expected(program: Program) -> Outcome:
    """The expected results of a program. Raises Refused if it cannot be run."""
    try:
        return bounded_run(program.source_program())
    except MemoryError:
        raise
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None


def _is_on_one_level(module: ModuleOp) -> bool:
    """Whether all operations of a module are legal on the module's level."""
    try:
        verify(module, level_of(module))
    except VerifyException:
        return False
    return True


def _named(op: Operation) -> str:
    return f"{op.name} at {place(op)}"
