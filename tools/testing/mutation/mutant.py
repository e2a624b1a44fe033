"""A planted bug, and its name and number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from ....ir.upstream import ModulePass


@dataclass(frozen=True)
class Mutant:
    """A pass with one mistake in it.

    Attributes:
        subject: the name of the pass.
        kind: the class of the mistake.
        number: counts the mutants of one kind in one pass, from 1.
        place: where the mistake is, as file:line.
        before: the original text.
        after: the text with the mistake.
        make: returns the mutated pass. It may change the global registries of a process, so call it
            in a process of its own. It raises InputError if the pass cannot be made with this
            mistake.
        is_in_output: whether the output of the pass shows the mistake. If not, outputs are not
            compared with those of the original pass.
    """

    subject: str
    kind: str
    number: int
    place: str
    before: str
    after: str
    make: Callable[[], ModulePass] = field(repr=False, compare=False)
    is_in_output: bool = True

    @property
    def name(self) -> str:
        """The name of the mutant. It depends only on the source of the pass."""
        return f"{self.subject}/{self.kind}/{self.number}"

    def matches(self, name: str) -> bool:
        """Whether a name is the mutant's class, or its name with or without the pass."""
        return name in (self.kind, self.name, f"{self.kind}/{self.number}")


@dataclass
class Numbers:
    """Numbers mutants by kind.

    Attributes:
        given: the latest number of each kind.
    """

    given: dict[str, int] = field(default_factory=dict[str, int])

    def next(self, kind: str) -> int:
        """The next number of a kind, from 1."""
        self.given[kind] = self.given.get(kind, 0) + 1
        return self.given[kind]


def sample_of(mutants: Sequence[Mutant], limit: int | None, seed: int) -> list[Mutant]:
    """A random sample of at most `limit` mutants in their original order; all if limit is None.

    The classes take turns, so that each gets an equal share.
    """
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
    """The first items of all groups, then the second items, and so on."""
    known = list(groups)
    for turn in range(max(map(len, known), default=0)):
        yield [each[turn] for each in known if turn < len(each)]
