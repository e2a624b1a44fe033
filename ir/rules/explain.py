"""Explains why a rule does not match: the first obstacle at each operation it might replace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from xdsl.ir import Operation, OpResult, SSAValue

from ..provenance import place
from ..support.errors import InputError
from ..support.suggestions import suggestion_or
from ..upstream import ModuleOp, Printer
from .bound_rule import BoundRule, Match, ordered
from .evaluate import CallFailed
from .match import match_rule, obstacles
from .matcher import Obstacle
from .rule_set import RuleSet, check_made
from .syntax import Place

SHOWN = 10
"""The number of attempts that are printed in full. The others are counted."""

LONGEST = 160
"""The longest part of an operation's line that is printed, in characters."""


@dataclass(frozen=True)
class Attempt:
    """A rule tried at one operation.

    Attributes:
        place: of the operation.
        line: its text.
        fits: True if the rule matches and would be applied.
        depth: how much of the pattern and the guards held.
        reason: in one line.
        details: the lines below it.
    """

    place: str
    line: str
    fits: bool
    depth: int
    reason: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((f"{self.place}: {self.reason}", f"    {self.line}", *self.details))


@dataclass(frozen=True)
class Explanation:
    """What a rule finds in a module.

    Attributes:
        attempts: one per operation of its root's class, the closest first.
        text: everything as text.
    """

    rule: BoundRule
    attempts: tuple[Attempt, ...]
    text: str

    @property
    def fits(self) -> int:
        """The number of operations at which the rule would be applied."""
        return sum(each.fits for each in self.attempts)


def explain(rule: str, rules: Sequence[RuleSet], module: ModuleOp) -> Explanation:
    """Why a rule matches or does not match at each operation of a module. Changes nothing.

    Raises InputError if there is no such rule, or more than one.

    Args:
        rule: a name, or file:name if several files have it.
        rules: sets that are applied separately; the rules of one set compete.
    """
    bound_rule, own = _find(rule, rules)
    program = module.clone()
    lines = _lines(program, bound_rule.roots)
    trials = [_Trial(bound_rule, own, op, lines) for op in lines.ops]
    # Match everywhere before building: new operations use values, and guards count uses.
    tried = [(trial, trial.tried()) for trial in trials]
    attempts = [trial.made(found) if isinstance(found, Match) else found for trial, found in tried]
    attempts.sort(key=lambda each: (not each.fits, -each.depth))
    return Explanation(bound_rule, tuple(attempts), _told(bound_rule, attempts, program))


def _find(rule: str, rules: Sequence[RuleSet]) -> tuple[BoundRule, RuleSet]:
    file, _, name = rule.rpartition(":")
    found = [
        (bound_rule, own)
        for own in rules
        for bound_rule in own.bound
        if bound_rule.name == name and bound_rule.source.file.endswith(file)
    ]
    if not found:
        names = [bound_rule.name for own in rules for bound_rule in own.bound]
        where = f" in {file}" if file else ""
        hint = suggestion_or(
            name,
            names,
            "abele's reference has a page of all rules",
            "for a rule of yours, load its file with --load",
        )
        raise InputError(f"no rule {name}{where}{hint}")
    if len(found) > 1:
        files = " and ".join(dict.fromkeys(bound_rule.source.file for bound_rule, _ in found))
        raise InputError(
            f"rule {name} is in {files}; write which, as in {found[0][0].source.file}:{name}"
        )
    return found[0]


@dataclass
class _Trial:
    """A rule at an operation.

    Attributes:
        own: the set that the rule belongs to.
    """

    bound_rule: BoundRule
    own: RuleSet
    op: Operation
    lines: _Lines

    def tried(self) -> Match | Attempt:
        """The match, or the reason why the rule is not applied."""
        vocabulary = self.own.vocabulary
        try:
            match = match_rule(self.bound_rule, self.op, vocabulary)
        except CallFailed as failure:
            return self._hindered(Obstacle(failure.place, str(failure), 0))
        if match is None:
            found = obstacles(self.bound_rule, self.op, vocabulary)
            return self._hindered(max(found, key=lambda each: each.depth))
        winner = self._before()
        if winner is None:
            return match
        return self._attempt(
            fits=False,
            depth=_WHOLE,
            reason=f"it matches, but {winner.source} is tried first and matches too",
        )

    def _before(self) -> BoundRule | None:
        """The rule that is tried before this one and matches, if any."""
        for other in ordered(self.own.bound):
            if other is self.bound_rule:
                return None
            try:
                if type(self.op) in other.roots and match_rule(other, self.op, self.own.vocabulary):
                    return other
            except CallFailed:
                continue
        return None

    def made(self, match: Match) -> Attempt:
        """What the rule would build."""
        try:
            made = self.bound_rule.make(match)
            if made is not None:
                check_made(self.bound_rule, self.op, made)
        except (InputError, CallFailed) as error:
            return self._attempt(fits=False, depth=_WHOLE, reason=f"it matches, but: {error}")
        # A rule's function may raise any error, which is then the reason.
        except Exception as error:
            reason = (
                f"it matches, but {self.bound_rule.name} raised {type(error).__name__}: {error}"
            )
            return self._attempt(fits=False, depth=_WHOLE, reason=reason)
        if made is None:
            reason = f"the pattern matches, but {self.bound_rule.name} returned None"
            return self._attempt(fits=False, depth=_WHOLE, reason=reason)
        texts = [self.lines.text_of(op) for op in made.ops]
        taken = [self.lines.name_of(v) for v in made.values if not _is_new(v, made.ops)]
        for op in reversed(made.ops):
            op.drop_all_references()
        details = [f"    {text}" for text in texts]
        if taken:
            details.append(f"    {', '.join(taken)} as the replacement")
        if not details:
            return self._attempt(fits=True, depth=_WHOLE, reason="it matches, and erases it")
        return self._attempt(
            fits=True, depth=_WHOLE, reason="it matches", details=("  and builds", *details)
        )

    def _hindered(self, obstacle: Obstacle) -> Attempt:
        return self._attempt(
            fits=False,
            depth=obstacle.depth,
            reason=obstacle.reason,
            details=tuple(_marked(self.bound_rule, obstacle.place)),
        )

    def _attempt(
        self, fits: bool, depth: int, reason: str, details: tuple[str, ...] = ()
    ) -> Attempt:
        return Attempt(place(self.op), self.lines.line_of(self.op), fits, depth, reason, details)


_WHOLE = 1_000_000
"""Deeper than any part of a rule."""


def _is_new(value: SSAValue, ops: Collection[Operation]) -> bool:
    return isinstance(value, OpResult) and value.op in ops


def _marked(bound_rule: BoundRule, at: Place) -> Iterator[str]:
    """The line of a rule, with a caret below the part at a place."""
    yield f"  {at}"
    lines = bound_rule.text.split("\n")
    row = at.line - bound_rule.place.line
    if 0 <= row < len(lines):
        yield f"    {lines[row].replace(chr(9), ' ')}"
        yield f"    {' ' * (at.column - 1)}^{'~' * (at.end - at.column - 1)}"


class _Lines(Printer):
    """The lines and names of operations as the whole module prints them."""

    def __init__(self, wanted: Collection[type[Operation]]) -> None:
        self.whole = StringIO()
        super().__init__(self.whole)
        self.ops: dict[Operation, int] = {}
        self._wanted = wanted

    def print_op(self, op: Operation) -> None:
        if type(op) in self._wanted:
            self.ops[op] = self.whole.tell()
        super().print_op(op)

    def line_of(self, op: Operation) -> str:
        """The first line of an operation."""
        return self._line(self.ops[op])

    def text_of(self, op: Operation) -> str:
        """The first line of an operation that is not in the module."""
        for result in op.results:
            result.name_hint = "new"
        return self._after(lambda: super(_Lines, self).print_op(op))

    def name_of(self, value: SSAValue) -> str:
        """The name of a value."""
        return self._after(lambda: self.print_ssa_value(value))

    def _after(self, say: Callable[[], object]) -> str:
        self.whole.write("\n")
        start = self.whole.tell()
        say()
        return self._line(start)

    def _line(self, start: int) -> str:
        self.whole.seek(start)
        line = self.whole.readline().rstrip("\n")
        self.whole.seek(0, 2)
        return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _lines(module: ModuleOp, wanted: Collection[type[Operation]]) -> _Lines:
    lines = _Lines(wanted)
    lines.print_op(module)
    return lines


def _told(bound_rule: BoundRule, attempts: Sequence[Attempt], module: ModuleOp) -> str:
    heads = bound_rule.variants[0].heads
    if not attempts:
        return f"{bound_rule.source}: no {heads} here{_others(heads, module)}"
    fits = sum(each.fits for each in attempts)
    title = f"{bound_rule.source}: matches {fits} of {len(attempts)} {heads}"
    parts = [title, *map(str, attempts[:SHOWN])]
    if len(attempts) > SHOWN:
        parts.append("\n".join(_counted(attempts[SHOWN:])))
    return "\n\n".join(parts)


def _others(heads: str, module: ModuleOp) -> str:
    """The operations that exist instead of a rule's root: of its dialect, or else any."""
    counts = Counter(op.name for op in module.walk() if op is not module)
    dialect = heads.partition(".")[0]
    same = [f"{n} {name}" for name, n in counts.most_common() if name.partition(".")[0] == dialect]
    some = same or [f"{n} {name}" for name, n in counts.most_common()]
    return f"; there are {', '.join(some[:12])}" if some else ""


def _counted(attempts: Iterable[Attempt]) -> Iterator[str]:
    """The attempts that are not printed in full, counted by reason."""
    reasons = Counter(each.reason.partition(":")[0].partition(" at ")[0] for each in attempts)
    yield f"and {reasons.total()} more:"
    for reason, count in reasons.most_common():
        yield f"{count:>6}  {reason}"
