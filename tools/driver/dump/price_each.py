"""Price the program after each pass, as if the pipeline continued from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import process_time

from xdsl.dialects.builtin import StringAttr

from ....backends.memory import memory_report
from ....backends.prices.price import price, totals
from ....backends.prices.price_operations import OperationPrice, Priced, price_operations
from ....backends.target import Target, named_target
from ....dialects.levels import level_of
from ....ir.pass_manager import Instrument, PassManager, parse_pipeline
from ....ir.step import RunningPass
from ....ir.text import print_module
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....passes.pipelines import PASSES, levels_below, passes_down, with_target
from ....passes.plans.planned import TARGET
from ..extensions.loaded import Extensions

NEEDED = (
    "decompose",
    "fold-constants",
    "eliminate-dead",
    "plan-splits",
    "convert-nn-to-partition",
    "convert-partition-to-tile",
    "schedule-supersteps",
    "allocate",
    "group-supersteps",
    "convert-tile-to-exchange",
)
"""The passes that a program needs, or that keep it from computing constants in every run. All
others only improve it."""

DECIDES = "plan-splits"
"""The first slow pass. Programs that are equal before it have one price."""

SHARE, LEAST_SECONDS = 0.8, 1.0
"""Limits on the time for prices: a share of the time of the passes, and at least some seconds."""

TOO_LONG = "not priced: that would take too long beside the compilation"


@dataclass(frozen=True)
class Figures:
    """The cost of a program.

    Attributes:
        bytes_per_tile: of the fullest tile.
        cycles: of one run.
    """

    supersteps: int
    bytes_per_tile: int
    cycles: int


@dataclass
class _Point:
    """A point in the pipeline.

    Attributes:
        module: None if its price is that of the next point.
    """

    module: ModuleOp | None
    rest: tuple[ModulePass, ...] = ()


@dataclass
class PriceEach(Instrument):
    """Prices the input and the program after every pass, as if the pipeline continued from there.

    From each point on, a copy runs only through the passes that a program needs. So these passes
    change no price, and the effect of every other pass shows. Copies are priced at the end, the
    last one first, while that takes no more than a share of the time of the passes.

    Attributes:
        target: for programs that name none.
        extensions: with the levels that the pipeline goes through.
    """

    target: Target
    extensions: Extensions = field(default_factory=Extensions)
    _points: list[_Point] = field(default_factory=list[_Point])
    _context: Context | None = None
    _known: dict[str, Figures] = field(default_factory=dict[str, Figures])

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Copy the input once."""
        if step.index == 0:
            self._points = []
            self._known = {}
            self._context = step.context
            self._copy(step.pipeline, 0, module)

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Copy the program after the pass."""
        self._copy(step.pipeline, step.index + 1, module)

    def _copy(self, pipeline: tuple[ModulePass, ...], index: int, module: ModuleOp) -> None:
        rest = tuple(self._rest(pipeline, index, module))
        same = index < len(pipeline) and rest[:1] == pipeline[index : index + 1]
        self._points.append(_Point(None if same else module.clone(), rest))

    def _rest(
        self, pipeline: tuple[ModulePass, ...], index: int, module: ModuleOp
    ) -> Iterator[ModulePass]:
        """The passes still needed, with the pipeline's options or else the default ones."""
        levels = self.extensions.levels
        done = {each.name for each in pipeline[:index]}
        down = passes_down(levels)
        for level in levels_below(level_of(module), levels):
            for spec in down[level]:
                name = spec.partition("{")[0]
                if name in done or (name in PASSES and name not in NEEDED):
                    continue
                planned = next((each for each in pipeline[index:] if each.name == name), None)
                yield planned or self._usual(spec)

    def _usual(self, spec: str) -> ModulePass:
        (named,) = with_target([spec], self.target.spelling())
        (found,) = parse_pipeline(named, self.extensions.passes)
        return found

    def figures(self, changed: Sequence[bool], seconds: float) -> list[Figures | str]:
        """The figures of the input and after each pass, or why there are none.

        Args:
            changed: whether each point has a different program from the one before.
            seconds: the time of the passes.
        """
        limit = process_time() + max(SHARE * seconds, LEAST_SECONDS)
        found: list[Figures | str] = []
        # A pass that changed nothing leaves the price as it was.
        same = [*(not each for each in changed[1:]), False]
        for point, is_next in zip(reversed(self._points), reversed(same), strict=True):
            if found and (point.module is None or is_next):
                found.append(found[-1])
            elif point.module is None or process_time() > limit:
                found.append(TOO_LONG)
            else:
                found.append(self._priced(point.module, point.rest))
        return found[::-1]

    def _priced(self, module: ModuleOp, rest: Sequence[ModulePass]) -> Figures | str:
        assert self._context is not None
        first = next((i for i, each in enumerate(rest) if each.name == DECIDES), 0)
        try:
            PassManager(tuple(rest[:first])).run(self._context, module)
            text = print_module(module, locations=False)
            if text not in self._known:
                PassManager(tuple(rest[first:])).run(self._context, module)
                self._known[text] = self._cost(module)
        except Exception as error:  # from any pass: what cannot be built has no price
            return f"cannot be built from here: {error}"
        return self._known[text]

    def operations(self, module: ModuleOp) -> dict[Priced, OperationPrice]:
        """The prices of the operations of a finished program; {} if it has no price."""
        try:
            return price_operations(module, self._target_of(module))
        except Exception:  # a user's pass may leave anything; the page shows what there is
            return {}

    def _target_of(self, module: ModuleOp) -> Target:
        own = module.attributes.get(TARGET)
        return named_target(own.data) if isinstance(own, StringAttr) else self.target

    def _cost(self, module: ModuleOp) -> Figures:
        target = self._target_of(module)
        costs, memory = totals(price(module, target)), memory_report(module, target)
        return Figures(costs.supersteps, memory.max_tile_bytes, costs.cycles)
