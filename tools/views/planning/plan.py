"""Plan all operators of a model, with the figures of each plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite, prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from ....backends.clocks.section import MOST_TIMES
from ....backends.prices.energy import add_macs, joules
from ....backends.target import Target
from ....dialects import control, nn
from ....dialects.abele import Plan, PlanAttr
from ....dialects.dtypes import element_type
from ....dialects.levels import NN, level_of
from ....ir.node_names import operations_named
from ....ir.pass_manager import PassManager
from ....ir.phases import Phases, several
from ....ir.provenance import at, line_of, locate, origin, origin_names, place
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.support.suggestions import suggestion
from ....ir.upstream import ModuleOp
from ....passes.planner.choice import Choice
from ....passes.planner.question import Question
from ....passes.planner.relaxed import Relaxed
from ....passes.planner.serial import traded
from ....passes.planner.storing_once import Asked, store_once
from ....passes.plans.fused import FusedGroups, operator_name
from ....passes.plans.sparse_prices import SparsePrice, read_sparse_prices
from ...driver.block_buckets import bucket_blocks
from ...driver.compile_anew import read_model, tailored, with_chosen
from ...driver.energy import energy_figures
from ...driver.pipelines import make_parts
from ...driver.program import ReadProgram
from ...driver.request import Request
from ...driver.tensor_sizes import refuse_tensors_larger_than
from ...driver.training import make_train
from ...driver.users_pipeline import with_constrained_sums
from ...driver.verifiers import verifiers
from ..layer_names import layer_name, names_in
from .figures import OperatorPlan, figures, macs, peak_macs

DTYPES: Mapping[str, str] = {"f16": "float16", "f32": "float32"}
"""The types of a product of matrices, as --dtype spells them."""


@dataclass(frozen=True)
class ProgramPlan:
    """The plans of a program.

    Attributes:
        operators: in program order.
        cycles: of a run, as the planner estimates.
        resident_bytes: weights and constants on the fullest tile.
        live_bytes: values and temporaries at the worst moment, as if one tile were the busiest at
            all times.
        bound_bytes: what one operator may take of a tile so that all fit together.
        utilisation: MACs of all operators, as a share of what the machine could do in that time.
        one_chip, alone_cycles: as in NetworkPlan.
        energy: figures of energy and area, as far as the target has facts. A plan does not say how
            many bytes move.
        sparse: the products that were looked at for zeros, in program order.
    """

    title: str
    target: Target
    proportion: float
    operators: tuple[OperatorPlan, ...]
    relaxed: tuple[Relaxed, ...]
    cycles: float
    resident_bytes: int
    live_bytes: int
    bound_bytes: int
    utilisation: float
    one_chip: bool
    alone_cycles: float
    sparse: tuple[SparsePrice, ...]
    energy: Mapping[str, Any]

    @property
    def between_cycles(self) -> float:
        """Cycles of a run outside of operators, such as copies of values that loops carry."""
        return self.cycles - sum(each.times * each.cycles for each in self.operators)

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases of a step of training, in order; empty for any other program."""
        return several(each.phase for each in self.operators)

    @property
    def fits(self) -> bool:
        """Whether everything fits on the fullest tile, by the planner's estimate."""
        return self.resident_bytes + self.live_bytes <= self.target.usable_bytes_per_tile

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return {
            "title": self.title,
            "target": self.target.spelling(),
            "tiles": self.target.tiles,
            "usable_bytes_per_tile": self.target.usable_bytes_per_tile,
            "memory_proportion": self.proportion,
            "cycles": self.cycles,
            "between_cycles": self.between_cycles,
            "resident_bytes": self.resident_bytes,
            "live_bytes": self.live_bytes,
            "bound_bytes": self.bound_bytes,
            "fits": self.fits,
            "utilisation": self.utilisation,
            **self.energy,
            "chips": 1 if self.one_chip else self.target.chips,
            "one_chip_cycles": self.alone_cycles if isfinite(self.alone_cycles) else None,
            "relaxed_limits": [asdict(each) for each in self.relaxed],
            "operators": [each.to_dict() for each in self.operators],
            "sparse_products": [each.to_dict() for each in self.sparse],
        }


@dataclass(frozen=True)
class PlannedModel:
    """A planned program, with methods that return the plans of single operators.

    Attributes:
        names: other names for some nodes, which tables show.
    """

    plan: ProgramPlan
    questions: Mapping[Operation, Question]
    choices: Mapping[Operation, Choice]
    names: Mapping[str, str]

    def operator(self, name: str) -> Operation:
        """The first planned operation with a name. Raises InputError if there is none."""
        names: dict[str, Operation] = {}
        for op in self.questions:
            for each in (_node(op), _layer(op, self.names), *origin_names(op)):
                names.setdefault(each, op)
        in_file = operations_named(name, self.questions)
        if name not in names and in_file:
            return in_file[0]
        if name not in names:
            hint = suggestion(name, names, "abele plan without --operator lists them")
            raise InputError(f"no operator {name!r}{hint}")
        return names[name]

    def trade_offs(self, op: Operation) -> TradeOffs:
        """The plans that the planner could have chosen for an operation."""
        question, chosen = self.questions[op], self.choices[op]
        every = (chosen, *(each for each in traded(question) if each.plan != chosen.plan))
        return TradeOffs(
            _layer(op, self.names), question, chosen, tuple(sorted(every, key=lambda c: c.cycles))
        )


@dataclass(frozen=True)
class TradeOffs:
    """The fully priced plans of one operator, fastest first."""

    node: str
    question: Question
    chosen: Choice
    choices: tuple[Choice, ...]

    @property
    def pareto(self) -> tuple[Choice, ...]:
        """The plans that no other plan beats in cycles, resident and temporary bytes together."""

        def figures_of(c: Choice) -> tuple[float, int, int]:
            return c.cycles, c.resident_bytes, c.temporary_bytes

        kept: dict[tuple[float, int, int], Choice] = {}
        for each in self.choices:
            own = figures_of(each)
            if not any(all(a <= b for a, b in zip(o, own, strict=True)) for o in kept):
                kept[own] = each
        return tuple(kept.values())

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        best = set(map(id, self.pareto))
        return {
            "node": self.node,
            "plans": [
                {
                    "plan": PlanAttr(each.plan).text(),
                    "cycles": each.cycles,
                    "resident_bytes": each.resident_bytes,
                    "temporary_bytes": each.temporary_bytes,
                    "tiles": each.cells,
                    "pareto": id(each) in best,
                    "chosen": each is self.chosen,
                }
                for each in self.choices
            ],
        }


def plan_model(request: Request, program: ReadProgram | None = None) -> PlannedModel:
    """Plan a model.

    Raises InputError, and DoesNotFit for a tensor that the target cannot hold.

    Args:
        request: its passes run on the program first, such as "nn".
        program: instead of the model's.
    """
    request = with_chosen(request.settled())
    passes, on_step = request.passes, request.on_step
    extensions, context = request.extensions, request.extensions.context()
    on_step("read")
    names = names_in(request.model)
    program = program or read_model(request, context)
    if program.level != NN:
        raise InputError(f"{program.path}: planned already, at {program.level}; need the model")
    machine = request.machine(program)
    pipeline = with_constrained_sums(
        extensions.pipeline(passes, machine.spelling()), request.constraints
    )
    bucket_blocks(program, context, machine.spelling())
    pipeline = tailored(pipeline, request, program, machine)
    if request.train is not None:
        on_step("train")
        make_train(request.train, program, pipeline, context)
    make_parts(request.micro_batches, request.train, program)
    refuse_tensors_larger_than(program.module, machine)
    on_step(f"passes: {passes}")
    PassManager(pipeline, verifiers(program.level)).run(context, program.module)
    level = level_of(program.module)
    if level != NN:
        raise InputError(f"pipeline '{passes}' ends at {level}; need passes that stay at {NN}")
    on_step("plan")
    asked = Asked(request.constraints or "", request.memory_proportion, shards=tuple(request.shard))
    store_once(program.module, machine, asked)
    FusedGroups(program.module).fuse()
    planned = asked.planned(program.module, machine)
    network = planned.network
    phases = Phases.of(program.module)
    rows: list[OperatorPlan] = []
    for op, choice in network.choices.items():
        on_step(f"{_node(op)}: runner-up")
        rows.append(
            _on_chips(
                figures(
                    _node(op),
                    _layer(op, names),
                    operator_name(op),
                    executions_of(op),
                    network.questions[op],
                    choice,
                    op in planned.given,
                    phase=phases.phase(op),
                    line=_line_beside(_node(op), op),
                ),
                network.plans[op],
                machine,
            )
        )
    work = sum(
        executions_of(op) * macs(each.problem) / peak_macs(each.problem, machine)
        for op, each in network.questions.items()
    )
    found = ProgramPlan(
        title=f"{program.path}, planned for {machine.label()}",
        target=machine,
        proportion=planned.limits.proportion,
        operators=tuple(rows),
        relaxed=planned.relaxed(machine),
        cycles=network.cycles,
        resident_bytes=network.resident_bytes,
        live_bytes=network.live_bytes,
        bound_bytes=min((each.bound for each in network.questions.values()), default=0),
        utilisation=work / (machine.tiles * max(network.cycles, 1)),
        one_chip=network.one_chip,
        alone_cycles=network.alone_cycles,
        sparse=read_sparse_prices(program.module),
        energy=energy_figures(
            joules(lambda: _macs(network.questions, machine), network.cycles, machine), machine
        ),
    )
    return PlannedModel(found, network.questions, network.choices, names)


def _macs(questions: Mapping[Operation, Question], target: Target) -> Counter[str]:
    """The multiplications and additions of a run, by the name of the facts of their energy."""
    found: Counter[str] = Counter()
    for op, each in questions.items():
        add_macs(found, each.problem.workload(target), executions_of(op))
    return found


def product_of_matrices(m: int, k: int, n: int, dtype: str, target: Target) -> ReadProgram:
    """A program with one product: an input [m, k] times a weight [k, n].

    Raises InputError for a dtype that is not in DTYPES, and DoesNotFit for a matrix that all tiles
    together cannot hold.
    """
    if dtype not in DTYPES:
        raise InputError(f"dtype {dtype!r}; need one of {', '.join(DTYPES)}")
    kind = np.dtype(DTYPES[dtype])
    available = target.usable_bytes_per_tile * target.tiles
    for shape in ((m, k), (k, n), (m, n)):
        if prod(shape) * kind.itemsize > available:
            raise DoesNotFit(
                f"{kind.name}{list(shape)}",
                prod(shape) * kind.itemsize,
                available,
                units="bytes on all tiles together",
                remedy="smaller matrices, or a target with more memory",
            )
    element = element_type(kind)
    taken = nn.tensor((m, k), element)
    block = Block(arg_types=[taken])
    weights = nn.LoadOp("weights", nn.tensor((k, n), element))
    product = nn.MatMulOp(block.args[0], weights.result)
    block.add_ops([weights, product, ReturnOp(product.result)])
    signature = FunctionType.from_lists([taken], [product.result.type])
    main = FuncOp("main", signature, Region(block))
    module = ModuleOp([nn.StateOp("weights", np.zeros((k, n), kind)), main])
    locate(module.walk(), at("matmul"))
    return ReadProgram(module, NN, f"matmul {m},{k},{n} {dtype}")


def _on_chips(row: OperatorPlan, plan: Plan, machine: Target) -> OperatorPlan:
    """The figures of an operator, with its plan and the chips that it has on the machine."""
    ends = [plan] if plan.combine is None else [plan, plan.combine]
    used = (each.tiles.used_chips(machine.tiles_per_chip) for each in ends)
    return replace(row, plan=plan, chips=tuple(sorted({int(chip) for e in used for chip in e})))


def _node(op: Operation) -> str:
    return origin(op) or f"{op.name} at {place(op)}"


def _line_beside(name: str, op: Operation) -> str:
    """The line of the user's file that an operation comes from; "" if the name is that line."""
    line = line_of(op)
    return "" if line == name else line


def _layer(op: Operation, names: Mapping[str, str]) -> str:
    return layer_name(origin_names(op), names) or _node(op)


def executions_of(op: Operation) -> int:
    """The product of the known trip counts of all loops around an operation."""
    times, outer = 1, op.parent_op()
    while outer is not None:
        times *= max(outer.iterations, 1) if isinstance(outer, control.RepeatOp) else 1
        outer = outer.parent_op()
    return min(times, MOST_TIMES)
