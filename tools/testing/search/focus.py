"""The operators that a pass names, and programs with many of them.

A random program rarely contains everything that a pass matches. The code of the pass, or the
patterns of its rules, name the operators in question; programs made of these test it better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from xdsl.ir import Operation

from ....ir.rules.bound_rule import BoundRule
from ....ir.rules.evaluate import CallFailed
from ....ir.rules.rule_set import RulesPass
from ....ir.rules.vocabulary import Vocabulary
from ....ir.upstream import ModulePass
from ..generators.build import Operators
from ..generators.program import Program
from ..generators.rules.reading import Fit, fit
from ..generators.rules.sources import Sources
from ..generators.sketch import DATA, Sketch
from .named import MOST, classes_named_by


def named_operators(passes: Iterable[ModulePass], operators: Operators) -> tuple[int, ...]:
    """The numbers of the operators that passes name; () if they name none, or more than half."""
    named: set[int] = set()
    for each in passes:
        for cls in classes_named_by(each):
            known = [i for i, other in enumerate(operators.classes) if cls in other.__mro__]
            if len(known) <= MOST:
                named.update(known)
    return tuple(sorted(named)) if len(named) <= len(operators.classes) // 2 else ()


def about(sketch: Sketch, operators: Sequence[int]) -> Sketch:
    """The sketch with the same steps, but only these operators."""
    steps = (replace(each, kind=operators[each.kind % len(operators)]) for each in sketch.steps)
    return replace(sketch, steps=tuple(steps), kinds=tuple(operators))


def programs_of_rules(
    passes: Iterable[ModulePass], operators: Operators, seed: int, limit: float
) -> Iterator[Program]:
    """Programs of nn that contain the left side of a rule, for each rule in turn.

    Args:
        limit: CPU seconds for evaluating a rule's guards once.
    """
    known = operators.instances.vocabulary
    sources = [
        Sources(rule, known, operators, seed, DATA, _fits(rule, known), limit, inf)
        for each in passes
        if isinstance(each, RulesPass)
        for rule in each.rule_set().chosen(each.only, each.skip).bound
    ]
    left = [each.fitting() for each in sources if each.sampled]
    while left:
        for each in tuple(left):
            program = next(each, None)
            if program is None:
                left.remove(each)
            else:
                yield program


def _fits(rule: BoundRule, vocabulary: Vocabulary) -> Callable[[Operation, Program], Fit | None]:
    def fits(op: Operation, program: Program) -> Fit | None:
        try:
            return fit(rule, op, vocabulary)
        # If this guard raises in the pass too, the check reports the pass.
        except CallFailed:
            return None

    return fits
