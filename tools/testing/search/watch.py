"""Counts rule applications and guard results while passes run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import Operation

from ....ir.rewriting import Source, Watcher, watched
from ....ir.rules.bound_rule import BoundRule
from ....ir.rules.evaluate import expression_text
from ....ir.rules.match import watched_guards
from ....ir.rules.syntax import Place
from ..generators.rules.reading import guards_of


class Counts(Protocol):
    """The counters.

    Attributes:
        fired: by the rule's name.
        guards: by rule, text and result.
    """

    fired: Counter[str]
    guards: Counter[tuple[str, str, bool]]


@dataclass
class _Watch(Watcher):
    counts: Counts

    def begin(self, source: Source, root: Operation) -> None:
        self.counts.fired[source.name] += 1

    def evaluated(self, rule: BoundRule, failed: Place | None) -> None:
        """Count the results of guards up to the one that failed. Guards before it were true."""
        for guard in guards_of(rule):
            holds = guard.place != failed
            self.counts.guards[rule.name, expression_text(guard), holds] += 1
            if not holds:
                return


@contextmanager
def watching_rules(counts: Counts) -> Generator[None]:
    """A context manager in which rule applications and guard results are counted."""
    watch = _Watch(counts)
    with watched(watch), watched_guards(watch.evaluated):
        yield
