"""The time that each pass took, and the number of operations before and after it."""

from dataclasses import dataclass
from time import perf_counter

from ..pass_manager import Instrument
from ..step import RunningPass
from ..upstream import ModuleOp
from ..xdsl.walk import operations


@dataclass(frozen=True)
class PassTiming:
    """One run of a pass.

    Attributes:
        seconds: wall-clock time.
        operations_before, operations_after: operations in the module, including nested ones.
    """

    name: str
    seconds: float
    operations_before: int
    operations_after: int


class Timing(Instrument):
    """Collect a PassTiming per pass. Put it last, so that it does not time other instruments."""

    def __init__(self) -> None:
        self.passes: list[PassTiming] = []
        self._before = 0
        self._start = 0.0

    @property
    def seconds(self) -> float:
        """The total wall-clock time of all passes."""
        return sum(each.seconds for each in self.passes)

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Count the operations, then start the clock."""
        self._before = _count(module)
        self._start = perf_counter()

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Stop the clock, then count the operations."""
        seconds = perf_counter() - self._start
        timing = PassTiming(step.current.name, seconds, self._before, _count(module))
        self.passes.append(timing)

    def table(self) -> str:
        """The times as text for people: one line per pass, and one for the total."""
        width = max((len(each.name) for each in self.passes), default=0)
        lines = [
            f"{each.name:{width}}  {each.seconds:9.3f} s  "
            f"{each.operations_before:7d} -> {each.operations_after} operations"
            for each in self.passes
        ]
        return "\n".join([*lines, f"{'all':{width}}  {self.seconds:9.3f} s"])


def _count(module: ModuleOp) -> int:
    return len(operations(module))
