"""Statistics of each pass: operations, rewrites by rule, and the pass's own counters."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.ir import Operation

from ..pass_manager import Instrument
from ..rewriting import Source, Watcher, watched
from ..step import RunningPass
from ..upstream import ModuleOp

_counts: ContextVar[Counter[str] | None] = ContextVar("counts", default=None)


def count(what: str, number: int = 1) -> None:
    """Add to a counter of the pass that is running: count("constants folded").

    Does nothing if no Statistics are being collected.
    """
    counter = _counts.get()
    if counter is not None:
        counter[what] += number


@dataclass(frozen=True)
class PassStatistics:
    """The statistics of one run of a pass.

    Attributes:
        operations_before, operations_after: the numbers of operations in the module by name,
            including nested ones.
        rewrites: by rule or pattern, with its file and line.
        counts: the pass's own counters.
    """

    name: str
    operations_before: Counter[str]
    operations_after: Counter[str]
    rewrites: Counter[str]
    counts: Counter[str]

    def lines(self) -> list[str]:
        """The statistics as text for people."""
        before, after = self.operations_before, self.operations_after
        changed = sorted(name for name in before | after if before[name] != after[name])
        return [
            f"{self.name}: {before.total()} -> {after.total()} operations",
            *(f"  {before[name]} -> {after[name]} {name}" for name in changed),
            *(
                f"  {n} rewrite{'s' * (n != 1)} by {rule}"
                for rule, n in self.rewrites.most_common()
            ),
            *(f"  {number} {what}" for what, number in self.counts.most_common()),
        ]


class Statistics(Instrument):
    """Collect PassStatistics for every pass that succeeds."""

    def __init__(self) -> None:
        self.passes: list[PassStatistics] = []
        self._before: Counter[str] = Counter()
        self._rewrites: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._stack = ExitStack()

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Count the operations, and start counting rewrites."""
        self._before = _operations(module)
        self._rewrites, self._counts = Counter(), Counter()
        self._stack.enter_context(watched(_Tally(self._rewrites)))
        self._stack.callback(_counts.reset, _counts.set(self._counts))

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Stop counting rewrites, and count the operations again."""
        self._stack.close()
        self.passes.append(
            PassStatistics(
                step.current.name,
                self._before,
                _operations(module),
                self._rewrites,
                self._counts,
            )
        )

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        """Stop counting rewrites."""
        self._stack.close()

    def table(self) -> str:
        """All statistics as text for people, a few lines per pass."""
        return "\n".join(line for each in self.passes for line in each.lines())


class _Tally(Watcher):
    def __init__(self, rewrites: Counter[str]) -> None:
        self._rewrites = rewrites

    def begin(self, source: Source, root: Operation) -> None:
        self._rewrites[str(source)] += 1


def _operations(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())
