"""Compares the output of a mutant with that of the original pass, program by program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from time import process_time

from xdsl.dialects.builtin import StringAttr

from ....ir.equal import same_program
from ....ir.pass_manager import parse_pipeline
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.symbols import number_symbols
from ....ir.text import print_module
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....passes.pipelines import PASSES
from ....passes.plans.planned import TARGET
from ..limits import TooLong, at_most
from ..search.contracts import passes_after, with_apply
from ..search.failures import AtFault, Miscompiled
from ..search.pass_check import check_pass
from ..search.settings import LIMIT, BudgetOptions

ANY_TARGET = "mk2:4"
"""The machine for programs that are not planned for one."""
MAX_DIFF_LINES = 40
"""Longer differences are cut to this many lines."""


@dataclass(frozen=True)
class Budget:
    """The limits of a trial.

    Attributes:
        examples: number of programs.
        seconds: CPU time of the search, without shrinking.
        seed: seed of the programs.
        limit: CPU seconds for one program.
    """

    examples: int = 2000
    seconds: float = 60.0
    seed: int = 0
    limit: float = LIMIT

    def options(self) -> BudgetOptions:
        """The options of a check with this budget. The trial itself measures the seconds."""
        return {"examples": self.examples, "seed": self.seed, "limit": self.limit}


class OutOfTime(BaseException):
    """Raised when the CPU time of a search is used up. Not an Exception: no pass can catch it."""


@dataclass(frozen=True)
class Case:
    """A program before and after the original pass.

    Attributes:
        given: the program before.
        after: the program after.
        outcome: the way in which the pass failed; "" if it did not.
    """

    context: Context
    given: ModuleOp = field(repr=False)
    after: ModuleOp = field(repr=False)
    outcome: str


@dataclass(frozen=True)
class Comparison:
    """The differences between the output of a mutant and that of the original pass.

    Attributes:
        programs: number of programs with different outputs.
        of: number of programs compared.
        how: the difference for the first of them.
        text: the first of them, and the lines that differ.
    """

    programs: int = 0
    of: int = 0
    how: str = ""
    text: str = ""


def cases(original: ModulePass, level: str, budget: Budget) -> list[Case]:
    """The programs on which a check runs a pass, with the results of the original pass.

    Until a mutant differs from the original, a check of the mutant uses the same programs.
    """
    found: list[Case] = []
    begin = process_time()

    def apply(ctx: Context, op: ModuleOp) -> None:
        if process_time() - begin > budget.seconds:
            raise OutOfTime
        given = op.clone()
        outcome = _outcome(original, ctx, op, budget.limit)
        # A check compiles some programs twice.
        if not (found and same_program(found[-1].given, given)):
            found.append(Case(ctx, given, op.clone(), outcome))
        if outcome:
            raise InputError(outcome)

    # Bugs of the original pass are reported by study.check_original.
    with suppress(OutOfTime, InputError, AtFault, Miscompiled):
        check_pass(
            with_apply(original, apply),
            level,
            results=False,
            expect_changes=False,
            **budget.options(),
        )
    return found


def compare(
    mutant: ModulePass, known: Sequence[Case], budget: Budget, *, first: bool = False
) -> Comparison:
    """Compare a mutant with the original pass on known programs, until the budget is used up.

    Two outputs count as equal if the remaining passes compile them to the same machine program:
    names, and decisions that later passes make again, do not matter.

    Args:
        first: stop at the first program that differs.
    """
    differing, how, text = 0, "", ""
    begin, count = process_time(), 0
    for each in known:
        if process_time() - begin > budget.seconds:
            break
        count += 1
        module = each.given.clone()
        outcome = _outcome(mutant, each.context, module, budget.limit)
        if outcome == each.outcome and (
            outcome
            or same_program(module, each.after)
            # Once one program has differed, there is no need to compile the others.
            or (not differing and _compiles_to_the_same(type(mutant), module, each, budget.limit))
        ):
            continue
        if not differing:
            how = outcome or ("accepts" if each.outcome else "differs")
            text = _diff(each, module)
        differing += 1
        if first:
            break
    return Comparison(differing, count, how, text)


def _compiles_to_the_same(
    mutant: type[ModulePass], module: ModuleOp, case: Case, limit: float
) -> bool:
    """Whether the passes after the mutant compile both outputs to the same program or refuse both.

    Names are ignored.
    """
    behind = ",".join(passes_after(mutant))
    target = case.given.attributes.get(TARGET)
    spelling = target.data if isinstance(target, StringAttr) else ANY_TARGET
    passes = parse_pipeline(behind.replace("TARGET", f'"{spelling}"'), PASSES) if behind else ()
    right, wrong = case.after.clone(), module.clone()
    for each in passes:
        outcome, other = (_outcome(each, case.context, m, limit) for m in (right, wrong))
        if outcome or other:
            return outcome == other == "refuses"
    number_symbols(right)
    number_symbols(wrong)
    return same_program(right, wrong)


def _outcome(tested: ModulePass, ctx: Context, module: ModuleOp, limit: float) -> str:
    """Run a pass on a module. Returns the way it failed (refuses, hang or raised), or ""."""
    try:
        with at_most(limit / 2):
            tested.apply(ctx, module)
    except (InputError, DoesNotFit):
        return "refuses"
    except TooLong:
        return "hang"
    except Exception:
        return "raised"
    return ""


def _diff(case: Case, wrong: ModuleOp) -> str:
    """The text of a program, and the lines in which the two passes' outputs differ."""
    a, b = (print_module(m, locations=False).splitlines() for m in (case.after, wrong))
    lines = list(unified_diff(a, b, "original", "mutant", lineterm="", n=1))[:MAX_DIFF_LINES]
    return "\n".join([print_module(case.given, locations=False), *lines])
