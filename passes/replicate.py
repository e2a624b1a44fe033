"""Cut the batch of a program across chips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from ..backends.target import Target
from ..dialects import nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..ir.edit import Edit, source_at
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .gradients.emit import Emitter
from .gradients.micro_batches import read_axes
from .gradients.program import drop_groups, entry_of, inputs_of
from .planner.shards import read_shards
from .planner.shards_of_training import in_layers
from .plans.planned import asked_target
from .replicas.following import Following
from .replicas.partial_sums import PartialSums, loops_of
from .replicas.rounds import DIRECT, Method, Way, chosen, summed
from .replicas.written import follow, write
from .train import SETTINGS

STEP = "replicas"
"""The last part of the location of operations that merge the sums of replicas."""


@dataclass(frozen=True)
class Replicate(ModulePass):
    """Cut the batch across chips: each of several replicas computes the samples of its own.

    nn -> nn, values unchanged but for the order of sums. The module records the number of replicas
    and the axis of the samples of each input. plan-splits then cuts the dimension that spans
    samples across the chips of all replicas, in every operation that has one. Weights are copied to
    each.

    Sums over samples that a loop over micro-batches collects, such as those of gradients, get a
    leading axis of replicas. So each chip adds up its own, and chips exchange bytes only once,
    after the loop.

        %g = nn.reduce "sum" %x axes [0] : (tensor<8x4xf32>) -> tensor<4xf32>
        %t = nn.add %total, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

        %g = nn.compute(%x) space <[r = 2, d1 = 4, d0 = 4 reduction] ...> body <identity sum>
          : (tensor<8x4xf32>) -> tensor<2x4xf32>
        %t = nn.add %total, %g : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>

    Attributes:
        replicas: how many there are; they divide the chips and the batch.
        combine: how sums of replicas are merged: in one exchange (direct), in rounds around a ring
            of chips (ring), in rounds both ways (both), or by sums that meet in the middle
            (middle). auto takes the one with the fewest cycles, for each sum.
        batch_axes: the axis of the samples of an input, as INPUT:AXIS, where it is not the first;
            INPUT:none for an input that is the same for all samples.
        target: as for plan-splits.
        shard: which dimensions of which operators are cut across chips otherwise, as for
            plan-splits. Replicas keep no parts of the gradients of such layers.
    """

    name = "replicate"
    takes = NN
    skips_other_levels = True

    replicas: int = 1
    combine: Way = "auto"
    batch_axes: tuple[str, ...] = ()
    target: str = ""
    shard: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for replicas that the chips or the batch do not
        have."""
        target = asked_target(op, self.target)
        check_chips(self.replicas, target)
        main = entry_of(op)
        if main is None or not may_rewrite():
            return
        inputs = inputs_of(main)
        axes = read_axes(self.batch_axes, inputs)
        write(op, self.replicas, self._axes(inputs, axes, _is_in_steps(op)))
        if self.replicas == 1:
            return
        found = follow(op)
        check_batch(found, self.replicas)
        drop_groups(op)
        with Edit(source_at("merge replicas", Replicate.apply), main) as edit:
            merging = _Merging(self, target, edit)
            whole = set(in_layers([each.name for each in read_shards(self.shard)], op))
            sums = PartialSums(self.replicas, found.dims, edit, merging.combined, whole)
            ops = [*op.walk()]
            for loop in loops_of(ops):
                sums.carry(loop)
            sums.clean()
            for each in ops:
                if each.parent is not None and sums.is_sum(each):
                    merging.replace(sums, each)

    def _axes(
        self, inputs: Mapping[str, SSAValue], given: Mapping[str, int | None], in_steps: bool
    ) -> dict[int, tuple[int, ...]]:
        """The axes of samples of each input, by its number."""
        found: dict[int, tuple[int, ...]] = {}
        for i, (name, value) in enumerate(inputs.items()):
            axis, rank = given.get(name, 0), len(nn.shape_of(value))
            if axis is None:
                continue
            # With several steps in a run, the first axis of an input numbers them.
            axis += in_steps
            if axis >= rank:
                if name in given:
                    raise InputError(
                        f"batch_axes {name}:{given[name]}: input {name!r} has {rank} axes"
                    )
                continue
            found[i] = (0, axis) if in_steps else (axis,)
        return found


@dataclass
class _Merging:
    """Merges the sums of replicas."""

    options: Replicate
    target: Target
    edit: Edit

    def method(self, parts_type: tuple[tuple[int, ...], int]) -> Method:
        """The way to merge sums of a shape, in elements of so many bytes."""
        shape, itemsize = parts_type
        if self.options.combine != "auto":
            return self.options.combine
        return chosen(prod(shape) * itemsize, self.options.replicas, self.target)

    def combined(self, parts: SSAValue, before: Operation) -> SSAValue:
        """The sum of the parts of all replicas, computed in front of an operation."""
        _, *shape = nn.shape_of(parts)
        itemsize = numpy_dtype(nn.element_of(parts)).itemsize
        source = parts.owner if isinstance(parts.owner, Operation) else before
        emit = Emitter(self.edit, before, source, STEP)
        return summed(emit, parts, self.method((tuple(shape), itemsize)))

    def replace(self, sums: PartialSums, op: Operation) -> None:
        """Merge the parts of a sum in rounds, unless one exchange is faster."""
        value = op.results[0]
        itemsize = numpy_dtype(nn.element_of(value)).itemsize
        if self.method((nn.shape_of(value), itemsize)) != DIRECT:
            self.edit.replace(op, [self.combined(sums.part(value), op)])


def check_chips(replicas: int, target: Target) -> None:
    """Raise InputError unless the chips of a target can be shared by so many replicas."""
    if replicas < 1:
        raise InputError(f"replicas {replicas}; need 1 or more")
    if replicas > target.chips:
        raise InputError(
            f"replicas {replicas}; target {target.called} has {target.chips} "
            f"chip{'s' * (target.chips > 1)}"
        )
    if target.chips % replicas:
        raise InputError(
            f"replicas {replicas} on {target.chips} chips of target {target.called}; need a number "
            "that divides them"
        )


def check_batch(found: Following, replicas: int) -> None:
    """Raise InputError unless there are samples, and replicas can share them equally."""
    counts = Counter(spans[0].count for spans in found.dims.values())
    if not counts:
        raise InputError(
            f"replicas {replicas}: no operation has a dimension of samples; need inputs with "
            "samples, along their first axis or the one that batch_axes names"
        )
    ((samples, _),) = counts.most_common(1)
    if samples % replicas:
        raise InputError(
            f"replicas {replicas} of {samples} samples at a time; need a number that divides them"
        )


def _is_in_steps(module: ModuleOp) -> bool:
    """Whether a run of a program does several steps of training."""
    settings = module.attributes.get(SETTINGS)
    if not isinstance(settings, DictionaryAttr):
        return False
    steps = settings.data.get("steps")
    return isinstance(steps, IntegerAttr) and steps.value.data > 1
