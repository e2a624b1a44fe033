"""What a mutant makes of programs, beside what the right pass makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from time import process_time
from warnings import catch_warnings

from xdsl.dialects.builtin import StringAttr

from ....ir.equal import same_program
from ....ir.errors import DoesNotFit, InputError
from ....ir.pass_manager import parse_pipeline
from ....ir.symbols import number_symbols
from ....ir.text import print_module
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....passes.convert_nn_to_partition import TARGET
from ....passes.pipelines import PASSES
from ..limits import TooLong, at_most
from ..search.check import check_pass
from ..search.contracts import acting_as, passes_behind
from ..search.failures import AtFault, Miscompiled
from ..search.settings import LIMIT, BudgetOptions

ANY_TARGET = "mk2:4"
"""Where a program is not planned for one."""
LINES = 40
"""Lines of a difference that are kept."""


@dataclass(frozen=True)
class Budget:
    """What a trial may take. seconds: of CPU time, for the search alone."""

    examples: int = 2000
    seconds: float = 60.0
    seed: int = 0
    limit: float = LIMIT

    def options(self) -> BudgetOptions:
        """The options of a check with this budget. Its seconds are counted by the trial."""
        return {"examples": self.examples, "seed": self.seed, "limit": self.limit}


class Spent(BaseException):
    """The CPU time of a search is over. No Exception, so that no pass catches it with its own."""


@dataclass(frozen=True)
class Case:
    """A program before and after the right pass. outcome: "" or how it did not come to an end."""

    context: Context
    given: ModuleOp = field(repr=False)
    after: ModuleOp = field(repr=False)
    outcome: str


@dataclass(frozen=True)
class Difference:
    """How a mutant differs from the right pass. programs, of: in how many of how many. how: the
    first time. text: the first program, and the lines in which what came out differs."""

    programs: int = 0
    of: int = 0
    how: str = ""
    text: str = ""


def cases(right: ModulePass, level: str, budget: Budget) -> list[Case]:
    """The programs that a check looks at, as long as the pass does what the right one does."""
    found: list[Case] = []
    begin = process_time()

    def apply(ctx: Context, op: ModuleOp) -> None:
        if process_time() - begin > budget.seconds:
            raise Spent
        given = op.clone()
        outcome = _outcome(right, ctx, op, budget.limit)
        # Of some programs the check wants the same twice.
        if not (found and same_program(found[-1].given, given)):
            found.append(Case(ctx, given, op.clone(), outcome))
        if outcome:
            raise InputError(outcome)

    # What is wrong with the right pass itself is told by a check of it.
    with suppress(Spent, InputError, AtFault, Miscompiled), catch_warnings(action="ignore"):
        check_pass(
            acting_as(right, apply),
            level,
            results=False,
            **budget.options(),
        )
    return found


def compared(
    mutant: ModulePass, known: Sequence[Case], budget: Budget, *, first: bool = False
) -> Difference:
    """In which programs a mutant makes something else than the right pass. first: stop there.

    What becomes the same program of the machine is not something else: names, and decisions that
    passes behind it make again, are not the meaning of a program.
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
            # One that becomes something else tells that the mutant is one.
            or (not differing and _becomes_same(type(mutant), module, each, budget.limit))
        ):
            continue
        if not differing:
            how = outcome or ("takes it" if each.outcome else "otherwise")
            text = _shown(each, module)
        differing += 1
        if first:
            break
    return Difference(differing, count, how, text)


def _becomes_same(mutant: type[ModulePass], module: ModuleOp, case: Case, limit: float) -> bool:
    """Whether the passes behind one make the same of two modules, names apart, or take neither."""
    behind = ",".join(passes_behind(mutant))
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
    """Run a pass on a module; "", or how it did not come to an end."""
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


def _shown(case: Case, wrong: ModuleOp) -> str:
    a, b = (print_module(m, locations=False).splitlines() for m in (case.after, wrong))
    lines = list(unified_diff(a, b, "right", "mutant", lineterm="", n=1))[:LINES]
    return "\n".join([print_module(case.given, locations=False), *lines])
