"""Remove operations and states that have no effect on the results."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, Pure

from ..dialects import control, nn
from ..dialects.levels import NN
from ..dialects.onnx_level import uncalled_functions
from ..ir.edit import Edit, source_at
from ..ir.rewriting import Source, may_rewrite
from ..ir.upstream import Context, ModuleOp, ModulePass


@dataclass(frozen=True)
class EliminateDead(ModulePass):
    """Remove operations without effect whose results have no uses, and states without uses.

    nn -> nn, and onnx -> onnx, where weights that nobody reads and functions of the model that
    nobody calls are removed too. A repeat or an if
    has no effect if nothing inside it has one. A while and a call stay: a while may never end, and
    a call may store.
    """

    name = "eliminate-dead"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module: remove operations in one walk backwards, then the states."""
        # Go backwards, so that users are removed before the operations that they use.
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
        for each in uncalled_functions(op):
            _erase(each, UNCALLED)


def _is_removable(op: Operation) -> bool:
    """Whether an operation does nothing but compute its results."""
    if isinstance(op, control.RepeatOp | control.IfOp):
        inner = (each for region in op.regions for each in region.walk())
        return all(isinstance(each, control.YieldOp) or _is_removable(each) for each in inner)
    # The end of a block is pure in some dialects of MLIR, and the block needs it.
    return isinstance(op, nn.LoadOp) or (op.has_trait(Pure) and not op.has_trait(IsTerminator))


def _erase(op: Operation, source: Source) -> None:
    if may_rewrite():
        with Edit(source, op) as edit:
            edit.erase(op)


UNREAD = source_at("remove what nobody reads", EliminateDead.apply)
UNUSED = source_at("remove a state without use", EliminateDead.apply)
UNCALLED = source_at("remove a function without calls", EliminateDead.apply)
