"""The figures of one operator's plan: phases, bytes, utilisation, and its limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, prod
from typing import Any

import numpy as np

from ....backends.prices.workload import macs_of, roles
from ....backends.target import ConvUnits, Target
from ....dialects.abele import Plan, PlanAttr
from ....ir.geometry.space import Dim
from ....ir.phases import FORWARD
from ....passes.planner.choice import Choice
from ....passes.planner.price import block_elements
from ....passes.planner.problem import Problem
from ....passes.planner.question import Question
from ....passes.planner.serial import considered, plans
from ....passes.planner.terms import FREE
from ....passes.plans.steps import takes_steps

WORTH_SAYING = 1.02
"""A faster plan that was ruled out is named only if it is faster by this factor."""

NO_BOUND = 2**62
"""More bytes than any tile has."""


UNITS_ALONG = {"amp": "out_channels", "swapped": "field"}
"""The dimensions that the convolution units of a tile share, by method."""


@dataclass(frozen=True)
class RunnerUp:
    """The best plan with another split.

    Attributes:
        slower: its extra cycles, as a share of the chosen plan's.
    """

    plan: Plan
    cycles: float
    slower: float


@dataclass(frozen=True)
class OperatorPlan:
    """The plan of one operator, in cycles per execution and bytes on the fullest tile.

    Attributes:
        node: the names of all nodes that the operator was made from.
        layer: what tables call it.
        times: executions per run. The phases add up to cycles; combine_cycles are those of the
            compute that merges partials, with its exchange and sync.
        limit_bytes: the limit for temporary_bytes.
        utilisation: the share of the peak of all tiles that the operator reaches; `peak` names what
            is compared: MACs, bytes through the vector units, or bytes over the exchange.
        limited_by: the limit, in words.
        partials: the type in which sums of products are kept between their parts; "" for other
            operators.
        phase: the phase of a step of training; forward in any other program.
        line: the line of the user's file that the operator comes from; "" if it is not known.
        chips: those on which its cells lie, and those that merge its partials.
    """

    node: str
    layer: str
    op: str
    dims: tuple[Dim, ...]
    plan: Plan
    times: int
    cycles: float
    compute_cycles: float
    exchange_cycles: float
    sync_cycles: float
    combine_cycles: float
    temporary_bytes: int
    resident_bytes: int
    limit_bytes: int
    tiles: int
    utilisation: float
    peak: str
    limited_by: str
    partials: str
    runner_up: RunnerUp | None
    phase: str
    line: str
    chips: tuple[int, ...] = (0,)

    @property
    def space(self) -> str:
        """The iteration space, without dimensions of size 1: "m=64 n=128 k=256"."""
        return " ".join(f"{d.name}={d.size}" for d in self.dims if d.size > 1) or "-"

    @property
    def split(self) -> str:
        """The parts of the dimensions that are split, and the steps: "m=4 n=32, k in 8 around
        n"."""
        return split_text(self.dims, self.plan)

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        found = asdict(self)
        found["dims"] = {d.name: d.size for d in self.dims}
        found["plan"] = PlanAttr(self.plan).text()
        if self.runner_up is not None:
            found["runner_up"]["plan"] = PlanAttr(self.runner_up.plan).text()
        return found


def split_text(dims: tuple[Dim, ...], plan: Plan) -> str:
    """The parts of split dimensions, and the steps; "-" if nothing is split.

    n=4x16 is 64 parts of n, 16 on each of 4 chips.
    """
    chips = plan.across or (1,) * len(plan.split)
    parts = [
        f"{d.name}={f'{c}x' if c > 1 else ''}{k // c}"
        for d, k, c in zip(dims, plan.split, chips, strict=False)
        if k > 1
    ]
    texts = [" ".join(parts)] if parts else []
    for i, n in enumerate(plan.steps):
        if n > 1:
            ring = plan.ring[i] if plan.ring else -1
            texts.append(f"{dims[i].name} in {n}" + (f" round {dims[ring].name}" * (ring >= 0)))
    return ", ".join(texts) or "-"


def figures(
    node: str,
    layer: str,
    op: str,
    times: int,
    question: Question,
    choice: Choice,
    given: bool = False,
    others: Callable[[Question], Sequence[Choice]] = considered,
    phase: str = FORWARD,
    line: str = "",
) -> OperatorPlan:
    """The figures of the choice that answers a question.

    Args:
        given: the plan existed already and was not searched for.
        others: the plans, fastest first, of which the best with another split is the runner-up;
            `considered` prices every plan on the shortlist, and `plans` only the most promising
            ones, which the search has priced already.
        phase: of a step of training.
        line: of the user's file.
    """
    problem, target = question.problem, question.target
    merge = choice.merge
    limit = problem.terms.temporary_bytes
    used, peak = _utilisation(problem, choice, target)
    return OperatorPlan(
        node=node,
        layer=layer,
        op=op,
        dims=problem.structure.space.dims,
        plan=choice.plan,
        times=times,
        cycles=choice.cycles,
        compute_cycles=choice.compute_cycles - (merge.compute_cycles if merge else 0),
        exchange_cycles=choice.exchange_cycles - (merge.exchange_cycles if merge else 0),
        sync_cycles=choice.sync_cycles - (merge.sync_cycles if merge else 0),
        combine_cycles=merge.cycles if merge else 0,
        temporary_bytes=choice.temporary_bytes,
        resident_bytes=choice.resident_bytes,
        limit_bytes=target.usable_bytes_per_tile if limit is None else limit,
        tiles=choice.cells,
        utilisation=used,
        peak=peak,
        limited_by=_limited_by(question, choice, given),
        partials=problem.partials_dtype.name if macs(problem) else "",
        runner_up=_runner_up(others(question), choice),
        phase=phase,
        line=line,
    )


# Utilisation


def macs(problem: Problem) -> int:
    """Multiplications and additions of a sum of products; 0 for other bodies."""
    if problem.moves or roles(problem.structure) is None:
        return 0
    return macs_of(problem.structure)


def _units(problem: Problem, target: Target) -> ConvUnits | None:
    return target.conv_units(problem.number_dtype.name, problem.partials_dtype.name)


def peak_macs(problem: Problem, target: Target) -> float:
    """The peak MACs per cycle of one tile, for the types of a sum of products."""
    units = _units(problem, target)
    if units is not None:
        return units.macs_per_cycle
    itemsize = problem.number_dtype.itemsize
    return max(target.vector.vector_bytes / itemsize, 1.0)


def _utilisation(problem: Problem, choice: Choice, target: Target) -> tuple[float, str]:
    """The share of the machine's peak that is reached, and the peak's name."""
    space = problem.structure.space
    machine = target.tiles * max(choice.cycles, 1)
    work = macs(problem)
    if work:
        return work / (machine * peak_macs(problem, target)), "MACs"
    whole = np.array([space.sizes], np.int64)
    result = int(block_elements(space.results[0], whole)[0]) * problem.result_dtype.itemsize
    if problem.moves:
        return result / (machine * target.exchange.receive_bytes_per_cycle), "exchange"
    taken = sum(
        int(block_elements(access, whole)[0]) * dtype.itemsize
        for access, dtype in zip(space.operands, problem.operand_dtypes, strict=True)
    )
    return (taken + result) / (machine * target.vector.vector_bytes), "vector"


# Limits


def _limited_by(question: Question, choice: Choice, given: bool) -> str:
    """The limit of an operator's speed, in words: a constraint, memory, or its largest phase."""
    kept = _kept_away(question, choice, given)
    if kept:
        return kept
    merge = choice.merge
    phases = {
        "compute": choice.compute_cycles - (merge.compute_cycles if merge else 0),
        "exchange": choice.exchange_cycles - (merge.exchange_cycles if merge else 0),
        "sync": choice.sync_cycles - (merge.sync_cycles if merge else 0),
        "combine": merge.cycles if merge else 0,
    }
    name = max(phases, key=lambda phase: phases[phase])
    text = f"{name} {phases[name] / max(choice.cycles, 1):.0%}"
    if name != "compute" or takes_steps(choice.plan):
        return text
    wasted = padding(question.problem, choice.plan, question.target)
    return f"{text}, {wasted:.0%} padding" if wasted >= 0.005 else text


def _kept_away(question: Question, choice: Choice, given: bool) -> str:
    """The constraint or the shortage of memory that rules out a faster plan; "" if there is
    none."""
    problem, usable = question.problem, question.target.usable_bytes_per_tile
    limit = problem.terms.temporary_bytes
    if limit is not None and choice.temporary_bytes > limit > 0:
        return f"memory: no plan keeps {limit:,} bytes"
    chosen = replace(problem.terms, temporary_bytes=None)
    unbounded = replace(question, bound=NO_BOUND)
    within = _fastest(replace(unbounded, problem=replace(problem, terms=chosen)))
    best = _fastest(replace(unbounded, problem=replace(problem, terms=FREE)))
    if choice.cycles <= WORTH_SAYING * best.cycles or choice.cycles == inf:
        return ""
    if given or within.cycles > WORTH_SAYING * best.cycles:
        return f"what was asked: {_faster(choice, best)} without"
    faster = _faster(choice, within)
    if within.temporary_bytes > max(choice.temporary_bytes, min(limit or 0, question.bound)):
        return f"memory: {faster} with {within.temporary_bytes / usable:.2g} of a tile"
    if within.resident_bytes > choice.resident_bytes:
        return f"memory: {faster} with {within.resident_bytes:,} bytes of weights"
    return f"its neighbours: {faster} alone"


def _fastest(question: Question) -> Choice:
    """The fastest plan, in one step unless the question asks for several."""
    return plans(question, in_time=False)[0]


def _faster(choice: Choice, other: Choice) -> str:
    return f"{1 - other.cycles / choice.cycles:.0%} faster"


def padding(problem: Problem, plan: Plan, target: Target) -> float:
    """The share of work lost because not all cells are as large as the largest."""
    sizes = problem.structure.space.sizes
    cell = [-(-n // k) for n, k in zip(sizes, plan.split, strict=True)]
    done = [float(n) for n in cell]
    parts = roles(problem.structure)
    units = _units(problem, target) if parts is not None else None
    if parts is not None and units is not None and plan.method in UNITS_ALONG:
        along = getattr(parts, UNITS_ALONG[plan.method])
        for dims, grain in ((parts.in_channels, units.in_grain), (along, units.units)):
            together = prod(cell[d] for d in dims)
            if dims:
                done[dims[0]] *= -(-together // grain) * grain / together
    work = prod(done) * prod(plan.split)
    return 1 - prod(sizes) / work if work else 0.0


def _runner_up(others: Sequence[Choice], choice: Choice) -> RunnerUp | None:
    cuts = choice.plan.split, choice.plan.steps
    for other in others:
        if (other.plan.split, other.plan.steps) != cuts and other.cycles < inf:
            slower = other.cycles / choice.cycles - 1 if choice.cycles else 0.0
            return RunnerUp(other.plan, other.cycles, slower)
    return None
