"""The passes that the default pipeline runs for programs that have what they change."""

from __future__ import annotations

from collections.abc import Sequence

from ...backends.target import Target
from ...dialects import nn
from ...dialects.levels import NN
from ...ir.upstream import ModuleOp, ModulePass
from ...passes.fuse_chains import FuseChains
from ...passes.keep_remote import KeepRemote
from ...passes.merge_products import MergeProducts, products_of_a_value
from ...passes.narrow_floats import NarrowFloats
from ...passes.pipeline_stages import PipelineStages
from ...passes.read_narrow import ReadNarrow, narrow_summaries
from ...passes.read_through import ReadThrough, moved_products
from ...passes.replicate import Replicate
from ...passes.sink_loads import SinkLoads
from ...passes.summarize_softmax import SummarizeSoftmax, has_short_softmax
from ...passes.take_known_rows import TakeKnownRows, known_lookups
from .program import ReadProgram


def with_products(
    pipeline: Sequence[ModulePass], program: ReadProgram, target: Target, rows: int = 0
) -> tuple[ModulePass, ...]:
    """The default pipeline, with passes for products of one value, for transposed products and for
    lookups of constant rows, if the program has such.

    Products are merged before the passes of nn, so that fold-constants joins their weights, and
    behind the passes of options, such as narrow-floats and multiply-sparse, so that they have the
    types that they are computed in, and sparse ones stay apart. They are not merged if states are
    remote: users name these, and a joined weight has another name. Products read through transposes
    once these have been simplified, before groups are made. The two reductions of a softmax become
    one in programs that store values for their next run, as steps of decoders do: these have a
    softmax in each layer, and little else to compute. Other programs would save one superstep, but
    could no longer be kept bound in a file, because no kernel computes both sums.

    Args:
        pipeline: the default one, to which options may have added passes.
        rows: as for merge-products.
    """
    if program.level != NN:
        return tuple(pipeline)
    found, module = [*pipeline], program.module
    before = _first(found, FuseChains)
    if before is not None:
        late: list[ModulePass] = [ReadThrough()] if moved_products(module) else []
        late += [TakeKnownRows(_machine(target, found).spelling())] if known_lookups(module) else []
        late += [SummarizeSoftmax()] if _is_step(module) else []
        late += [ReadNarrow()] if _reads_narrow(module, found) else []
        found[before:before] = late
    first = _first(found, SinkLoads)
    is_remote = _first(found, KeepRemote) is not None
    if first is not None and not is_remote and products_of_a_value(module):
        found.insert(first, MergeProducts(_machine(target, found).spelling(), rows))
    return tuple(found)


def _first(pipeline: Sequence[ModulePass], kind: type[ModulePass]) -> int | None:
    """The place of the first pass of a kind; None if there is none."""
    return next((i for i, each in enumerate(pipeline) if isinstance(each, kind)), None)


def _machine(target: Target, pipeline: Sequence[ModulePass]) -> Target:
    """The machine that prices products: one chip, if each chip gets a part of the program."""
    parted = any(isinstance(each, PipelineStages | Replicate) for each in pipeline)
    return target.with_chips(1) if parted and target.chips > 1 else target


def _is_step(module: ModuleOp) -> bool:
    """Whether a program stores values and has a softmax of few elements."""
    return has_short_softmax(module) and any(isinstance(op, nn.StoreOp) for op in module.walk())


def _reads_narrow(module: ModuleOp, pipeline: Sequence[ModulePass]) -> bool:
    """Whether summaries read narrow floats, now or once the pipeline has made floats narrow."""
    if narrow_summaries(module):
        return True
    summaries = any(isinstance(op, nn.SummarizeOp) for op in module.walk())
    return summaries and _first(pipeline, NarrowFloats) is not None
