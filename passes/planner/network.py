"""Plans for a whole program: every operator in order, all weights and activations in one memory.

Each operator has plans that trade cycles for bytes that stay on a tile for good. One price of
such a byte, found by bisection, chooses among them, so that all fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, Region, SSAValue

from ...backends.target import Target
from ...dialects import control, nn
from ...dialects.abele import Plan, PlanAttr
from ...dialects.dtypes import numpy_dtype
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.errors import InputError
from ...ir.geometry.layout import Layout, linear_layout
from ...ir.provenance import place
from .derive import operand_layouts
from .limits import Limits
from .problem import Choice, Problem, final_layout_of, movement_problem
from .search import best, exact, fastest, search

BISECTIONS = 7
HIGHEST_BYTE_PRICE = 1e3
LOWEST_BYTE_PRICE = 1e-3

BOUNDS = (1.0, 0.5, 0.25, 0.1)
"""Shares of a tile that one operator alone may use, tried in turn until all fit together."""

WORTH_MOVING = 1.01
"""How much slower an operator may get by moving to tiles that hold fewer weights."""


@dataclass(frozen=True)
class Asked:
    """What an operator's plan was searched for: search(problem, have, target, bound) does.

    have: the layout of every operand, None of those that stay where the plan wants them. bound:
    bytes of a tile.
    """

    problem: Problem
    have: tuple[Layout | None, ...]
    bound: int


@dataclass(frozen=True)
class NetworkPlan:
    """The plan of every operation, and what the program then needs.

    cycles: of a run, by the planner's estimate; both branches of an if are counted, and a while
    once. resident_bytes: weights and constants of the tile that has most. live_bytes: values and
    temporaries at the worst moment, if the busiest tiles of all were the same. asked: what each
    plan was searched for.
    """

    plans: dict[Operation, Plan]
    choices: dict[Operation, Choice]
    cycles: float
    resident_bytes: int
    live_bytes: int
    asked: dict[Operation, Asked]

    @property
    def bytes_per_tile(self) -> int:
        """What the fullest tile has to hold."""
        return self.resident_bytes + self.live_bytes


def plan_network(module: ModuleOp, target: Target, limits: Limits | None = None) -> NetworkPlan:
    """Decide every structured operation and movement of a module at nn.

    limits: what is asked of its plans. Plans that operations already carry are kept. Where
    nothing fits the tiles, the plans that need least memory are returned: the allocator says what
    does not fit.
    Raises InputError for a plan that is none of its operation's.
    """
    usable = target.usable_bytes_per_tile
    limits = limits or Limits()
    smallest: NetworkPlan | None = None
    for share in BOUNDS:
        bound = int(usable * share)
        found = _planned(module, target, limits, bound, 0.0)
        if found.bytes_per_tile <= usable:
            return found
        cheap = _planned(module, target, limits, bound, HIGHEST_BYTE_PRICE)
        if cheap.bytes_per_tile <= usable:
            return _cheapest_that_fits(module, target, limits, bound, cheap)
        smallest = min((smallest or cheap, found, cheap), key=lambda p: p.bytes_per_tile)
    assert smallest is not None
    return smallest


def _cheapest_that_fits(
    module: ModuleOp, target: Target, limits: Limits, bound: int, fitting: NetworkPlan
) -> NetworkPlan:
    """Bisect the price of a resident byte between one that is too low and one that fits."""
    low, high = np.log(LOWEST_BYTE_PRICE), np.log(HIGHEST_BYTE_PRICE)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        tried = _planned(module, target, limits, bound, float(np.exp(middle)))
        if tried.bytes_per_tile <= target.usable_bytes_per_tile:
            high = middle
            fitting = min(fitting, tried, key=lambda p: p.cycles)
        else:
            low = middle
    return fitting


def _planned(
    module: ModuleOp, target: Target, limits: Limits, bound: int, byte_price: float
) -> NetworkPlan:
    walk = _Walk(module, target, limits, bound, byte_price)
    return walk.run()


@dataclass
class _Walk:
    """One pass over the program, in order, at one price of a resident byte.

    layouts: of every value that has one. homes: of states (by name) and constants (by value),
    once a compute has placed them. unplaced: values that are a state's or constant's elements
    as they are, by what they are of. times: how often the operation at hand runs.
    """

    module: ModuleOp
    target: Target
    limits: Limits
    bound: int
    byte_price: float
    layouts: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])
    homes: dict[object, Layout] = field(default_factory=dict[object, Layout])
    kept: dict[SSAValue, object] = field(default_factory=dict[SSAValue, object])
    alias: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    plans: dict[Operation, Plan] = field(default_factory=dict[Operation, Plan])
    choices: dict[Operation, Choice] = field(default_factory=dict[Operation, Choice])
    asked: dict[Operation, Asked] = field(default_factory=dict[Operation, Asked])
    functions: dict[str, func.FuncOp] = field(default_factory=dict[str, func.FuncOp])
    peaks: dict[str, int] = field(default_factory=dict[str, int])
    cycles: float = 0.0
    times: int = 1
    resident: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def run(self) -> NetworkPlan:
        """Plan everything."""
        self.resident = np.zeros(self.target.tiles, np.int64)
        for op in self.module.body.block.ops:
            if isinstance(op, func.FuncOp):
                self.functions[op.sym_name.data] = op
        for name in self.functions:
            self._function(name)
        self._place_the_rest()
        return NetworkPlan(
            self.plans,
            self.choices,
            self.cycles,
            int(self.resident.max(initial=0)),
            max(self.peaks.values(), default=0),
            self.asked,
        )

    def _place_the_rest(self) -> None:
        """States and constants that no compute placed lie in linear order."""
        for value, key in self.kept.items():
            if key not in self.homes:
                self.homes[key] = self._linear(value)
                self._reside(self.homes[key], _dtype(value))

    def _reside(self, layout: Layout, dtype: np.dtype[Any]) -> None:
        here = slice(layout.first_tile, layout.first_tile + layout.cells)
        self.resident[here] += layout.block_elements * dtype.itemsize

    # Values

    def _linear(self, value: SSAValue) -> Layout:
        return linear_layout(_shape(value), _dtype(value).itemsize, self.target.tiles)

    def _unplaced(self, value: SSAValue) -> bool:
        """True for a state's or constant's elements that no compute has placed yet."""
        return value in self.kept and self.kept[value] not in self.homes

    def _layout(self, value: SSAValue) -> Layout:
        """Where a value lies; a state that nobody placed yet counts as in linear order."""
        if value in self.kept:
            home = self.homes.get(self.kept[value])
            return home if home is not None and home.is_partition else self._linear(value)
        return self.layouts.get(value) or self._linear(value)

    def _bytes(self, value: SSAValue) -> int:
        """Bytes of a value on the tile that has most; 0 for what stays for good."""
        if value in self.kept:
            return 0
        return self._layout(value).block_elements * _dtype(value).itemsize

    # Blocks

    def _function(self, name: str) -> int:
        """Plan a function, once; returns the bytes that it needs at its worst moment."""
        if name not in self.peaks:
            # Were it to call itself, that call would count for nothing.
            self.peaks[name] = 0
            body = self.functions[name].body
            self.peaks[name] = self._region(body) if body.blocks else 0
        return self.peaks[name]

    def _region(self, region: Region) -> int:
        """Plan the operations of a region; returns the bytes of its own values at the worst
        moment, temporaries included."""
        block = region.block
        ops = list(block.ops)
        position = {op: i for i, op in enumerate(ops)}
        live: dict[SSAValue, int] = {}
        ends: dict[int, list[SSAValue]] = {}
        for argument in block.args:
            self._begin(argument, -1, position, live, ends)
        worst = sum(live.values())
        for i, op in enumerate(ops):
            # An operation's own bytes hold its results.
            own = self._operation(op)
            worst = max(worst, sum(live.values()) + own)
            for result in op.results:
                self._begin(result, i, position, live, ends)
            worst = max(worst, sum(live.values()))
            for value in ends.pop(i, []):
                live.pop(value, None)
        return worst

    def _begin(
        self,
        value: SSAValue,
        at: int,
        position: dict[Operation, int],
        live: dict[SSAValue, int],
        ends: dict[int, list[SSAValue]],
    ) -> None:
        """Count a value as live from here to its last use in this block."""
        if value in self.alias or not isinstance(value.type, TensorType):
            return
        live[value] = self._bytes(value)
        ends.setdefault(max(at, _last_use(value, position)), []).append(value)

    # Operations

    def _operation(self, op: Operation) -> int:
        """Plan one operation; returns the bytes that it needs beside the values that are live."""
        if isinstance(op, Structured | Movement):
            return self._decide(op)
        if isinstance(op, Reinterpretation):
            self._same(op.operands[0], op.results[0])
            self.alias[op.results[0]] = op.operands[0]
            return 0
        match op:
            case nn.LoadOp():
                self.kept[op.result] = op.state.string_value()
                return 0
            case nn.ConstantOp():
                self.kept[op.result] = op.result
                return 0
            case control.RepeatOp():
                return self._loop(op, (op.body,), op.turns)
            case control.WhileOp():
                return self._loop(op, (op.test, op.body), 1)
            case control.IfOp():
                return self._branches(op)
            case func.CallOp():
                name = op.callee.string_value()
                return self._function(name) if name in self.functions else 0
            case _:
                return 0

    def _same(self, old: SSAValue, new: SSAValue) -> None:
        """The new value lies where the old one does."""
        if old in self.kept:
            self.kept[new] = self.kept[old]
        else:
            self.layouts[new] = self._layout(old)

    def _loop(
        self, op: control.RepeatOp | control.WhileOp, regions: Sequence[Region], turns: int
    ) -> int:
        layouts = [self._layout(value) for value in op.initial]
        for region in regions:
            self.layouts.update(zip(region.block.args, layouts, strict=True))
        outer, self.times = self.times, self.times * max(turns, 1)
        worst = max(self._region(region) for region in regions)
        self.times = outer
        self.layouts.update(zip(op.outputs, layouts, strict=True))
        return worst

    def _branches(self, op: control.IfOp) -> int:
        worst = max(self._region(region) for region in (op.then, op.otherwise))
        last = op.then.block.last_op
        assert last is not None
        for result, value in zip(op.outputs, last.operands, strict=True):
            self.layouts[result] = self._layout(value)
        return worst

    def _decide(self, op: Operation) -> int:
        """Choose the plan of an operator; returns its temporaries, its result among them."""
        problem = self._problem(op)
        result = op.results[0]
        given = op.attributes.get("plan")
        if 0 in problem.structure.space.sizes or 0 in _shape(result):
            plan = given.data if isinstance(given, PlanAttr) else _uncut(problem)
            self.plans[op] = plan
            self.layouts[result] = self._linear(result)
            return 0
        have = tuple(
            None if stays else self._layout(value)
            for stays, value in zip(problem.resident, op.operands, strict=True)
        )
        if isinstance(given, PlanAttr):
            choice = self._given(op, problem, given.data, have)
        else:
            price = self.byte_price / self.times
            choice = self._searched(problem, have, price)
            choice = self._balanced(problem, choice, have, price)
        self.plans[op] = choice.plan
        self.choices[op] = choice
        self.asked[op] = Asked(problem, have, self.bound)
        self.cycles += choice.cycles * self.times
        self.layouts[result] = final_layout_of(problem, choice.plan)
        if any(problem.resident):
            wanted = operand_layouts(problem.structure, choice.plan)
            for value, layout, stays in zip(op.operands, wanted, problem.resident, strict=True):
                if stays and self._unplaced(value):
                    self.homes[self.kept[value]] = layout
                    self._reside(layout, _dtype(value))
        return choice.temporary_bytes

    def _searched(self, problem: Problem, have: tuple[Layout | None, ...], price: float) -> Choice:
        if price == 0:
            return fastest(problem, have, self.target, self.bound)
        return best(search(problem, have, self.target, self.bound), price)

    def _problem(self, op: Operation) -> Problem:
        dtypes = tuple(_dtype(value) for value in op.operands)
        terms = self.limits.terms_of(op, self.target)
        if isinstance(op, Movement):
            return movement_problem(op.moves(), _dtype(op.results[0]), terms=terms)
        assert isinstance(op, Structured)
        resident = tuple(self._unplaced(value) for value in op.operands)
        return Problem(op.structure(), dtypes, _dtype(op.results[0]), resident, terms=terms)

    def _given(
        self, op: Operation, problem: Problem, plan: Plan, have: tuple[Layout | None, ...]
    ) -> Choice:
        """The price of a plan that the operation came with; only how it combines is added."""
        last = plan.first_tile + int(np.prod(plan.split, dtype=np.int64))
        try:
            if last > self.target.tiles:
                raise ValueError(f"needs tiles up to {last - 1}; there are {self.target.tiles}")
            choice = exact(problem, plan, have, self.target, self.bound)
        except ValueError as error:
            raise InputError(f"{op.name} at {place(op)}: plan: {error}") from None
        return replace(choice, plan=replace(plan, combine=choice.plan.combine))

    def _balanced(
        self, problem: Problem, choice: Choice, have: tuple[Layout | None, ...], price: float
    ) -> Choice:
        """The choice, moved to the tiles that hold the fewest weights so far if that is cheap."""
        cells, plan = choice.cells, choice.plan
        if not choice.resident_bytes or cells == self.target.tiles:
            return choice
        fullest = sliding_window_view(self.resident, cells).max(axis=1)
        first = int(np.argmin(fullest))
        gain = int(fullest[plan.first_tile] - fullest[first])
        if gain == 0:
            return choice
        moved = exact(
            problem,
            replace(plan, first_tile=first, combine=None),
            have,
            self.target,
            self.bound,
        )
        cheap = moved.cycles <= WORTH_MOVING * choice.cycles + price * gain
        return moved if cheap else choice


def _uncut(problem: Problem) -> Plan:
    return Plan((1,) * len(problem.structure.space.dims))


def _dtype(value: SSAValue) -> np.dtype[Any]:
    return numpy_dtype(nn.element_of(value))


def _shape(value: SSAValue) -> tuple[int, ...]:
    return nn.shape_of(value)


def _last_use(value: SSAValue, position: dict[Operation, int]) -> int:
    """The position in a block of the last operation that uses a value, perhaps in a region or
    reshaped; -1 if none does."""
    last = -1
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op not in position:
            op = op.parent_op()
        if op is None:
            continue
        last = max(last, position[op])
        if isinstance(use.operation, Reinterpretation):
            last = max(last, _last_use(use.operation.results[0], position))
    return last
