"""What each pass did, in numbers: operations, rewrites by rule, and what a pass counts itself."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.ir import Operation

from ..pass_manager import Instrument, Step
from ..rewriting import Source, Watcher, watched
from ..upstream import ModuleOp

_counts: ContextVar[Counter[str] | None] = ContextVar("counts", default=None)


def count(what: str, number: int = 1) -> None:
    """Count something in a pass, under a name of its own; nothing happens unless somebody looks.

    count("constants folded")
    """
    counter = _counts.get()
    if counter is not None:
        counter[what] += number


@dataclass(frozen=True)
class PassStatistics:
    """One run of one pass.

    operations_before, operations_after: of the module, by name, nested ones too. rewrites: by the
    rule or pattern, and where it is written. counts: what the pass counted itself.
    """

    name: str
    operations_before: Counter[str]
    operations_after: Counter[str]
    rewrites: Counter[str]
    counts: Counter[str]

    def lines(self) -> list[str]:
        """Text for people."""
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
    """Collect PassStatistics of every pass that succeeds."""

    def __init__(self) -> None:
        self.passes: list[PassStatistics] = []
        self._before: Counter[str] = Counter()
        self._rewrites: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._stack = ExitStack()

    def before(self, step: Step, module: ModuleOp) -> None:
        """Count operations, and listen."""
        self._before = _operations(module)
        self._rewrites, self._counts = Counter(), Counter()
        self._stack.enter_context(watched(_Tally(self._rewrites)))
        self._stack.callback(_counts.reset, _counts.set(self._counts))

    def after(self, step: Step, module: ModuleOp) -> None:
        """Stop listening, and count again."""
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

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Stop listening."""
        self._stack.close()

    def table(self) -> str:
        """Text for people, a few lines a pass."""
        return "\n".join(line for each in self.passes for line in each.lines())


class _Tally(Watcher):
    def __init__(self, rewrites: Counter[str]) -> None:
        self._rewrites = rewrites

    def begin(self, source: Source, root: Operation) -> None:
        self._rewrites[str(source)] += 1


def _operations(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())
