"""Turn the stages of a network into functions, and its loop over micro-batches into a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..dialects import control, nn
from ..dialects.levels import NN, STAGED
from ..ir.edit import Edit, source_at
from ..ir.geometry.pipeline import Pipeline, ScheduleName
from ..ir.geometry.tiles import MOST_CHIPS
from ..ir.provenance import place
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .gradients.program import entry_of
from .pipelining.loop import PipelinedLoop
from .pipelining.outline import names_of
from .pipelining.outside import Outside
from .pipelining.scope import Scope
from .pipelining.stages import STAGE, operations_of, set_stage, stage_chips, stage_of


@dataclass(frozen=True)
class PipelineStages(ModulePass):
    """Turn the stages of a network into functions, and its loop over micro-batches into a pipeline.
    nn -> nn, values unchanged.

    A loop in @main whose operations have stages becomes calls of a function for each stage: some
    that fill the pipeline, a loop in which all stages work, and some that flush it. The chips of
    the stages are those that the module lists. Operations of @main that belong to the stages of one
    chip become functions too.

        control.repeat 4 (%0) {                  func.call @stage0(...)
          %1 = nn.relu %x {stage = 0}            control.repeat 3 (...) {
          %2 = nn.tanh %1 {stage = 1}              func.call @stage0(...)
          ...                                      func.call @stage1(...)
        }                                        }
                                                 func.call @stage1(...)

    Attributes:
        schedule: grouped, in which all stages work in each cycle; interleaved, in which no chip
            works on two stages in a cycle; or sequential, in which one stage works in each cycle.
        recompute: whether backward stages compute the values of their forward stage again, from
            what that stage has read, instead of keeping them.
        replicas: the copies of each stage, each on chips of its own.
    """

    name = "pipeline-stages"
    takes = NN
    decided = STAGED
    skips_other_levels = True

    schedule: ScheduleName = "grouped"
    recompute: bool = False
    replicas: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module.

        Raises InputError for a value that flows to an earlier stage, for fewer micro-batches than
        are in work at once, and for less than one replica.
        """
        if not 1 <= self.replicas <= MOST_CHIPS:
            raise InputError(f"replicas {self.replicas}; need 1 to {MOST_CHIPS}")
        main = entry_of(op)
        if main is None or not may_rewrite():
            return
        loops = {each: Scope.of_loop(each) for each in _loops_of(main)}
        if not loops and not any(stage_of(each) is not None for each in main.body.block.ops):
            return
        with Edit(source_at("pipeline the stages", PipelineStages.apply), main) as edit:
            self._pipeline(op, main, loops, edit)
            for each in op.walk():
                if each.attributes.pop(STAGE, None) is not None:
                    edit.modified(each)

    def _pipeline(
        self, module: ModuleOp, main: FuncOp, loops: dict[control.RepeatOp, Scope], edit: Edit
    ) -> None:
        scopes = [*loops.values()] or [Scope(main.body.block)]
        for scope in scopes:
            scope.complete()
        named = (stage_of(each) for each in operations_of(main.body.block))
        count = max((stage + 1 for stage in named if stage is not None), default=0)
        chips = stage_chips(module, max(count, *(scope.number for scope in scopes)))
        apart, names = max(chips) + 1, names_of(module)
        if not loops:
            for each, stage in scopes[0].stages.items():
                set_stage(each, stage)
        for scope in loops.values():
            scope.repeat_lookups(edit)
        pipelines = {loop: self._pipeline_of(loop, scope, chips) for loop, scope in loops.items()}
        for loop, scope in loops.items():
            last = scope.number - 1
            for forward in range(scope.number // 2) if self.recompute else ():
                if pipelines[loop].slots(forward, last - forward):
                    scope.recompute(forward, last - forward, edit)
        inside = {
            each: chips[stage] for scope in loops.values() for each, stage in scope.stages.items()
        }
        carried: dict[Operation, list[int]] = {
            loop: [chips[scope.made[value]] for value in scope.carried]
            for loop, scope in loops.items()
        }
        Outside(module, main, chips, names, edit, self.replicas, apart, inside, carried).run()
        for loop, scope in loops.items():
            own, pipeline = chips[: scope.number], pipelines[loop]
            PipelinedLoop(main, loop, scope, pipeline, own, self.replicas, apart, names, edit).run()

    def _pipeline_of(self, loop: control.RepeatOp, scope: Scope, chips: Sequence[int]) -> Pipeline:
        """The pipeline of a loop. Raises InputError for too few micro-batches."""
        pipeline = Pipeline.of(self.schedule, chips[: scope.number])
        if loop.iterations < pipeline.overlap:
            raise InputError(
                f"{loop.name} at {place(loop)}: {loop.iterations} micro-batches; a "
                f"{self.schedule} pipeline of {scope.number} stages needs at least "
                f"{pipeline.overlap}"
            )
        return pipeline


def _loops_of(main: FuncOp) -> list[control.RepeatOp]:
    """The loops of @main whose operations have stages. Raises InputError for one that stores."""
    found: list[control.RepeatOp] = []
    for op in main.body.block.ops:
        if not isinstance(op, control.RepeatOp) or op.runs is not None:
            continue
        if all(stage_of(each) is None for each in operations_of(op.body.block)):
            continue
        _refuse_stores(op)
        found.append(op)
    return found


def _refuse_stores(loop: Operation) -> None:
    for each in loop.walk():
        if isinstance(each, nn.StoreOp):
            raise InputError(
                f"{each.name} at {place(each)}: a store in a loop of stages; let the loop carry "
                "the value, and store it behind the loop"
            )
