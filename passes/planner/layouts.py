"""Chooses all plans together, because the layout of a result decides the cost of its readers.

This is dynamic programming in program order. A state is the choices so far and the layouts of the
values that are still to be read. Of two states with the same layouts, the cheaper one is kept.
States that cannot win any more are dropped: a layout saves the readers of a value at most the
cycles of moving one block of it. Of the remaining states, a fixed number is kept.

If all states were kept, the result would be the fastest among the plans that are tried for every
layout of the operands. Readers try only the plans that look best for the layouts that they are
given, so a plan that is never tried from the kept states may be missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ...backends.prices import cost
from ...backends.target import Target
from ...dialects.abele import Plan
from ...dialects.variable import bytes_per_tile
from ...ir.geometry.layout import Layout, linear_layout
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ..plans.derive import check_ranks, home_of_free, operand_layouts
from ..plans.fused import operator_name
from .arrival import relayout_cycles
from .choice import Choice
from .graph import Operator, PlanningGraph, Relayout
from .keeping import at_home, brought_from_home, kept
from .problem import Problem, final_layouts_of
from .question import Question
from .serial import plans, priced

STATES = 3
"""The number of states that are kept after every operator.

Chosen by trial, roomy and tight. With 1, up to 0.35 % more cycles and 24 % less planning time; with
2, up to 0.02 % more and 20 % less time. With 6, no fewer cycles: 0.10 % more in one network, whose
operators are offered other plans.
"""

WORTH_MOVING = 1.01
"""The factor by which an operator may become slower by moving to tiles that hold fewer weights: 1
%.

Chosen by trial, roomy and tight: 0.5 % and 2 % give the same.
"""


@dataclass(frozen=True, eq=False)
class Option:
    """A plan of an operator with the layouts that it decides.

    Attributes:
        layouts: by slot, the layouts of its result and of the values that it places, as sources for
            other operators.
        homes: by slot, the layouts in which the states and constants that it places are stored.
    """

    choice: Choice
    layouts: dict[int, Layout]
    homes: dict[int, Layout]


@dataclass(frozen=True, eq=False)
class Decided:
    """The choice for every operator.

    Attributes:
        have: the layouts of each operator's operands.
        cycles: of a run.
        resident: bytes on each tile.
    """

    options: dict[Operator, Option]
    have: dict[Operator, tuple[Layout | None, ...]]
    cycles: float
    resident: NDArray[np.int64]

    @cached_property
    def homes(self) -> dict[int, Layout]:
        """The layouts in which states and constants are stored, by slot."""
        return {s: layout for o in self.options.values() for s, layout in o.homes.items()}

    @cached_property
    def layouts(self) -> dict[int, Layout]:
        """The layout of every decided slot."""
        return {s: layout for o in self.options.values() for s, layout in o.layouts.items()}


@dataclass(frozen=True, eq=False)
class _State:
    """The choices so far.

    Attributes:
        price: their cycles plus the price of their resident bytes.
        layouts: of the decided slots that are still to be read, where states differ.
        resident: bytes on each tile.
        last: the state before the last operator, that operator, its option and the layouts of its
            operands.
    """

    price: float
    cycles: float
    layouts: dict[int, Layout]
    resident: NDArray[np.int64]
    last: tuple[_State, Operator, Option, tuple[Layout | None, ...]] | None = None


@dataclass
class Chooser:
    """Chooses the plans of a program at one price of a resident byte, in cycles.

    Attributes:
        bound: bytes of a tile that one operator may take.
        resident: bytes on each tile of tensors that no operator places.
        chosen: plans that are tried in any case.
        room: temporary bytes that operators may take.
        states: the number of states kept after every operator.
        moves: whether an operator that keeps weights may move to emptier tiles.
        in_time: whether plans of several steps are searched where no plan of one step fits.
        read_last: by node, the slots that no later node reads or writes.
        agreed: the layouts of the decided slots that are still to be read, where all states agree.
            Most slots wait through many nodes, so a node does not look at these.
    """

    graph: PlanningGraph
    target: Target
    bound: int
    byte_price: float
    resident: NDArray[np.int64]
    chosen: Mapping[Operator, Plan] = field(default_factory=dict[Operator, Plan])
    room: Mapping[Operator, int] = field(default_factory=dict[Operator, int])
    states: int = STATES
    moves: bool = True
    in_time: bool = True
    uses: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    read_last: dict[int, list[int]] = field(init=False)
    agreed: dict[int, Layout] = field(init=False)

    def __post_init__(self) -> None:
        self.uses = self.graph.uses()
        self.agreed, self.read_last = {}, {}
        for slot, nodes in self.uses.items():
            self.read_last.setdefault(nodes[-1], []).append(slot)

    def one_by_one(self) -> Decided:
        """The best plan of each operator alone, given the layouts of its operands."""
        return self._run(1, 1)

    def as_chosen(self) -> Decided:
        """The plans that are already chosen."""
        return self._run(1, 0)

    def together(self) -> Decided:
        """The plans that are best together, among those that are tried."""
        return self._run(self.states, self.states)

    def _run(self, most_states: int, most_options: int) -> Decided:
        self.agreed = {}
        states = [_State(0.0, 0.0, {}, self.resident)]
        for i, node in enumerate(self.graph.nodes):
            if isinstance(node, Relayout):
                states = [self._moved(state, node) for state in states]
            else:
                states = [
                    after for state in states for after in self._decided(state, node, most_options)
                ]
            states = self._kept(states, i, most_states)
        return _decided(min(states, key=lambda s: s.price))

    # One node

    def _layout(self, state: _State, slot: int) -> Layout:
        return self.graph.fixed.get(slot) or state.layouts.get(slot) or self.agreed[slot]

    def _moved(self, state: _State, node: Relayout) -> _State:
        source, wanted = (
            self.graph.on_machine(slot, self._layout(state, slot))
            for slot in (node.source, node.destination)
        )
        cycles = node.times * relayout_cycles(source, wanted, node.dtype.itemsize, self.target)
        return replace(state, price=state.price + cycles, cycles=state.cycles + cycles)

    def _decided(self, state: _State, node: Operator, most: int) -> list[_State]:
        have = tuple(
            None if s is None else self.graph.seen(s, self._layout(state, s), node.part)
            for s in node.operands
        )
        found: list[_State] = []
        choices = self.choices(node, have)[:most] if most else [self._chosen(node, have)]
        for choice in choices:
            option = self._balanced(node, self.option(node, choice, have), have, state.resident)
            choice = option.choice
            resident = state.resident
            if option.homes:
                resident = resident.copy()
                for slot, home in option.homes.items():
                    add_bytes(resident, node.part.moved(home), self.graph.itemsizes[slot])
            cycles = choice.cycles * node.times
            found.append(
                _State(
                    state.price + cycles + self.byte_price * choice.resident_bytes,
                    state.cycles + cycles,
                    {**state.layouts, **option.layouts},
                    resident,
                    (state, node, option, have),
                )
            )
        return found

    def _question(self, node: Operator, have: tuple[Layout | None, ...]) -> Question:
        return Question(node.problem, have, node.part.target, self.bound)

    def choices(self, node: Operator, have: tuple[Layout | None, ...]) -> Sequence[Choice]:
        """The plans to choose from, the best for the operator by itself first."""
        if node.given is not None:
            return [self._given(node, node.given, have)]
        question = self._question(node, have)
        tried = plans(question, in_time=self.in_time)
        if node.pins:
            tried = (*tried, *kept(question, node.pins))
            tried = tuple(self.priced(node, c.plan, have) for c in tried)
        if node in self.chosen:
            tried = (*tried, self._chosen(node, have))
        price = self.byte_price / node.times
        return sorted(self._allowed(node, tried), key=lambda c: c.cycles + price * c.resident_bytes)

    def _allowed(self, node: Operator, choices: Sequence[Choice]) -> Sequence[Choice]:
        """The choices that keep their memory limit and leave shared operands in layouts that others
        can read.

        All choices if none does.
        """
        choices = [c for c in choices if can_be_shared(node, c.plan)] or choices
        room = self.room.get(node)
        within = [c for c in choices if room is None or c.temporary_bytes <= room]
        return within or choices

    def _chosen(self, node: Operator, have: tuple[Layout | None, ...]) -> Choice:
        if node.given is not None:
            return self._given(node, node.given, have)
        return self.priced(node, self.chosen[node], have)

    def priced(self, node: Operator, plan: Plan, have: tuple[Layout | None, ...]) -> Choice:
        """A plan of an operator with its price, including the cost of weights that are not at
        home."""
        question = self._question(node, have)
        if not node.pins:
            return priced(question, plan)
        return at_home(question, node.pins, node.times, plan)

    def option(self, node: Operator, choice: Choice, have: tuple[Layout | None, ...]) -> Option:
        """A choice with the layouts that it decides.

        Args:
            have: the layouts of its operands.
        """
        made, wanted = _left(node.problem, choice.plan)
        layouts = dict(zip(node.results, made, strict=True))
        homes: dict[int, Layout] = {}
        target, dtypes = node.part.target, node.problem.operand_dtypes
        tiles, chips = target.tiles, target.chips
        brought: dict[int, Layout] = {}
        if node.pins:
            question = self._question(node, have)
            brought = brought_from_home(question, node.pins, node.times, choice.plan)
        for k, slot in node.homes.items():
            home = homes[slot] = layouts[slot] = brought.get(k) or wanted[k]
            if not home.is_partition:
                layouts[slot] = linear_layout(home.shape, dtypes[k].itemsize, tiles, chips=chips)
        for k, slot in node.inputs.items():
            layouts[slot] = home_of_free(wanted[k], dtypes[k].itemsize, tiles, chips)
        return Option(choice, layouts, homes)

    def _given(self, node: Operator, plan: Plan, have: tuple[Layout | None, ...]) -> Choice:
        """The plan that the module has for an operation, completed, with its price."""
        last, tiles = plan.tiles.end, node.part.target.tiles
        try:
            check_ranks(node.problem.structure, plan)
            if last > tiles:
                raise ValueError(f"needs tiles up to {last - 1}; there are {tiles}")
            return self.priced(node, plan, have)
        except ValueError as error:
            raise InputError(
                f"{operator_name(node.op)} at {place(node.op)}: plan: {error}"
            ) from None

    def _balanced(
        self,
        node: Operator,
        option: Option,
        have: tuple[Layout | None, ...],
        resident: NDArray[np.int64],
    ) -> Option:
        """The option, moved to the tiles that hold the fewest weights so far, if that is cheap.

        A plan of several chips stays on these chips.
        """
        choice, plan = option.choice, option.choice.plan
        tiles, every = plan.tiles, node.part.target.tiles_per_chip
        fixed = node.given is not None or not self.moves
        if fixed or not choice.resident_bytes or tiles.on_a_chip >= every:
            return option
        on_chips = resident.reshape(self.target.chips, -1)[node.part.chips, :every]
        chip, at = divmod(plan.first_tile, every)
        lowest, chips = (chip, prod(plan.across)) if plan.across else (0, 1)
        if chips > 1:
            on_chips = on_chips[chip : chip + chips].max(axis=0, keepdims=True)
        fullest = _windows_max(on_chips, tiles.on_a_chip)
        now = fullest[chip - lowest, at] if at < fullest.shape[1] else on_chips.max()
        best, first = divmod(int(np.argmin(fullest)), fullest.shape[1])
        gain = int(now - fullest[best, first])
        if gain == 0:
            return option
        first += (lowest + best) * every
        elsewhere = replace(plan, first_tile=first, combine=None)
        moved = self.priced(node, elsewhere, have)
        price = self.byte_price / node.times
        cheap = moved.cycles <= WORTH_MOVING * choice.cycles + price * gain
        return self.option(node, moved, have) if cheap else option

    # Which states are kept

    def _kept(self, states: Sequence[_State], node: int, most: int) -> list[_State]:
        """The states that may still win after a node, the cheapest first, at most `most`."""
        found: dict[tuple[tuple[int, Layout], ...], _State] = {}
        best: _State | None = None
        for state in sorted(states, key=lambda s: s.price):
            layouts = {k: v for k, v in state.layouts.items() if self._is_read(k, node)}
            state = replace(state, layouts=layouts)
            best = best or state
            if state.price - best.price > self._reach(state, best, node):
                continue
            found.setdefault(tuple(layouts.items()), state)
            if len(found) == most:
                break
        kept = list(found.values())
        self._agree(kept, node)
        return kept

    def _agree(self, states: Sequence[_State], node: int) -> None:
        """Move the layouts in which all states agree from the states to `agreed`, and forget those
        of slots that no node after this one reads."""
        for slot in self.read_last.get(node, ()):
            self.agreed.pop(slot, None)
        first, *others = states
        for slot, layout in [*first.layouts.items()]:
            if all(layout == other.layouts[slot] for other in others):
                self.agreed[slot] = layout
                for state in states:
                    del state.layouts[slot]

    def _is_read(self, slot: int, node: int) -> bool:
        """Whether a node after this one reads or writes a slot."""
        uses = self.uses.get(slot)
        return bool(uses) and uses[-1] > node

    def _reach(self, state: _State, best: _State, node: int) -> float:
        """An upper bound of the cycles that a state's layouts can save compared with the best
        state.

        Bytes that a reader does not receive are on its tile already. Bytes that it does not copy
        within its tile are there under the best state. No tile sends more than it holds, and a
        fragment has at least one element.
        """
        reach = 0.0
        for slot, layout in state.layouts.items():
            other = best.layouts[slot]
            if layout is other or layout == other:
                continue
            size = self.graph.itemsizes[slot]
            mine, its = layout.block_elements * size, other.block_elements * size
            most = max(layout.block_elements, other.block_elements)
            control = int(cost.control_cycles(most, most, most, self.target))
            each = cost.least_exchange_cycles_of_one(max(mine, its), 0, self.target, control)
            each = each + cost.copy_cycles(its, self.target) + cost.sync_cycles(self.target)
            reach += float(each) * sum(self._times(u) for u in self.uses[slot] if u > node)
        return reach

    def _times(self, node: int) -> int:
        return self.graph.nodes[node].times


@lru_cache(maxsize=8192)
def _left(problem: Problem, plan: Plan) -> tuple[tuple[Layout, ...], tuple[Layout, ...]]:
    """The layouts of an operator's results, and the layouts in which it wants its operands.

    The second tuple is empty if it places no operand.
    """
    decides = any(problem.resident) or any(problem.free)
    wanted = operand_layouts(problem.structure, plan) if decides else ()
    return final_layouts_of(problem, plan), wanted


def can_be_shared(node: Operator, plan: Plan) -> bool:
    """Whether a plan leaves operands with other readers in layouts from which these can copy."""
    return not node.shared or all(_left(node.problem, plan)[1][k].is_partition for k in node.shared)


def add_bytes(resident: NDArray[np.int64], layout: Layout, itemsize: int) -> None:
    """Add the block of a layout to the bytes on each of its tiles."""
    resident[layout.tiles.rows] += bytes_per_tile(layout, itemsize)


def _windows_max(values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The largest value of each window of this size along the last axis: (..., windows)."""
    # Each round widens the known windows, at most to double their size.
    found, covered = values, 1
    while covered < size:
        step = min(covered, size - covered)
        found, covered = np.maximum(found[..., :-step], found[..., step:]), covered + step
    return found


def _decided(state: _State) -> Decided:
    options: dict[Operator, Option] = {}
    have: dict[Operator, tuple[Layout | None, ...]] = {}
    cycles, resident = state.cycles, state.resident
    last = state.last
    while last is not None:
        before, node, options[node], have[node] = last
        last = before.last
    return Decided(dict(reversed(options.items())), dict(reversed(have.items())), cycles, resident)
