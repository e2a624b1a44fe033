"""What nobody reads, removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from ..dialects import control, nn
from ..ir.rewriting import Rewrite, Source, may_rewrite


@dataclass(frozen=True)
class EliminateDead(ModulePass):
    """Remove operations without effect whose results nobody reads, and states without use.

    nn -> nn. A repeat or an if is without effect if everything in it is; a while may never end,
    and a call may store, so both stay.
    """

    name = "eliminate-dead"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """One walk backwards, then the states."""
        # Backwards, users go before what they use.
        for each in reversed(tuple(op.walk())):
            if all(result.first_use is None for result in each.results) and _is_removable(each):
                _erase(each, UNREAD)
        used = {
            each.state.string_value()
            for each in op.walk()
            if isinstance(each, nn.LoadOp | nn.StoreOp)
        }
        for each in tuple(op.walk()):
            if isinstance(each, nn.StateOp) and each.sym_name.data not in used:
                _erase(each, UNUSED)


def _is_removable(op: Operation) -> bool:
    """Whether an operation does nothing but compute its results."""
    if isinstance(op, control.RepeatOp | control.IfOp):
        inner = (each for region in op.regions for each in region.walk())
        return all(isinstance(each, control.YieldOp) or _is_removable(each) for each in inner)
    return isinstance(op, nn.LoadOp) or op.has_trait(Pure)


def _erase(op: Operation, source: Source) -> None:
    if may_rewrite():
        rewrite = Rewrite(source, op)
        rewrite.removed(op)
        Rewriter.erase_op(op)
        rewrite.done()


_LINE = EliminateDead.apply.__code__.co_firstlineno
UNREAD = Source("remove what nobody reads", Path(__file__).name, _LINE)
UNUSED = Source("remove a state without use", Path(__file__).name, _LINE)
