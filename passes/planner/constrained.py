"""Plans a program under a user's constraints, and checks the constraints against the operators."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ...backends.prices.codelets import compute_cycles
from ...backends.prices.contractions.methods import methods_of
from ...backends.prices.workload import roles
from ...backends.target import Target
from ...dialects.abele import Plan, PlanAttr
from ...dialects.dtypes import numpy_dtype
from ...dialects.nn import element_of
from ...dialects.structured import Movement, Structure, Structured
from ...ir.node_names import MOST_STEPS as MOST_NAMES
from ...ir.node_names import no_such_operator, operations_matching, operations_named
from ...ir.phases import FORWARD, Phases
from ...ir.provenance import origin, place
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.upstream import ModuleOp
from ..plans.derive import check_ranks, refined
from ..plans.fused import operator_name
from ..plans.parts import Part
from .candidates import splits
from .choice import Choice
from .constraints import (
    ACROSS_KEY,
    BESIDE_PLAN,
    NONE,
    PARTIALS_KEY,
    PROPORTION_KEY,
    Constraints,
    read_constraints,
)
from .limits import PROPORTION, Limits, check_proportion
from .network import NetworkPlan, plan_network
from .price import largest_cells
from .problem import Problem, movement_problem
from .question import unplaced
from .relaxed import Relaxed, relaxed_limits
from .serial import priced
from .shards import read_shards
from .shards_of_training import shards_of_training
from .spreads import can_spread, ways_of
from .terms import FREE, Terms

NO_DIMENSION = -1
"""In a ring, stands for a dimension that rotates around no other."""


@dataclass(frozen=True)
class Constrained:
    """The constraints of one program, by operation.

    Attributes:
        plans: whole plans.
        places: for other operators, the constraints on the plan as text with the line in the file,
            for messages.
    """

    limits: Limits
    plans: Mapping[Operation, Plan] = field(default_factory=dict[Operation, Plan])
    places: Mapping[Operation, str] = field(default_factory=dict[Operation, str])


@dataclass(frozen=True)
class Planned:
    """The plans of a program, and the limits under which they were planned.

    Attributes:
        given: the operations whose plans were not searched for, because they had one or the
            constraints give one.
    """

    network: NetworkPlan
    limits: Limits
    given: frozenset[Operation] = frozenset()

    def relaxed(self, target: Target) -> tuple[Relaxed, ...]:
        """The operators of which no plan keeps the memory limit."""
        return relaxed_limits(self.network.choices, self.limits, target)


def plan_program(
    module: ModuleOp,
    target: Target,
    constraints: str | os.PathLike[str] = "",
    proportion: float | None = None,
    *,
    shards: Sequence[str] = (),
    joint: bool = True,
    spare: int = 0,
) -> Planned:
    """Plan a module at nn.

    Raises InputError for errors in the file, and for constraints that no plan meets.

    Whole plans in the file are written on their operations.

    Args:
        constraints: the path of a file, or "".
        proportion: the memory proportion to use instead of the file's.
        shards: which dimensions are cut across chips, as `Shard` writes them.
        joint, spare: as for plan_network.
    """
    found = read_constraints(constraints) if constraints else None
    if shards:
        found = (found or NONE).with_shards(read_shards(shards))
    if proportion is None:
        proportion = PROPORTION if found is None or found.proportion is None else found.proportion
    check_proportion(proportion)
    asked = (
        Constrained(Limits(proportion))
        if found is None
        else resolve(found, module, target, proportion)
    )
    for op, plan in asked.plans.items():
        op.attributes["plan"] = PlanAttr(plan)
    given = frozenset(op for op in module.walk() if "plan" in op.attributes)
    planned = plan_network(module, target, asked.limits, joint=joint, spare=spare)
    _check_met(planned, asked, target)
    return Planned(planned, asked.limits, given)


Asked = dict[str, tuple[str, object]]
"""The constraints on one operator, by key: the name that they are listed under, and the value."""


def resolve(
    constraints: Constraints, module: ModuleOp, target: Target, proportion: float
) -> Constrained:
    """The constraints of a module's operators.

    Raises InputError for a name that matches no operator, and for a constraint that no plan of its
    operator can meet.
    """
    proportions: dict[Operation, float] = {}
    terms: dict[Operation, Terms] = {}
    plans: dict[Operation, Plan] = {}
    places: dict[Operation, str] = {}
    for op, asked in _asked(constraints, module).items():
        if PROPORTION_KEY in asked:
            proportions[op] = cast(float, asked.pop(PROPORTION_KEY)[1])
        # A pass before plans are searched for has written it on the operation.
        asked.pop(PARTIALS_KEY, None)
        if not asked:
            continue
        each = _Operator(op, asked, constraints, target)
        places[op] = each.described()
        if "plan" in op.attributes:
            raise InputError(
                f"{places[op]}: {operator_name(op)} already has a plan; remove one of the two"
            )
        if "plan" in asked:
            plans[op] = each.plan()
        else:
            terms[op] = each.terms()
    chosen = {op: own.across for op, own in terms.items() if own.across is not None}
    for op, across in shards_of_training(module, chosen).items():
        if op in terms or op in plans or "plan" in op.attributes:
            continue
        each = _Operator(op, {}, constraints, target)
        own = Terms(across=across, apart=each.target.tiles_per_chip)
        has_chips = prod(across) <= target.chips
        if has_chips and can_spread(replace(each.problem, terms=own), across, each.target):
            terms[op] = own
    return Constrained(Limits(proportion, proportions, terms), plans, places)


def asked_for(key: str, constraints: Constraints, module: ModuleOp) -> dict[Operation, Asked]:
    """The constraints with one key, for each operator that has one. Raises InputError for a name
    that matches no operator."""
    some = {name: given for name, given in constraints.operators.items() if key in given}
    found = _asked(replace(constraints, operators=some), module)
    return {op: asked for op, asked in found.items() if key in asked}


def _asked(constraints: Constraints, module: ModuleOp) -> dict[Operation, Asked]:
    """The constraints on each operator; full names override patterns."""
    planned = [op for op in module.walk() if isinstance(op, Structured | Movement)]
    asked: dict[Operation, Asked] = {}
    every = {name: operations_named(name, planned) for name in constraints.operators}
    patterns = [name for name, found in every.items() if not found]
    for name in patterns:
        every[name] = operations_matching(name, planned)
        if not every[name] and name in constraints.shards:
            every[name] = _below(name, constraints, planned, Phases.of(module))
        if not every[name]:
            where = constraints.place(name)
            why = no_such_operator(name, planned, module.walk(), "needs no plan")
            raise InputError(f"{where}: {why}")
    for name in constraints.shards:
        # Of the steps of one node, only some may have the dimension.
        every[name] = _having_dims(name, constraints, every[name]) or every[name]
    for name in (*patterns, *(name for name in every if name not in patterns)):
        values = constraints.operators[name]
        for op in every[name]:
            before = _compatible(asked.get(op, {}), values)
            asked[op] = before | {key: (name, value) for key, value in values.items()}
    return asked


def _having_dims(name: str, constraints: Constraints, ops: Iterable[Operation]) -> list[Operation]:
    """Those of some operators that have all dimensions of a shard."""
    wanted = {dim for dim, _ in constraints.shards[name].across}
    return [op for op in ops if wanted <= set(_dim_names(op))]


def _dim_names(op: Operation) -> list[str]:
    if isinstance(op, Movement):
        return [dim.name for dim in op.moves()[0].dims]
    assert isinstance(op, Structured)
    return [dim.name for dim in op.structure().space.dims]


def _below(
    name: str, constraints: Constraints, planned: Sequence[Operation], phases: Phases
) -> list[Operation]:
    """The forward operator below a node that has the dimensions of a shard; none if no operator
    has. Raises InputError if there are several."""
    below = [op for op in planned if phases.phase(op) == FORWARD]
    found = _having_dims(name, constraints, operations_matching(f"{name}/*", below))
    if len(found) > 1:
        names = list(dict.fromkeys(origin(op) or op.name for op in found))
        more = f", and {len(names) - MOST_NAMES} others" if len(names) > MOST_NAMES else ""
        dims = " and ".join(dim for dim, _ in constraints.shards[name].across)
        raise InputError(
            f"{constraints.place(name)}: {len(found)} operators below {name} have the dimension "
            f"{dims}: {', '.join(names[:MOST_NAMES])}{more}; name one of them, or all as "
            f"'{name}/*'"
        )
    return found


def _compatible(before: Asked, values: Mapping[str, object]) -> Asked:
    """The earlier constraints on an operator that later ones leave in force.

    A whole plan replaces all constraints on the plan, and any of these replaces a whole plan.
    """
    if "plan" in values:
        return {key: each for key, each in before.items() if key in BESIDE_PLAN}
    if set(values) - set(BESIDE_PLAN):
        return {key: each for key, each in before.items() if key != "plan"}
    return before


# The constraints on one operator


@dataclass(frozen=True)
class _Operator:
    """An operator and the constraints on its plan."""

    op: Operation
    asked: Asked
    constraints: Constraints
    machine: Target

    @property
    def target(self) -> Target:
        """The machine without its I/O tiles."""
        return self.machine.computing

    @property
    def problem(self) -> Problem:
        op = self.op
        result, *further = (numpy_dtype(element_of(value)) for value in op.results)
        if isinstance(op, Movement):
            return movement_problem(op.moves(), result)
        assert isinstance(op, Structured)
        dtypes = tuple(numpy_dtype(element_of(value)) for value in op.operands)
        stay = (False,) * len(dtypes)
        return Problem(op.structure(), dtypes, result, stay, further_dtypes=tuple(further))

    def place(self, *way: str) -> str:
        """The place of a constraint in the file.

        Args:
            way: its key, and optionally a key below it.
        """
        name = self.asked[way[0]][0]
        where = self.constraints.place(name, *way)
        own = origin(self.op)
        return where if own is None or own == name else f"{where} (for {own})"

    def described(self) -> str:
        """All constraints on the plan, for a message about their combination."""
        keys = list(self.asked)
        texts: list[str] = []
        for key in keys:
            value = self.asked[key][1]
            if isinstance(value, dict):
                parts = cast(dict[str, object], value).items()
                texts.append(f"{key} {', '.join(f'{d} = {n}' for d, n in parts)}")
            else:
                texts.append(
                    f"{key} {PlanAttr(value).text() if isinstance(value, Plan) else value}"
                )
        return f"{self.place(keys[0])}: {'; '.join(texts)}"

    def fail(self, problem: str, *way: str) -> InputError:
        return InputError(f"{self.place(*way)}: {problem}")

    def terms(self) -> Terms:
        """The terms of the operator's plan. Raises InputError for a constraint that no plan can
        meet.
        """
        problem = self.problem
        structure, target = problem.structure, self.target
        counts = {
            key: tuple(self._by_dimension(structure, key, 0)) if key in self.asked else ()
            for key in ("split", "steps")
        }
        found = Terms(
            split=counts["split"],
            method=cast(str, self.asked["method"][1]) if "method" in self.asked else "",
            tiles=cast(int, self.asked["tiles"][1]) if "tiles" in self.asked else 0,
            steps=tuple(max(n, 1) for n in counts["steps"]),
            ring=self._rings(structure),
            across=self._across(structure),
        )
        if found.across:
            found = replace(found, apart=target.tiles_per_chip)
        least = found.least_parts(len(structure.space.dims))
        if found.tiles > target.tiles:
            raise self.fail(
                f"{found.tiles}; target {self.machine.called} has {target.tiles}", "tiles"
            )
        if found.across:
            self._check_across(problem, found)
        if found.split or found.ring:
            self._check_split(problem, least, found, "split" if found.split else "ring")
        if found.steps or found.ring:
            which = "steps" if found.steps else "ring"
            if problem.moves:
                raise self.fail(
                    f"{operator_name(self.op)} moves elements, which takes one step", which
                )
            self._priced(problem, found.complete(Plan(least)), which)
        if found.method:
            self._check_method(replace(problem, terms=found), found.method)
        return found

    def plan(self) -> Plan:
        """The operator's whole plan from the file, completed with a method and workers.

        Raises InputError if it is not a plan of this operator.
        """
        problem, plan = self.problem, cast(Plan, self.asked["plan"][1])
        try:
            check_ranks(problem.structure, plan)
        except ValueError as error:
            raise self.fail(str(error), "plan") from None
        last, tiles = plan.tiles.end, self.machine.tiles
        if last > tiles:
            raise self.fail(
                f"needs tiles 0..{last - 1}; target {self.machine.called} has 0..{tiles - 1}",
                "plan",
            )
        whole = Part.of(self.machine)
        try:
            plan = whole.own(plan)
        except ValueError as error:
            raise self.fail(str(error), "plan") from None
        if plan.method:
            self._check_method(replace(problem, terms=Terms(split=plan.split)), plan.method, "plan")
        found = replace(self._priced(problem, plan, "plan").plan, combine=plan.combine)
        return whole.moved(found)

    def _priced(self, problem: Problem, plan: Plan, key: str) -> Choice:
        """A plan and its price. Raises InputError if it is not a plan of this operator."""
        question = unplaced(problem, self.target, self.target.usable_bytes_per_tile)
        try:
            return priced(question, plan)
        except ValueError as error:
            raise self.fail(str(error), key) from None

    def _by_dimension(self, structure: Structure, key: str, free: int) -> Iterable[int]:
        given = cast(dict[str, int], self.asked[key][1])
        for name in given:
            self._dimension(structure, key, name)
        return (given.get(dim.name, free) for dim in structure.space.dims)

    def _dimension(self, structure: Structure, key: str, name: str, *way: str) -> int:
        """The index of the dimension with this name."""
        names = [dim.name for dim in structure.space.dims]
        if name not in names:
            raise self.fail(
                f"no dimension {name!r} in {operator_name(self.op)}{suggestion(name, names)}",
                key,
                *way or (name,),
            )
        return names.index(name)

    def _across(self, structure: Structure) -> tuple[int, ...] | None:
        """The chips for each dimension; () for one chip, None where the planner may choose."""
        if ACROSS_KEY not in self.asked:
            return None
        across = tuple(self._by_dimension(structure, ACROSS_KEY, 1))
        return across if prod(across) > 1 else ()

    def _check_across(self, problem: Problem, terms: Terms) -> None:
        """Raise InputError for chips that the target does not have, and for dimensions that cannot
        be cut across so many."""
        assert terms.across
        chips, target = prod(terms.across), self.target
        if chips > target.chips:
            raise self.fail(
                f"{chips:,} chips; target {self.machine.called} has {target.chips}", ACROSS_KEY
            )
        if terms.steps or terms.ring:
            raise self.fail(
                "an operator in steps takes one chip; remove one of the two", ACROSS_KEY
            )
        if not can_spread(replace(problem, terms=terms), terms.across, target):
            dims = zip(problem.structure.space.dims, terms.across, strict=True)
            cut = ", ".join(f"{dim.name} = {dim.size} across {n}" for dim, n in dims if n > 1)
            raise self.fail(
                f"{operator_name(self.op)} cannot be cut so: {cut}, in equally many parts on each "
                f"chip of {target.tiles_per_chip} tiles",
                ACROSS_KEY,
            )

    def _rings(self, structure: Structure) -> tuple[int, ...]:
        if "ring" not in self.asked:
            return ()
        given = cast(dict[str, str], self.asked["ring"][1])
        rings = [NO_DIMENSION] * len(structure.space.dims)
        for name, other in given.items():
            rings[self._dimension(structure, "ring", name)] = self._dimension(
                structure, "ring", other, name
            )
        return tuple(rings)

    def _check_split(
        self, problem: Problem, least: tuple[int, ...], terms: Terms, key: str
    ) -> None:
        try:
            refined(problem.structure, Plan(least))
        except ValueError as error:
            raise self.fail(str(error), key) from None
        tiles = self.target.tiles_per_chip if terms.across is not None else self.target.tiles
        needed, most = prod(least), terms.most_tiles(tiles)
        if needed > most:
            bound = (
                f"{self.place('tiles')}: {terms.tiles}"
                if terms.tiles and terms.tiles < self.target.tiles
                else f"target {self.machine.called} has {most}"
                + ("" if terms.across is None else f" on {prod(terms.across)} of its chips")
            )
            raise self.fail(f"needs {needed} tiles; {bound}", key)
        chip = self.target.tiles_per_chip
        if needed > chip and (terms.steps or terms.ring):
            raise self.fail(f"needs {needed} tiles; in steps it takes one chip, of {chip}", key)
        if terms.across is None and not ways_of(replace(problem, terms=terms), self.target):
            raise self.fail(
                f"needs {needed} tiles; a chip has {chip}, and no dimension can be cut across all "
                f"{self.target.chips} chips in equally many parts each",
                key,
            )

    def _check_method(self, problem: Problem, method: str, key: str = "method") -> None:
        """Raise InputError for a method that is available under no allowed split on the target."""
        structure = problem.structure
        if problem.moves or roles(structure) is None:
            raise self.fail(f"{operator_name(self.op)} sums no products; leave the method out", key)
        known = tuple(methods_of(self.target))
        if method not in known:
            raise self.fail(
                f"target {self.machine.called} has no method {method!r}{suggestion(method, known)}",
                key,
            )
        parts = splits(problem, self.target.tiles)
        cells = largest_cells(structure, parts)
        dtype = problem.number_dtype
        cycles, _ = compute_cycles(problem.workload(self.target).unchained, cells, method)
        if not np.isfinite(cycles).any():
            sizes = ", ".join(f"{dim.name} = {dim.size}" for dim in structure.space.dims)
            raise self.fail(
                f"target {self.machine.called} has no {method} for {dtype.name} and {sizes}"
                + ", cut as asked" * (len(self.asked) > 1),
                key,
            )


def _check_met(planned: NetworkPlan, asked: Constrained, target: Target) -> None:
    """Raise InputError if the constraints on an operator leave no plan that fits a tile."""
    usable = target.usable_bytes_per_tile
    for op, where in asked.places.items():
        choice = planned.choices.get(op)
        if choice is None:
            continue
        what = f"{operator_name(op)} at {place(op)}"
        if not isfinite(choice.cycles):
            raise InputError(f"{where}: no such plan of {what} can be priced")
        needed = choice.temporary_bytes + choice.resident_bytes
        if needed > usable:
            raise InputError(
                f"{where}: the leanest such plan of {what} takes {needed:,} "
                f"bytes of a tile; target {target.called} has {usable:,}"
            )
        terms = asked.limits.terms.get(op, FREE)
        same = terms.allow(choice.plan.split) and terms.allow_chips(choice.plan.across)
        if not same or (terms.steps and terms.steps != choice.plan.steps):
            raise InputError(
                f'{where}: the planner found no such plan of {what}; give it as a whole, as "plan"'
            )
