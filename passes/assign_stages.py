"""Decide which stage of a pipeline each operation belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..backends.target import Target
from ..dialects.levels import NN
from ..ir.geometry.pipeline import Pipeline, ScheduleName
from ..ir.node_names import no_such_operator, operations_matching, operations_named
from ..ir.phases import BACKWARD, FORWARD, UPDATE, Phases
from ..ir.provenance import origin, origin_names
from ..ir.provenance import place as place_of
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import DoesNotFit, InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .gradients.micro_batches import STEP as MICRO_BATCH
from .gradients.program import entry_of
from .pipelining.cuts import Work, best_cuts
from .pipelining.scope import Scope
from .pipelining.stages import (
    STAGES,
    loop_over_micro_batches,
    numbers,
    operations_of,
    set_stage,
    stage_of,
)
from .pipelining.sums_apart import sum_apart
from .pipelining.work import makers, work_of
from .planner.shards import OPTION
from .planner.shards_of_training import shard_of_weight
from .plans.planned import asked_target


@dataclass(frozen=True)
class AssignStages(ModulePass):
    """Write the stage of a pipeline on each operation, and the chips of the stages on the module.
    nn -> nn.

    Forward operations are cut before the named ones, in the order of the program. Operations that
    have a stage already keep it, if nothing is named. A backward operation belongs to the stage
    that mirrors the stage of its forward operation: with forward stages 0..e, stage 2e + 1 - s
    mirrors stage s, on the same chip. If several stages add to the gradient of one weight, each has
    a sum of its own.

        %1 = nn.conv ... loc("conv1")             %1 = nn.conv ... {stage = 0 : i64}
        %2 = nn.conv ... loc("conv2")             %2 = nn.conv ... {stage = 1 : i64}
        %3 = ... loc("conv2/backward")            %3 = ... {stage = 2 : i64}
        %4 = ... loc("conv1/backward")            %4 = ... {stage = 3 : i64}

    Attributes:
        cuts: names of nodes, or patterns with *, each of which begins a stage. A name also stands
            for the nodes below it: layer3 for layer3/attention/query.
        stages: how many forward stages there are, if nothing is named. The slowest of them is as
            fast as possible, by the planner's estimates, and each fits its chip.
        chips: the chip of each forward stage; stage s is on chip s if none are given.
        schedule: of the pipeline; it decides how much waits on the chip of a stage.
        target: the target whose chips there are.
        spare: bytes of each tile that chosen stages leave free, besides those that they are
            estimated to need.
    """

    name = "assign-stages"
    takes = NN
    skips_other_levels = True

    cuts: tuple[str, ...] = ()
    stages: int = 0
    chips: tuple[int, ...] = ()
    schedule: ScheduleName = "grouped"
    target: str = ""
    spare: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a cut that is no node, and for chips that the
        target does not have; DoesNotFit for a stage that takes more than a chip."""
        main = entry_of(op)
        if main is None or not may_rewrite():
            return
        _Assignment(self, op, main, asked_target(op, self.target)).run()


@dataclass
class _Assignment:
    """The stages of one module, while they are found."""

    options: AssignStages
    module: ModuleOp
    main: FuncOp
    target: Target

    def __post_init__(self) -> None:
        self.is_training = False
        loop = loop_over_micro_batches(self.main)
        self.scope = Scope(self.main.body.block) if loop is None else Scope.of_loop(loop)
        self.phases = Phases.of(self.module)

    def run(self) -> None:
        ops = self.scope.ops
        floating = self.scope.floating()
        phase = {op: self._phase(op) for op in ops}
        forward: dict[Operation, None] = {}
        for op in ops:
            read = [m for m in makers(op) if m in phase and m not in floating]
            if phase[op] == FORWARD and op not in floating and all(m in forward for m in read):
                forward[op] = None
        self.is_training = BACKWARD in phase.values()
        rest = [op for op in ops if op not in forward and op not in floating]
        own = self._forward([*forward], rest)
        if not own:
            return
        count = max(own.values()) + 1
        chips = self._chips(count)
        stages = 2 * count if self.is_training else count
        of_nodes = self._of_nodes(own)
        for op in rest:
            node = self._node(op, of_nodes) if phase[op] in (BACKWARD, UPDATE) else None
            least = max((own[m] for m in makers(op) if m in own), default=0)
            mirrored = 0 if node is None else stages - 1 - of_nodes[node]
            given = None if self.is_cut else stage_of(op)
            own[op] = max(least, mirrored) if given is None else given
        for op, stage in own.items():
            set_stage(op, stage)
        for op in operations_of(self.main.body.block):
            if op not in own and (node := self._node(op, of_nodes)) is not None:
                set_stage(op, of_nodes[node])
        self.module.attributes[STAGES] = numbers(self._mirrored(chips))
        loop = loop_over_micro_batches(self.main)
        if loop is not None and self.is_training:
            sum_apart(loop, own)

    def _phase(self, op: Operation) -> str | None:
        """The phase of an operation; None if it only collects what micro-batches give."""
        paths = [path.split("/")[-1] for path in _paths(op)]
        return None if MICRO_BATCH in paths else self.phases.phase(op)

    def _mirrored(self, chips: tuple[int, ...]) -> tuple[int, ...]:
        """The chips of all stages, from those of the forward stages."""
        return (*chips, *chips[::-1]) if self.is_training else chips

    def _forward(self, ops: Sequence[Operation], rest: Sequence[Operation]) -> dict[Operation, int]:
        """The stages of forward operations, in the order of the program.

        Args:
            rest: the other operations of a micro-batch.
        """
        if not self.is_cut:
            if all(stage_of(op) is None for op in ops):
                return {}
            self.scope.complete()
            return {op: self.scope.stages[op] for op in ops}
        places = self._named(ops, rest) if self.options.cuts else self._chosen(ops, rest)
        return {op: sum(i >= place for place in places) for i, op in enumerate(ops)}

    @property
    def is_cut(self) -> bool:
        """Whether the forward operations are cut anew."""
        return bool(self.options.cuts or self.options.stages)

    def _named(self, ops: Sequence[Operation], rest: Sequence[Operation]) -> list[int]:
        """The places of the named cuts. Raises InputError and DoesNotFit."""
        at = sorted((self._place(name, ops), name) for name in self.options.cuts)
        for (one, first), (other, second) in pairwise(at):
            if one == other:
                raise InputError(f"--pipeline: {first} and {second} begin the same stage")
        if at[0][0] == 0:
            raise InputError(
                f"--pipeline: {at[0][1]} is the first node, so no stage is before it; name the "
                "nodes that begin the second stage and those after it"
            )
        places = [place for place, _ in at]
        self._check_memory(ops, rest, places)
        return places

    # Cuts that are chosen

    def _chosen(self, ops: Sequence[Operation], rest: Sequence[Operation]) -> list[int]:
        """The best places for cuts. Raises InputError and DoesNotFit."""
        count = self.options.stages
        if count < 1:
            raise InputError(f"--pipeline {count}; need 1 stage or more")
        if count > len(ops):
            raise InputError(f"--pipeline {count}: the network has {len(ops)} operators")
        work, none = self._work(ops, rest), [0] * count
        alone = work.without_working
        # Stashes may be computed again or kept narrow, and operations may be split to need less. So
        # if nothing fits, stashes are not counted, and then not what operations need.
        room = self._room - self.options.spare * self.target.tiles_per_chip
        for counted, depths in ((work, self._depths(count)), (work, none), (alone, none)):
            found = best_cuts(counted, depths, room)
            if found is not None:
                return found
        bounds = [0, *(best_cuts(work, [0] * count, inf) or ()), len(ops)]
        sizes = [work.stage_bytes(begin, end, 0) for begin, end in pairwise(bounds)]
        stage = int(np.argmax(sizes))
        largest = int(np.argmax(work.held))
        raise DoesNotFit(
            f"stage {stage} of {count}, even with the best cuts,",
            ceil(sizes[stage]),
            self._room,
            units="bytes of a chip",
            remedy=self._too_large(ops[largest], ceil(work.held[largest]))
            if work.held[largest] > self._room
            else "need more stages or a narrower type",
        )

    def _too_large(self, op: Operation, held: int) -> str:
        """What to do about an operation that no chip has room for."""
        kept = "its weight and the sum of its gradients" if self.is_training else "its weight"
        over, chips, name = held - self._room, self.target.chips, origin(op)
        shard = None if name is None else shard_of_weight(op, name, chips)
        cut = "" if shard is None else f", and --replicas {chips} {OPTION} {shard} cuts this one"
        return (
            f"{place_of(op)} alone keeps {held} bytes there ({kept}), {over} too many, so no cut "
            f"fits; without --pipeline, operators are cut across chips{cut}"
        )

    def _check_memory(
        self, ops: Sequence[Operation], rest: Sequence[Operation], places: Sequence[int]
    ) -> None:
        """Raise DoesNotFit for a stage that takes more than a chip, with cuts that would do."""
        work, none = self._work(ops, rest, with_cycles=False), [0] * (len(places) + 1)
        work = work.without_working
        for stage, (begin, end) in enumerate(pairwise([0, *places, len(ops)])):
            size = work.stage_bytes(begin, end, 0)
            if size <= self._room:
                continue
            whole = self._work(ops, rest)
            better = best_cuts(whole, none, self._room)
            better = better or best_cuts(whole.without_working, none, self._room)
            names = [origin(ops[place]) or ops[place].name for place in better or ()]
            remedy = f"--pipeline {','.join(names)} fits" if names else "need more stages"
            raise DoesNotFit(
                f"stage {stage}, which begins at {place_of(ops[begin])},",
                ceil(size),
                self._room,
                units="bytes of a chip",
                remedy=remedy,
            )

    @property
    def _room(self) -> int:
        return self.target.usable_bytes_per_tile * self.target.tiles_per_chip

    def _depths(self, count: int) -> list[int]:
        """How many micro-batches wait in the stashes of each forward stage."""
        if not self.is_training or loop_over_micro_batches(self.main) is None:
            return [0] * count
        chips = self._mirrored(self._chips(count))
        pipeline = Pipeline.of(self.options.schedule, chips)
        return [pipeline.slots(s, len(chips) - 1 - s) + 1 for s in range(count)]

    def _work(
        self, ops: Sequence[Operation], rest: Sequence[Operation], *, with_cycles: bool = True
    ) -> Work:
        """What the operators cost."""
        at = self._of_nodes({op: i for i, op in enumerate(ops)})
        of_ops = {op: i for i, op in enumerate(ops)}
        others: dict[Operation, int] = {}
        for op in rest:
            node = self._node(op, at)
            # What collects gradients belongs to the operation whose gradients they are.
            read = [of_ops[maker] for maker in makers(op) if maker in of_ops]
            others[op] = of_ops[op] = max(read, default=0) if node is None else at[node]
        return work_of(
            *(self.main, ops, others, self.target),
            is_trained=self.is_training,
            with_cycles=with_cycles,
        )

    def _place(self, name: str, ops: Sequence[Operation]) -> int:
        """Where the first operation of a node stands."""
        found = operations_named(name, ops) or operations_matching(name, ops)
        found = found or operations_matching(f"{name}/*", ops)
        if not found:
            why = no_such_operator(name, ops, self.scope.ops, "is in no forward stage")
            raise InputError(f"--pipeline: {name}: {why}")
        return ops.index(found[0])

    def _chips(self, count: int) -> tuple[int, ...]:
        """The chip of each forward stage. Raises InputError."""
        chips = self.options.chips or tuple(range(count))
        if len(chips) != count:
            raise InputError(
                f"--pipeline: {len(chips)} chips for {count} stages; need one for each stage"
            )
        strays = [chip for chip in chips if not 0 <= chip < self.target.chips]
        if strays:
            raise InputError(
                f"--pipeline: a stage on chip {strays[0]}; target {self.target.called} has chips "
                f"0..{self.target.chips - 1}"
            )
        return chips

    def _of_nodes(self, own: dict[Operation, int]) -> dict[str, int]:
        """The last forward stage of each node."""
        found: dict[str, int] = {}
        for op, stage in own.items():
            for path in _paths(op):
                found[path] = max(stage, found.get(path, 0))
        return found

    def _node(self, op: Operation, of_nodes: dict[str, int]) -> str | None:
        """The node of the forward phase that an operation belongs to; None if it is not known."""
        for path in _paths(op):
            node = self.phases.node_of(path)
            while node and node not in of_nodes:
                node = node.rpartition("/")[0]
            if node:
                return node
        return None


def _paths(op: Operation) -> list[str]:
    return [path for name in origin_names(op) for path in name.split("+")]
