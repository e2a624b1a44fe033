"""Warns of mistakes in rules, which it looks for on sample programs before the rules run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from xdsl.ir import Operation

from ..support.errors import InputError
from ..upstream import PatternRewriter
from .bound_rule import BoundRule, Made, Match, ordered
from .evaluate import CallFailed
from .match import match_rule
from .overlap import common_patterns, same_values, shadows
from .parse import refusal
from .rule_set import RuleSet
from .samples import Sample, Sampler
from .syntax import Place
from .typed import counterexample

ROUNDS = 24
"""How often a rule may be applied to its own result before it counts as endless."""
FEW = 3
"""Samples used to test whether a rule is endless."""
ATTEMPTS = 24
"""Programs made to test whether two rules match the same operation."""
TRIES = 150
"""Operations tried to make these programs."""


@dataclass(frozen=True)
class Remark:
    """A warning about rules.

    Attributes:
        text: the message, with the line and a caret.
    """

    place: Place
    message: str
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


def lint_rules(rules: RuleSet, seed: int = 0) -> tuple[Remark, ...]:
    """Check that each rule matches some program, keeps its types, ends, and is not hidden.

    The checks run on programs built from the rules' own patterns (see samples).
    Returns warnings. Raises InputError with one message per mistake.
    """
    return _Check(rules, seed).remarks()


@dataclass
class _Check:
    rules: RuleSet
    seed: int
    found: list[Remark] = field(default_factory=list[Remark])
    wrong: list[Remark] = field(default_factory=list[Remark])

    def remarks(self) -> tuple[Remark, ...]:
        """All warnings. Raises InputError."""
        sampler = Sampler(self.rules.vocabulary, self.seed)
        for rule in self.rules.bound:
            self._alone(rule, list(sampler.samples(rule, _count(rule))))
        for first, second in _pairs(self.rules.bound):
            self._together(first, second, sampler)
        if self.wrong:
            raise InputError("\n".join(map(str, self.wrong)))
        return tuple(self.found)

    def _say(self, rule: BoundRule, message: str) -> None:
        self.found.append(_remark(rule, f"warning: {message}"))

    def _refuse(self, rule: BoundRule, message: str) -> None:
        self.wrong.append(_remark(rule, message))

    # One rule

    def _alone(self, rule: BoundRule, samples: Sequence[Sample]) -> None:
        if not samples:
            self._say(
                rule,
                f"rule {rule.name}: no sample program matches it; its types are checked at each "
                "rewrite",
            )
            return
        wrong = counterexample(rule, samples)
        if wrong is not None:
            self._refuse(rule, f"rule {rule.name}: {wrong}")
            return
        endless = next((s for s in samples[:FEW] if self._is_endless(rule, s)), None)
        if endless is None:
            return
        message = (
            f"rule {rule.name}: its left side matches its own right side: with "
            f"{endless.described()} it would be applied to its own result forever"
        )
        if rule.guards:
            self._say(rule, f"{message}, unless a guard stops it")
        else:
            self._refuse(
                rule, f"{message}; add a guard that stops it, or make the right side smaller"
            )

    def _is_endless(self, rule: BoundRule, sample: Sample) -> bool:
        """True if a rule keeps being applied to its own result."""
        pattern = RuleSet((rule,), self.rules.vocabulary).pattern()
        block, op = sample.block, sample.root
        for _ in range(ROUNDS):
            before = set(block.ops)
            try:
                pattern.match_and_rewrite(op, PatternRewriter(op))
            except InputError:
                # This is a mistake of another kind, which the check of types finds.
                return False
            new = [each for each in block.ops if each not in before]
            following = next((each for each in new if self._match(rule, each)), None)
            if following is None:
                return False
            op = following
        return True

    # Two rules

    def _together(self, first: BoundRule, second: BoundRule, sampler: Sampler) -> None:
        """Check two rules that can match the same operation.

        Args:
            first: the one tried first.
        """
        if shadows(first, second, self.rules.vocabulary):
            self._refuse(
                second,
                f"rule {second.name} is never reached: rule {first.name} ({first.place}) is tried "
                "first and matches everything that it matches; give this rule a higher @priority, "
                "or the other one a guard",
            )
            return
        if first.priority != second.priority:
            return
        for pattern in common_patterns(first, second):
            guards = (*first.guards, *second.guards)
            name = f"{first.name} {second.name}"
            for root in islice(sampler.programs(name, [pattern], guards, TRIES), ATTEMPTS):
                a, b = self._made(first, root), self._made(second, root)
                if a is None or b is None or same_values(a.values, b.values):
                    continue
                self._say(
                    second,
                    f"rules {first.name} ({first.place}) and {second.name} both match "
                    f"{_described(root)}, with different results; {first.name} is applied, because "
                    "it is written first; choose one with @priority",
                )
                return

    def _match(self, rule: BoundRule, op: Operation) -> Match | None:
        try:
            return match_rule(rule, op, self.rules.vocabulary)
        except CallFailed:
            return None

    def _made(self, rule: BoundRule, root: Operation) -> Made | None:
        match = self._match(rule, root)
        try:
            return None if match is None else rule.make(match)
        # Errors in a rule's own Python are reported when the rule is checked alone.
        except Exception:
            return None


def _count(rule: BoundRule) -> int:
    """The number of samples for a rule: some for each class of operations."""
    return max(24, 2 * len(rule.roots))


def _pairs(bound: Sequence[BoundRule]) -> Iterator[tuple[BoundRule, BoundRule]]:
    """Pairs of rules that share a class of roots, the one that is tried first in front."""
    for first, second in combinations(ordered(bound), 2):
        if first.roots & second.roots:
            yield first, second


def _described(root: Operation) -> str:
    """An operation and its operands as an expression, such as nn.add(nn.neg(x), y)."""

    def expression(op: Operation) -> str:
        parts = [
            expression(owner)
            if isinstance(owner := value.owner, Operation)
            else value.name_hint or "_"
            for value in op.operands
        ]
        return f"{op.name}({', '.join(parts)})"

    return expression(root)


def _remark(rule: BoundRule, message: str) -> Remark:
    text = str(refusal(rule.place, message, rule.text, rule.place.line))
    return Remark(rule.place, message, text)
