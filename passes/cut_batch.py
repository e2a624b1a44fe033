"""Let a program that computes one micro-batch compute a batch of them, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects import control, nn
from ..dialects.levels import NN
from ..ir.edit import Edit, source_at
from ..ir.provenance import place
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .gradients.loads import load_in_front
from .gradients.micro_batches import MicroBatches
from .gradients.program import drop_groups, entry_of, inputs_of, outputs_of, rename_results


@dataclass(frozen=True)
class CutBatch(ModulePass):
    """Let a program take several batches of its size in one run: micro-batches, one after the
    other. nn -> nn.

    Each input and each result becomes as many times as large along its first axis. An iteration of
    a loop looks its rows of the inputs up, and puts its results into tables, in place. Inputs
    without samples, whose first axis is no batch, are the same for all micro-batches. What the
    program stores is carried from one micro-batch to the next.

    Attributes:
        count: the number of micro-batches.
    """

    name = "cut-batch"
    takes = NN
    skips_other_levels = True

    count: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a result without samples, and for a state that is
        stored elsewhere than in @main."""
        if not 1 <= self.count <= control.MOST_NUMBERED:
            raise InputError(
                f"micro_batches {self.count}; need 1 or more"
                if self.count < 1
                else f"micro_batches {self.count}; need at most {control.MOST_NUMBERED}"
            )
        main = entry_of(op)
        if main is None or self.count == 1 or not may_rewrite():
            return
        results = outputs_of(main)
        sizes = {name: nn.shape_of(value)[:1] for name, value in results.items()}
        if not results or len({*sizes.values()}) > 1 or () in sizes.values():
            found = ", ".join(f"{n} {list(nn.shape_of(v))}" for n, v in results.items())
            raise InputError(
                f"micro_batches: results {found or 'none'}; need results with as many samples, "
                "along their first axis"
            )
        for each in op.walk():
            if isinstance(each, nn.StoreOp) and each.parent is not main.body.block:
                raise InputError(
                    f"micro_batches: {each.name} at {place(each)} is in a loop, a branch or a "
                    "called function, so its state is not carried from part to part; move it out"
                )
        ((size,), *_) = sizes.values()
        drop_groups(op)
        with Edit(source_at("cut the batch", CutBatch.apply), main) as edit:
            load_in_front(op, edit)
            parts = MicroBatches(main, edit, self.count, size)
            inputs = inputs_of(main).items()
            parts.cut({name: None for name, each in inputs if nn.shape_of(each)[:1] != (size,)})
            named = outputs_of(main)
            _, joined, _ = parts.run([], list(named.values()), [])
            rename_results(main, dict(zip(named, joined, strict=True)), edit)
