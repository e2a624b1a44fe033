"""The passes for products that the default pipeline runs for programs that have such products."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects import nn
from ...dialects.levels import NN
from ...ir.upstream import ModuleOp, ModulePass
from ...passes.fuse_chains import FuseChains
from ...passes.merge_products import MergeProducts, products_of_a_value
from ...passes.read_narrow import ReadNarrow, narrow_summaries
from ...passes.read_through import ReadThrough, moved_products
from ...passes.summarize_softmax import SummarizeSoftmax, has_short_softmax
from .program import ReadProgram


def with_products(
    pipeline: Sequence[ModulePass], program: ReadProgram, target: str, rows: int = 0
) -> tuple[ModulePass, ...]:
    """The default pipeline, with passes for products of one value and for transposed products, if
    the program has such.

    Products are merged first, so that fold-constants joins their weights. They read through
    transposes once these have been simplified, before groups are made. The two reductions of a
    softmax become one in programs that store values for their next run, as steps of decoders do:
    these have a softmax in each layer, and little else to compute. Other programs would save one
    superstep, but could no longer be kept bound in a file, because no kernel computes both sums.

    Args:
        rows: as for merge-products.
    """
    if program.level != NN:
        return tuple(pipeline)
    found = [*pipeline]
    before = next((i for i, each in enumerate(found) if isinstance(each, FuseChains)), None)
    if before is not None:
        late: list[ModulePass] = [ReadThrough()] if moved_products(program.module) else []
        late += [SummarizeSoftmax()] if _is_step(program.module) else []
        late += [ReadNarrow()] if narrow_summaries(program.module) else []
        found[before:before] = late
    if products_of_a_value(program.module):
        found.insert(0, MergeProducts(target, rows))
    return tuple(found)


def _is_step(module: ModuleOp) -> bool:
    """Whether a program stores values and has a softmax of few elements."""
    return has_short_softmax(module) and any(isinstance(op, nn.StoreOp) for op in module.walk())
