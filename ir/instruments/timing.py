"""How long each pass took, and how many operations it left."""

from dataclasses import dataclass
from time import perf_counter

from ..pass_manager import Instrument, Step
from ..upstream import ModuleOp
from ..xdsl.walk import operations


@dataclass(frozen=True)
class PassTiming:
    """One run of one pass. seconds: wall clock. operations: of the module, nested ones too."""

    name: str
    seconds: float
    operations_before: int
    operations_after: int


class Timing(Instrument):
    """Collect a PassTiming a pass; last among the instruments, it times nothing but the passes."""

    def __init__(self) -> None:
        self.passes: list[PassTiming] = []
        self._before = 0
        self._start = 0.0

    @property
    def seconds(self) -> float:
        """Wall-clock time of all passes together."""
        return sum(each.seconds for each in self.passes)

    def before(self, step: Step, module: ModuleOp) -> None:
        """Count, then start the clock."""
        self._before = _count(module)
        self._start = perf_counter()

    def after(self, step: Step, module: ModuleOp) -> None:
        """Stop the clock, then count."""
        seconds = perf_counter() - self._start
        timing = PassTiming(step.current.name, seconds, self._before, _count(module))
        self.passes.append(timing)

    def table(self) -> str:
        """Text for people, one line a pass and one for the sum."""
        width = max((len(each.name) for each in self.passes), default=0)
        lines = [
            f"{each.name:{width}}  {each.seconds:9.3f} s  "
            f"{each.operations_before:7d} -> {each.operations_after} operations"
            for each in self.passes
        ]
        return "\n".join([*lines, f"{'all':{width}}  {self.seconds:9.3f} s"])


def _count(module: ModuleOp) -> int:
    return len(operations(module))
