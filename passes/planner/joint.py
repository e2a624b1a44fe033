"""Joint plans: plans of all operators that share a weight.

In a step of training, the forward operator places the weight. The backward operator reads it, and
its update writes it back. Planned separately, each would choose another layout, and the weight
would be rearranged between them. Here, the few best plans of the operator that places the weight
are tried together with plans of all others that keep the weight, its gradient and the optimiser's
states in the weight's layout.

A weight that no run changes may have several readers, too: a lookup in a table of embeddings, and
the product with this table that makes logits. The first reader places the weight, but a later
reader may need it more. So plans of the first reader that place the weight in the layouts of the
others' best plans are tried, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from ...backends.target import Target
from ...dialects.abele import Plan
from ...ir.geometry.layout import Layout, placement
from ...ir.upstream import IntDisjointSet
from ..plans.derive import compute_layouts
from ..plans.steps import takes_steps
from .arrival import relayout_cycles
from .candidates import inherited, leaving
from .choice import Choice
from .graph import Operator, PlanningGraph, Relayout
from .keeping import keeping, kept
from .layouts import Chooser, Decided
from .problem import final_layouts_of
from .question import Question
from .search import by_promise
from .serial import priced

TRIED = 24
"""The number of layouts of a weight that are tried: those of the fastest plans of its first
reader."""

WISHES = 4
"""The number of layouts of a weight that are tried for each later reader: the layouts that the
reader wants most, among those that the first reader can give the weight.

Chosen by judgement, not measured: the best one by itself is nearly always the best one for all.
"""

SMALLEST = 1 << 16
"""Bytes of the smallest weight that is worth the search."""


@dataclass(frozen=True, eq=False)
class _Family:
    """A weight, and the values that may have its layout.

    Attributes:
        home: its slot.
        slots: the slots of all of these values.
        first: the operator that places the weight.
        others: the other operators that read or write one of the values, in program order.
        copies: the relayouts of one of the values into another one's layout.
        changes: whether a run changes the weight.
    """

    home: int
    slots: frozenset[int]
    first: Operator
    others: tuple[Operator, ...]
    copies: tuple[Relayout, ...]
    changes: bool


def jointly(graph: PlanningGraph, chooser: Chooser, decided: Decided) -> Decided:
    """The decision, with joint plans for the operators of each weight that several of them share.

    Joint plans are used only if they are faster.
    """
    plans: dict[Operator, Plan] = {}
    for family in _families(graph):
        plans |= _Joint(graph, chooser, decided, family).plans()
    if not plans:
        return decided
    every = {node: option.choice.plan for node, option in decided.options.items()}
    found = replace(chooser, chosen=every | plans).as_chosen()
    return found if found.cycles < decided.cycles else decided


def _families(graph: PlanningGraph) -> list[_Family]:
    """The families of the weights of a program that a run changes or several operators read."""
    alike = IntDisjointSet(size=len(graph.itemsizes))
    position = {node: i for i, node in enumerate(graph.nodes)}
    homes: dict[int, Operator] = {}
    for node in graph.nodes:
        if isinstance(node, Relayout):
            alike.union(node.source, node.destination)
            continue
        homes |= dict.fromkeys(node.homes.values(), node)
        for i, slot in _slots(node).items():
            if _as_result(node, i):
                alike.union(slot, node.result)
    stored = {n.destination for n in graph.nodes if isinstance(n, Relayout)}
    shared = {slot for node in graph.operators for slot in node.operands} & homes.keys()
    members: dict[int, list[int]] = {}
    for slot in range(len(graph.itemsizes)):
        members.setdefault(alike[slot], []).append(slot)
    touching: dict[int, list[Operator]] = {}
    copying: dict[int, list[Relayout]] = {}
    for node in graph.nodes:
        if isinstance(node, Relayout):
            copying.setdefault(alike[node.destination], []).append(node)
            continue
        for family in dict.fromkeys(alike[s] for s in (*_slots(node).values(), *node.results)):
            touching.setdefault(family, []).append(node)
    found: list[_Family] = []
    for family, slots in members.items():
        changing = [slot for slot in slots if slot in stored and slot in homes]
        placed = changing or [slot for slot in slots if slot in shared]
        if not placed or any(slot in graph.fixed for slot in slots):
            continue
        home = min(placed, key=lambda slot: position[homes[slot]])
        own, nodes = frozenset(slots), touching[family]
        first = homes[home]
        k = next(i for i, slot in first.homes.items() if slot == home)
        if k >= first.problem.structure.own_operands:
            continue
        size = prod(first.problem.structure.space.operands[k].shape) * graph.itemsizes[home]
        if len({node.part for node in nodes}) > 1:
            continue
        if first is not nodes[0] or size < SMALLEST or any(n.given or n.times != 1 for n in nodes):
            continue
        copies, others = tuple(copying.get(family, ())), tuple(nodes[1:])
        found.append(_Family(home, own, first, others, copies, changes=bool(changing)))
    return found


def _slots(node: Operator) -> dict[int, int]:
    """The slots of the operands of an operator, by their index."""
    given = {i: slot for i, slot in enumerate(node.operands) if slot is not None}
    return given | node.homes


def _as_result(node: Operator, operand: int) -> bool:
    """Whether each point of an operator reads only the operand's element that it writes in the
    result.
    """
    space = node.problem.structure.space
    if node.problem.moves or len(node.results) > 1:
        return False
    return space.operands[operand].axes == space.results[0].axes


@dataclass(frozen=True, eq=False)
class _Joint:
    """The search for the plans of one family."""

    graph: PlanningGraph
    chooser: Chooser
    decided: Decided
    family: _Family

    @property
    def target(self) -> Target:
        """A machine with the chips of the family only."""
        return self.family.first.part.target

    def plans(self) -> dict[Operator, Plan]:
        """The fastest joint plans; {} if the decided plans are as fast."""
        first = self.family.first
        now = sum(self.decided.options[n].choice.cycles for n in (first, *self.family.others))
        now += sum(
            relayout_cycles(
                self._decided(each.source),
                self._decided(each.destination),
                each.dtype.itemsize,
                self.target,
            )
            for each in self.family.copies
        )
        best: dict[Operator, Plan] = {}
        for choice, layout in self._layouts():
            cycles, plans = choice.cycles, {first: choice.plan}
            for node in self.family.others:
                each, copying = self._best(node, layout)
                cycles += each.cycles + copying
                plans[node] = each.plan
                if cycles >= now:
                    break
            if cycles < now:
                now, best = cycles, plans
        return best

    def _layouts(self) -> list[tuple[Choice, Layout]]:
        """The layouts of the weight to try, each with the fastest plan that gives it."""
        first, question = self.family.first, self._question(self.family.first, None)
        k = next(i for i, slot in first.homes.items() if slot == self.family.home)
        found: dict[Layout, Plan] = {}
        known = [each.plan for each in kept(question, first.pins)]
        if not self.family.changes:
            known.extend(self._wished(k))
        for plan in (self.decided.options[first].choice.plan, *known, *by_promise(question)):
            if takes_steps(plan):
                continue
            wanted = compute_layouts(first.problem.structure, plan)[k]
            if wanted.is_partition:
                found.setdefault(wanted, replace(plan, combine=None))
            if len(found) == TRIED:
                break
        have = self.decided.have[first]
        return [(self.chooser.priced(first, p, have), layout) for layout, p in found.items()]

    def _wished(self, operand: int) -> Iterator[Plan]:
        """Plans of the first operator that place its weight where other readers want it."""
        first = self.family.first.problem
        for node in self.family.others:
            kept_layouts = 0
            for layout in self._wishes(node):
                plans = keeping(first, operand, placement(layout), self.target)
                yield from plans
                kept_layouts += bool(plans)
                if kept_layouts == WISHES:
                    break

    def _wishes(self, node: Operator) -> Iterator[Layout]:
        """The layouts in which an operator reads the weight under its most promising plans, if it
        may place the weight itself."""
        slots = [i for i, slot in enumerate(node.operands) if slot in self.family.slots]
        resident = tuple(i in slots or stays for i, stays in enumerate(node.problem.resident))
        have = tuple(None if i in slots else each for i, each in enumerate(self.decided.have[node]))
        alone = replace(node.problem, resident=resident)
        found: set[Layout] = set()
        for plan in by_promise(Question(alone, have, self.target, self.chooser.bound)):
            if takes_steps(plan):
                continue
            layouts = compute_layouts(node.problem.structure, plan)
            wanted = {layouts[i] for i in slots if layouts[i].is_partition}
            yield from sorted(wanted - found, key=lambda layout: layout.cells)
            found |= wanted

    def _best(self, node: Operator, layout: Layout) -> tuple[Choice, float]:
        """The fastest plan of an operator if the family has a layout, with its total cycles.

        The cycles include bringing its result into the layout.
        """
        question = self._question(node, layout)
        slots = _slots(node)
        have = tuple(layout if slots.get(i) in self.family.slots else None for i in slots)
        tried: Iterable[Plan] = (
            self.decided.options[node].choice.plan,
            *inherited(node.problem, have, self.target),
        )
        if node.result in self.family.slots:
            tried = (*tried, *leaving(node.problem, layout, self.target))
        found: list[tuple[Choice, float]] = []
        for plan in dict.fromkeys(replace(plan, combine=None) for plan in tried):
            choice = priced(question, plan)
            copying = 0.0
            if node.result in self.family.slots:
                (made,) = final_layouts_of(node.problem, choice.plan)
                itemsize = self.graph.itemsizes[node.result]
                copying = relayout_cycles(made, layout, itemsize, self.target)
            found.append((choice, copying))
        return min(found, key=lambda each: each[0].cycles + each[1])

    def _question(self, node: Operator, layout: Layout | None) -> Question:
        """The question about an operator.

        Args:
            layout: the family's layout; None for the decided layouts.
        """
        have = self.decided.have[node]
        if layout is not None:
            have = tuple(
                layout if slot in self.family.slots else lies
                for slot, lies in zip(node.operands, have, strict=True)
            )
        return Question(node.problem, have, self.target, self.chooser.bound)

    def _decided(self, slot: int) -> Layout:
        return self.graph.fixed.get(slot) or self.decided.layouts[slot]
