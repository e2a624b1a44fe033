"""One planted bug."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from ....ir.upstream import ModulePass


@dataclass(frozen=True)
class Mutant:
    """A pass with one mistake in it.

    subject: the pass as a pipeline names it. kind: the class of the mistake. number: from 1, among
    those of its kind in its pass. place: where it is, file:line. before, after: what was written
    there, and what is now. make: gives the pass; it may change what the process has registered, so
    it is called in a process of its own. Raises InputError where nothing can be made of it.
    """

    subject: str
    kind: str
    number: int
    place: str
    before: str
    after: str
    make: Callable[[], ModulePass] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """What it is called: the same for the same source."""
        return f"{self.subject}/{self.kind}/{self.number}"

    def is_called(self, name: str) -> bool:
        """Whether a name is that of its class, or its own, with its pass or without."""
        return name in (self.kind, self.name, f"{self.kind}/{self.number}")


@dataclass
class Numbers:
    """Counts mutants by kind."""

    given: dict[str, int] = field(default_factory=dict[str, int])

    def next(self, kind: str) -> int:
        """The next number of a kind, from 1."""
        self.given[kind] = self.given.get(kind, 0) + 1
        return self.given[kind]


def some(mutants: Sequence[Mutant], limit: int | None, seed: int) -> list[Mutant]:
    """At most so many of them, every class in turn, in the order in which they were given."""
    if limit is None or len(mutants) <= limit:
        return list(mutants)
    random = Random(seed)
    by_kind: dict[str, list[int]] = {}
    for index, each in enumerate(mutants):
        by_kind.setdefault(each.kind, []).append(index)
    for indices in by_kind.values():
        random.shuffle(indices)
    turns = (index for turn in _turns(by_kind.values()) for index in turn)
    chosen = {index for index, _ in zip(turns, range(limit), strict=False)}
    return [each for index, each in enumerate(mutants) if index in chosen]


def _turns(groups: Iterable[list[int]]) -> Iterable[list[int]]:
    known = list(groups)
    for turn in range(max(map(len, known), default=0)):
        yield [each[turn] for each in known if turn < len(each)]
