"""Plans for a whole program, whose weights and activations share the memory of the tiles.

If the fastest plans fit together, plans are chosen jointly to save relayouts. If they do not, each
operator gets plans that trade cycles for bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan, prod

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...backends.target import Target
from ...dialects.abele import Plan, PlanAttr
from ...dialects.home import home_of
from ...dialects.placement import placement_of
from ...ir.geometry.layout import Layout, placement
from ...ir.upstream import ModuleOp
from ..plans.parts import Part, Parts
from ..replicas.written import replicas_of, shares_optimizer
from .batches import with_batch
from .budget import Fronts
from .choice import Choice, rank
from .graph import Group, Operator, PlanningGraph, loop_of_runs, read_graph
from .joint import jointly
from .keeping import kept
from .layouts import Chooser, Decided, add_bytes, can_be_shared
from .limits import Limits
from .memory import live_bytes, other_bytes
from .problem import Problem
from .question import Question
from .serial import in_steps, priced, sketched

BOUNDS = (1.0, 0.5, 0.25, 0.1)
"""Shares of a tile that one operator may take, tried in turn if the fastest plans do not fit
together.

For each share, an operator gets plans to choose from. Where plans are found that fit, a smaller
share is tried if values and temporaries take more than it: leaner operators leave room for more
weights that stay where they are read. ResNet-50 in float16 for 32 images on c600 then takes 4.3 %
fewer cycles. Every second share, or twice as many, gave the same in the roomy and the tight trial.
"""

DEARER = (1, 2)
"""Factors on the price of a resident byte, tried to find plans that are better together.

Chosen by trial, roomy and tight. With 1 alone: up to 0.11 % more cycles. With 1, 2, 4, 8: same.
"""

ROUNDS = 5
"""The most corrections of the choice of plans that fit by the memory that they really need.

Chosen by trial. With 2, the roomy trial gives the same, but in the tight one ResNet-50 finds no
plan that fits. With 10: same.
"""


MOST_SPLIT = 4
"""The most operators that are split into steps to make plans fit that nearly do.

Chosen by judgement: searching for the steps of one operator takes seconds.
"""


@dataclass(frozen=True)
class NetworkPlan:
    """The plan of every operation, and the cycles and memory of the program with these plans.

    Attributes:
        cycles: of a run, estimated; both branches of an if count, and a while counts once.
        resident_bytes: weights and constants on the fullest tile of the fullest chip.
        live_bytes: values and temporaries there at the worst moment, as if the fullest tiles of a
            chip were the same.
        questions: the question that each plan answers.
        at_home: the states and constants whose wished homes the plans keep.
        reload_cycles: the part of the cycles that no run takes, as in Choice.
        one_chip: whether the target has several chips, of which the plans use only the first.
        chip_bytes: by chip, the bytes that its fullest tile has to hold.
        alone_cycles: those of the plans for one chip, where the target has several; infinite if
            they do not fit, and NaN if there are none because the request needs several chips.
    """

    plans: dict[Operation, Plan]
    choices: dict[Operation, Choice]
    cycles: float
    resident_bytes: int
    live_bytes: int
    questions: dict[Operation, Question]
    at_home: frozenset[Operation] = frozenset()
    reload_cycles: float = 0.0
    one_chip: bool = False
    alone_cycles: float = nan
    chip_bytes: tuple[int, ...] = ()

    @property
    def bytes_per_tile(self) -> int:
        """The bytes that the fullest tile has to hold."""
        return self.resident_bytes + self.live_bytes

    @property
    def of_a_run(self) -> NetworkPlan:
        """The same plans with the cycles of a run only: without reloading weights."""
        choices = {
            op: replace(c, cycles=c.cycles - c.reload_cycles, reload_cycles=0.0)
            if c.reload_cycles
            else c
            for op, c in self.choices.items()
        }
        return replace(self, choices=choices, cycles=self.cycles - self.reload_cycles)


def plan_network(
    module: ModuleOp,
    target: Target,
    limits: Limits | None = None,
    *,
    joint: bool = True,
    spare: int = 0,
) -> NetworkPlan:
    """Plan every structured operation and movement of a module at nn.

    Plans that operations already have are kept. If no plans fit the tiles, the plans that need the
    least memory are returned, and the allocator reports which variables do not fit. Raises
    InputError for a plan that does not belong to its operation.

    On several chips, the plans are those of one chip if these fit and are as fast. A function that
    lies on some chips only has the plans of a program on a machine with these chips, moved there.

    Args:
        joint: choose the plans of operators that share a weight which the program changes together.
        spare: bytes of a tile that the program shall leave free.
    """
    asked = _Request(module, target, with_batch(limits or Limits(), module), joint, spare)
    parts = Parts(module, target, Part.of(target))
    groups = [Group(frozenset(parts.names(part)), part, part) for part in parts.placed]
    return asked.moved(asked.with_groups(groups) if groups else asked.best(None), parts)


@dataclass(frozen=True)
class _Request:
    """A module to be planned; the fields are the arguments of plan_network."""

    module: ModuleOp
    target: Target
    limits: Limits
    joint: bool
    spare: int

    def best(self, group: Group | None) -> NetworkPlan:
        """The better plans of those for all chips and those for one of them.

        Args:
            group: the functions to plan; None for a whole program.
        """
        target = self.target if group is None else group.part.target
        found = self.of_program(target) if group is None else self.of_group(group)
        replicated = replicas_of(self.module) > 1 or shares_optimizer(self.module)
        if (
            target.chips == 1
            or replicated
            or any(self._needs_several(op, group) for op in self._ops(group))
        ):
            return found
        if group is None:
            alone = self.of_program(target.one_chip)
        else:
            alone = self.of_group(group.on_one_chip(self.target))
        usable = target.usable_bytes_per_tile - self.spare
        if alone.bytes_per_tile > usable:
            return replace(found, alone_cycles=inf)
        if found.bytes_per_tile <= usable and found.cycles < alone.cycles:
            return replace(found, alone_cycles=alone.cycles)
        return replace(alone, one_chip=True, alone_cycles=alone.cycles)

    def with_groups(self, groups: Sequence[Group]) -> NetworkPlan:
        """The plans of a whole program that has placed functions.

        Each group of placed functions is planned by itself. Then the remaining functions are
        planned, with the plans of all groups given. If that overfills the chips of a group, this
        group is planned again in less memory, and the remaining functions after it.

        Args:
            groups: of all placed functions.
        """
        taken = dict.fromkeys(groups, 0)
        plans = {group: self.best(group).plans for group in groups}
        best: NetworkPlan | None = None
        for _ in range(ROUNDS):
            given = {op: plan for each in plans.values() for op, plan in each.items()}
            found = self.of_program(self.target, given)
            best = _smaller(best, found)
            usable = self.target.usable_bytes_per_tile - self.spare
            over = np.array(found.chip_bytes) - usable
            full = {group: int(over[group.owner.chips].max()) for group in groups}
            full = {group: more for group, more in full.items() if more > 0}
            if not full:
                break
            before = {group: plans[group] for group in full}
            for group, more in full.items():
                taken[group] += more
                smaller = replace(self, spare=self.spare + taken[group])
                if smaller.spare < self.target.usable_bytes_per_tile:
                    plans[group] = smaller.best(group).plans
            if all(plans[group] == before[group] for group in full):
                break
        assert best is not None
        return best

    def moved(self, found: NetworkPlan, parts: Parts) -> NetworkPlan:
        """The plans, moved to the chips on which the functions of their operations lie."""
        plans = {op: parts.around(op).moved(plan) for op, plan in found.plans.items()}
        return replace(found, plans=plans)

    def of_group(self, group: Group) -> NetworkPlan:
        """The plans of a group, on all chips of its part."""
        graph = read_graph(self.module, self.target, self.limits, only=group)
        return Network(graph, group.part.target, self.spare).planned(self.joint).of_a_run

    def of_program(
        self, target: Target, given: Mapping[Operation, Plan] | None = None
    ) -> NetworkPlan:
        """The plans of a whole program on all chips of a target.

        Args:
            given: plans of some operations.
        """
        module, limits, joint, spare = self.module, self.limits, self.joint, self.spare
        loop = loop_of_runs(module)
        if loop is None:
            graph = read_graph(module, target, limits, given=given)
            return Network(graph, target, spare).planned(joint).of_a_run
        given = dict(given or {})
        # A loop of runs has the plans of a single run, so that both give the same bits.
        run = Network(read_graph(module, target, limits, alone=loop, given=given), target, spare)
        found: NetworkPlan | None = None
        for _ in range(ROUNDS):
            single = run.planned(joint)
            graph = read_graph(module, target, limits, given=given | single.plans)
            program = Network(graph, target, spare)
            whole = program.planned(joint)
            found = _smaller(found, whole)
            if found.bytes_per_tile <= program.usable:
                break
            # The batches of all iterations take memory too, so a single run has less.
            over = whole.bytes_per_tile - program.usable
            room = min(single.bytes_per_tile, run.usable) - max(over, 1)
            if room <= 0 or single.bytes_per_tile > run.usable:
                break
            run = replace(run, taken=target.usable_bytes_per_tile - room)
        assert found is not None
        return found.of_a_run

    def _ops(self, group: Group | None) -> Iterator[Operation]:
        """The operations of the functions that are planned."""
        if group is None:
            yield from self.module.walk()
            return
        for op in self.module.body.block.ops:
            if isinstance(op, FuncOp) and op.sym_name.data in group.names:
                yield from op.walk()

    def _needs_several(self, op: Operation, group: Group | None) -> bool:
        """Whether the plan or the home that an operation already has takes tiles of a second chip,
        or its terms require several chips, or more tiles than one has."""
        if op in self.limits.terms:
            terms = self.limits.terms[op]
            if terms.across:
                return True
            if prod(terms.least_parts(len(terms.split))) > self.target.computing.tiles_per_chip:
                return True
        if group is None and isinstance(op, FuncOp) and placement_of(op) is not None:
            # It asks for all chips, or else there would be a group.
            return True
        plan, home = op.attributes.get("plan"), home_of(op)
        ends = [plan.data.tiles.end] if isinstance(plan, PlanAttr) else []
        ends += [home.layout.tiles.end] if home is not None else []
        first = 0 if group is None else int(group.part.chips[0])
        return max(ends, default=0) > (first + 1) * self.target.tiles_per_chip


@dataclass(frozen=True)
class Network:
    """A program that is planned for a target.

    Attributes:
        taken: bytes of a tile that are not available.
    """

    graph: PlanningGraph
    target: Target
    taken: int = 0

    def planned(self, joint: bool) -> NetworkPlan:
        """The plans of all operations.

        Args:
            joint: as for plan_network.
        """
        bound = self.usable
        chooser = self.chooser(bound, 0.0)
        decided = chooser.one_by_one()
        found = self.plan(decided, bound)
        if found.bytes_per_tile > bound and decided.options:
            found = self.fitted(decided)
            if joint and found.bytes_per_tile > bound:
                together = self.jointly(chooser, decided)
                if together is not decided:
                    found = _smaller(found, self.fitted(together))
        else:
            found = self.better(found, chooser)
        return self.leaner(self.joined(found, chooser) if joint else found, chooser)

    def leaner(self, found: NetworkPlan, chooser: Chooser) -> NetworkPlan:
        """The plans found, or plans that fit, if there are such, where these do not.

        Operators of moments that are too full are computed in steps, with operands where they are.
        """
        room = self.usable - found.resident_bytes
        if found.bytes_per_tile <= self.usable or room <= 0 or not self.could_fit:
            return found
        plans = {node: found.plans[node.op] for node in self.graph.operators}
        now = replace(chooser, chosen=plans).as_chosen()
        others = other_bytes(self.graph, now, self.target.chips)
        full = {
            node: room - others[node]
            for node, option in now.options.items()
            if option.choice.temporary_bytes > room - others[node]
        }
        hopeless = any(own <= 0 or node.given or node.problem.moves for node, own in full.items())
        if hopeless or len(full) > MOST_SPLIT:
            return found
        for node, own in full.items():
            bound = own + now.options[node].choice.resident_bytes
            question = Question(node.problem, now.have[node], node.part.target, bound)
            small = [c for c in in_steps(question) if c.temporary_bytes <= own]
            if not small:
                return found
            plans[node] = min(small, key=rank).plan
        other = self.plan(replace(chooser, chosen=plans).as_chosen(), chooser.bound)
        return other if other.bytes_per_tile <= self.usable else found

    def jointly(self, chooser: Chooser, decided: Decided) -> Decided:
        """The decision, with joint plans where several operators share a weight."""
        return jointly(self.graph, chooser, decided)

    def joined(self, found: NetworkPlan, chooser: Chooser) -> NetworkPlan:
        """The plans found, or joint plans if these are better."""
        nodes = [*self.graph.operators]
        plans = {node: found.plans[node.op] for node in nodes}
        before = replace(chooser, chosen=plans).as_chosen()
        after = self.jointly(chooser, before)
        if after is before:
            return found
        other = self.plan(after, chooser.bound)
        fits = other.bytes_per_tile <= max(self.usable, found.bytes_per_tile)
        return other if fits and other.cycles < found.cycles else found

    def better(self, found: NetworkPlan, chooser: Chooser) -> NetworkPlan:
        """Faster plans of all operators together that fit, or the plans found."""
        for factor in DEARER if chooser.byte_price else (1,):
            dearer = replace(chooser, byte_price=factor * chooser.byte_price)
            decided = dearer.together()
            if decided.cycles < found.cycles:
                together = self.plan(decided, chooser.bound)
                if together.bytes_per_tile <= self.usable:
                    found = together
        return found

    def fitted(self, decided: Decided) -> NetworkPlan:
        """The fastest plans that fit, for a program whose fastest plans do not.

        If no plans fit, the plans that need the least memory.
        """
        others = other_bytes(self.graph, decided, self.target.chips)
        choices: dict[Operator, tuple[Choice, ...]] = {node: () for node in decided.have}
        fastest: NetworkPlan | None = None
        smallest: NetworkPlan | None = None
        for share in BOUNDS:
            bound = int(self.usable * share)
            if fastest is not None and fastest.live_bytes <= bound:
                continue
            for node, have in decided.have.items():
                more = self._choices(node, have, decided.options[node].choice, bound)
                found = {c.plan: c for c in (*choices[node], *more)}
                choices[node] = tuple(found.values())
            best, least = self._fitted(Fronts(choices, others), others)
            if best is not None and (fastest is None or best.cycles < fastest.cycles):
                fastest = best
            smallest = _smaller(smallest, least)
        if fastest is not None:
            return fastest
        assert smallest is not None
        if not self.could_fit:
            return smallest
        # Steps add operations and take long to search, so only operators that do not fit get steps.
        in_time = self._in_steps(decided, choices, others, self.usable - smallest.resident_bytes)
        if not in_time:
            return smallest
        more = {node: (*found, *in_time.get(node, ())) for node, found in choices.items()}
        best, least = self._fitted(Fronts(more, others), others)
        return best or _smaller(smallest, least)

    def _in_steps(
        self,
        decided: Decided,
        choices: Mapping[Operator, tuple[Choice, ...]],
        others: Mapping[Operator, int],
        room: int,
    ) -> dict[Operator, tuple[Choice, ...]]:
        """Plans of several steps for the operators that do not fit in one step.

        Empty if an operator has too little room with every plan.

        Args:
            room: bytes of a tile that are not resident.
        """
        bounds: dict[Operator, int] = {}
        for node, found in choices.items():
            own = room - others[node]
            if min(c.temporary_bytes for c in found) <= own:
                continue
            if own <= 0 or node.given is not None or node.problem.moves:
                return {}
            bounds[node] = own + min(c.resident_bytes for c in found)
        # Equal layers are searched only once.
        least: dict[tuple[Problem, tuple[Layout | None, ...], Target], int] = {}
        for node, bound in bounds.items():
            key = node.problem, decided.have[node], node.part.target
            least[key] = min(bound, least.get(key, bound))
        stepped: dict[Operator, tuple[Choice, ...]] = {}
        for node in bounds:
            key = node.problem, decided.have[node], node.part.target
            stepped[node] = in_steps(Question(*key, least[key]))
            if not any(c.temporary_bytes <= room - others[node] for c in stepped[node]):
                return {}
        return stepped

    def _choices(
        self, node: Operator, have: tuple[Layout | None, ...], fastest: Choice, bound: int
    ) -> tuple[Choice, ...]:
        """The plans of an operator that trade cycles for bytes, including its fastest plan."""
        if node.given is not None:
            return (fastest,)
        question = Question(node.problem, have, node.part.target, bound)
        found = (fastest, *sketched(question))
        if node.pins:
            chooser = self.chooser(bound, 0.0)
            found = (*found, *kept(question, node.pins))
            found = tuple(chooser.priced(node, c.plan, have) for c in found)
            return tuple([c for c in found if can_be_shared(node, c.plan)] or found)
        if not node.shared:
            return found
        every = [priced(question, c.plan) for c in found]
        return tuple([c for c in every if can_be_shared(node, c.plan)] or every)

    def _fitted(
        self, fronts: Fronts, others: dict[Operator, int]
    ) -> tuple[NetworkPlan | None, NetworkPlan]:
        """The fastest plans that fit, or None, and the plans that need the least memory."""
        best: tuple[NetworkPlan, Chooser] | None = None
        smallest: NetworkPlan | None = None
        available = self.usable
        for _ in range(ROUNDS):
            selection = fronts.within(available)
            picked = selection or fronts.smallest()
            chooser = replace(
                self.chooser(self.usable, picked.byte_price),
                chosen={node: choice.plan for node, choice in picked.choices.items()},
                room={node: picked.cap - others[node] for node in picked.choices},
            )
            found = self.plan(chooser.as_chosen(), self.usable)
            fits = found.bytes_per_tile <= self.usable
            if fits and (best is None or found.cycles < best[0].cycles):
                best = found, chooser
            smallest = _smaller(smallest, found)
            corrected = self.usable - (found.bytes_per_tile - picked.resident - picked.moment)
            if selection is None or corrected == available:
                break
            available = corrected
        assert smallest is not None
        return self.better(*best) if best else None, smallest

    @property
    def could_fit(self) -> bool:
        """Whether all tiles together may have enough memory for the program.

        If not, the plans only serve a report, and a long search for the least memory is not worth
        its time.
        """
        return self.graph.least_bytes <= self.usable * self.target.computing.tiles

    @property
    def usable(self) -> int:
        """The bytes of a tile that the program may take."""
        return self.target.usable_bytes_per_tile - self.taken

    def chooser(self, bound: int, byte_price: float) -> Chooser:
        """The chooser of plans at one price of a resident byte."""
        resident = np.zeros(self.target.tiles, np.int64)
        for layout, dtype in self.graph.stored:
            add_bytes(resident, layout, dtype.itemsize)
        return Chooser(self.graph, self.target, bound, byte_price, resident, in_time=self.could_fit)

    def plan(self, decided: Decided, bound: int) -> NetworkPlan:
        """The decided plans, with the memory that they need."""
        options = decided.options
        resident = decided.resident.reshape(self.target.chips, -1).max(axis=1, initial=0)
        live = live_bytes(self.graph, decided, self.target.chips)
        fullest = int((resident + live).argmax())
        return NetworkPlan(
            plans={
                **{node.op: option.choice.plan for node, option in options.items()},
                **self.graph.empty,
            },
            choices={node.op: option.choice for node, option in options.items()},
            cycles=decided.cycles,
            resident_bytes=int(resident[fullest]),
            live_bytes=int(live[fullest]),
            chip_bytes=tuple((resident + live).tolist()),
            questions={
                node.op: Question(node.problem, decided.have[node], node.part.target, bound)
                for node in options
            },
            at_home=frozenset(
                op
                for slot, op in self.graph.pinned.items()
                if (home := home_of(op)) is not None
                and placement(self.graph.on_machine(slot, decided.homes[slot]))
                == placement(home.layout)
            ),
            reload_cycles=sum(o.choice.reload_cycles * n.times for n, o in options.items()),
        )


def _smaller(one: NetworkPlan | None, other: NetworkPlan) -> NetworkPlan:
    return one if one is not None and one.bytes_per_tile <= other.bytes_per_tile else other
