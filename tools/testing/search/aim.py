"""The aim of a check: the operators, decisions and numbers that its programs should contain.

A caller names the operators and decisions that a change touches. Otherwise they come from the code
of a user's pass: the operators that it names, and, if it reads plans, the decisions that it names.
The numbers in the code matter too, because a pass may treat them specially.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias, TypeVar

from xdsl.ir import Operation

from ....dialects.abele import Plan, PlanAttr
from ....dialects.levels import NN, PLANNED, STABLEHLO
from ....dialects.nn.group import GROUP
from ....ir.rules.choices import Hints
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModuleOp, ModulePass
from ....passes.decompose import Decompose
from ..generators.build import Operators, build, default_operators, is_users, users_operators
from ..generators.decisions import PlanAtRandom
from ..generators.levels import lowered
from ..generators.program import Program
from ..generators.sketch import Sketch
from ..generators.stablehlo_programs.table import TABLE
from .focus import named_operators
from .named import classes_named_by, literals_of, words_of
from .run import is_abeles

T = TypeVar("T")

OperatorsGiven: TypeAlias = "Sequence[type[Operation] | str]"
"""Classes of operators, or their names."""

FEW_PASSES = 3
"""If at most this many passes are under test, programs are about the operators that they name."""
SEEDS = 4
"""Number of seeds to try for a program with wanted decisions."""
AIMED_PLANS = 0.75
"""The share of programs with wanted decisions."""

DECISIONS: Mapping[str, Callable[[Plan], bool]] = {
    "split": lambda plan: max(plan.split, default=1) > 1,
    "order": lambda plan: bool(plan.order),
    "first_tile": lambda plan: plan.first_tile > 0,
    "method": lambda plan: bool(plan.method),
    "workers": lambda plan: bool(plan.workers),
    "combine": lambda plan: plan.combine is not None,
    "steps": lambda plan: max(plan.steps, default=1) > 1,
    "ring": lambda plan: max(plan.ring, default=-1) >= 0,
    "across": lambda plan: bool(plan.across),
    "apart": lambda plan: plan.apart > 0,
}
"""The decisions of a plan, named after its fields, each with a test whether a plan makes it."""

GROUPS = "groups"
"""The decision to compute operations together."""

ALL_DECISIONS = (*DECISIONS, GROUPS)


def decisions_in(module: ModuleOp) -> set[str]:
    """The names of all decisions that the plans of a module make."""
    found: set[str] = set()
    for op in module.walk():
        attribute = op.attributes.get("plan")
        if isinstance(attribute, PlanAttr):
            plan = attribute.data
            found.update(name for name, made in DECISIONS.items() if made(plan))
        if GROUP in op.attributes:
            found.add(GROUPS)
    return found


def decisions_named_by(tested: ModulePass) -> tuple[str, ...]:
    """The names of decisions in the code of a pass that reads plans; () if it reads none."""
    words = words_of(tested)
    reads_plans = any(each.startswith("plan") for each in words)
    if not reads_plans and not {Plan, PlanAttr} & set(classes_named_by(tested)):
        return ()
    return tuple(name for name in ALL_DECISIONS if name in words)


@dataclass(frozen=True)
class Aim:
    """The operators, decisions and numbers that programs should contain.

    Attributes:
        level: the level of the programs.
        passes: the passes whose code or rules name operators and numbers.
        operators: the names that the caller gives.
        decisions: the decisions that plans should make.
    """

    level: str = NN.name
    passes: tuple[ModulePass, ...] = ()
    operators: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()

    @staticmethod
    def of(
        passes: Iterable[ModulePass],
        level: str,
        operators: OperatorsGiven = (),
        decisions: Sequence[str] = (),
    ) -> Aim:
        """The aim of a check. Raises InputError for an unknown operator or decision.

        Args:
            level: of the programs. Those of stablehlo have operations of stablehlo, and all others
                are made from operators of nn.
        """
        unknown = [each for each in decisions if each not in ALL_DECISIONS]
        if unknown:
            raise InputError(f"decision '{unknown[0]}'; need some of {', '.join(ALL_DECISIONS)}")
        names = tuple(each if isinstance(each, str) else each.name for each in operators)
        tested = tuple(passes)
        # Next to a user's passes, abele's own passes are not under test.
        users = tuple(each for each in tested if not is_abeles(each))
        found = users or (tested if level == NN.name else ())
        aim = Aim(level, found if len(found) <= FEW_PASSES else (), names, tuple(decisions))
        made_of, known = NN, {cls.name for cls in aim.vocabulary().classes}
        if level == STABLEHLO.name:
            made_of, known = STABLEHLO, set(TABLE)
        missing = [name for name in names if name not in known]
        if missing:
            raise InputError(
                f"operator '{missing[0]}': no operator of {made_of} that can run has this name"
            )
        if not decisions:
            named = (name for each in users for name in decisions_named_by(each))
            aim = replace(aim, decisions=tuple(dict.fromkeys(named)))
        return aim

    def vocabulary(self) -> Operators:
        """The operators that programs are built from."""
        if not any(map(is_users, self.operators)):
            return default_operators()
        own = (cls.name for cls in default_operators().classes)
        return users_operators((*own, *self.operators))

    def numbers(self, operators: Operators) -> tuple[int, ...]:
        """The numbers of the operators that programs should contain; () for any operators."""
        if self.operators:
            names = [cls.name for cls in operators.classes]
            return tuple(sorted(map(names.index, self.operators)))
        return named_operators(self.passes, operators)

    def of_stablehlo(self, number: int) -> tuple[str, ...]:
        """The operations of stablehlo that a program should contain; () for any.

        Every second program is about those that the caller names, or else the code of the passes.

        Args:
            number: of the program.
        """
        if number % 2:
            return ()
        classes = (cls for each in self.passes for cls in classes_named_by(each))
        names = self.operators or tuple(str(getattr(cls, "name", "")) for cls in classes)
        found = tuple(sorted({each for each in names if each in TABLE}))
        return found if len(found) <= len(TABLE) // 2 else ()

    def literals(self) -> Hints:
        """The numbers in the code of users' passes, for some attributes of the programs."""
        # Programs for abele's own passes favour no numbers.
        found = [literals_of(each) for each in self.passes if not is_abeles(each)]
        return Hints(
            tuple(dict.fromkeys(n for each in found for n in each.ints)),
            tuple(dict.fromkeys(n for each in found for n in each.floats)),
            lists=tuple(dict.fromkeys(n for each in found for n in each.lists)),
        )

    def decided(self, sketch: Sketch, operators: Operators, random: Random) -> Sketch:
        """The sketch, often with a new seed for which its program makes the wanted decisions.

        Sketches of programs of nn stay unchanged.
        """
        if not self.decisions or self.level == NN.name or random.random() >= AIMED_PLANS:
            return sketch
        some = [replace(sketch, seed=random.randrange(1 << 16)) for _ in range(SEEDS - 1)]

        def planned(each: Sketch) -> ModuleOp:
            return lowered(build(each, operators), PLANNED, Random(each.seed)).module

        return self._best((sketch, *some), planned)

    def planned(self, program: Program) -> Program:
        """The program, often with a seed of random plans that make the wanted decisions.

        Programs of other levels than nn stay unchanged.
        """
        sketch = program.sketch
        if not self.decisions or self.level != NN.name or sketch is None:
            return program
        random = Random(f"{sketch.seed} decisions")
        if random.random() >= AIMED_PLANS:
            return program

        def planned(seed: int) -> ModuleOp:
            module = program.module.clone()
            Decompose().apply(program.context, module)
            PlanAtRandom(program.target.spelling(), seed).apply(program.context, module)
            return module

        seeds = [random.randrange(1 << 16) for _ in range(SEEDS)]
        program.plans = self._best(seeds, planned)
        return program

    def _best(self, some: Sequence[T], planned: Callable[[T], ModuleOp]) -> T:
        """The first candidate with all wanted decisions, or else the candidate with the most.

        Args:
            some: the candidates.
            planned: returns the planned module of a candidate.
        """
        wanted, best, most = set(self.decisions), some[0], -1
        for each in some:
            try:
                made = len(wanted & decisions_in(planned(each)))
            except (DoesNotFit, InputError):
                continue
            if made > most:
                best, most = each, made
            if made == len(wanted):
                break
        return best
