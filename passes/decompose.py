"""Operations made of others, replaced by what they are made of."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.nn.composite import CompositeOp
from ..dialects.structured import Composite
from ..ir.provenance import at, is_known, locate
from ..ir.rewriting import Rewrite, Source, may_rewrite


@dataclass(frozen=True)
class Decompose(ModulePass):
    """Replace composite operations by their parts, and parts that are composite again. nn -> nn.

    A part is located below its whole, "bn1/scale", unless its decomposition says otherwise.
    """

    name = "decompose"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Take composites until there are none."""
        pending = [each for each in op.walk() if isinstance(each, Composite)]
        while pending and may_rewrite():
            whole = pending.pop()
            assert isinstance(whole, Operation)
            made = _replaced(whole)
            pending += [part for part in made if isinstance(part, Composite)]


def _replaced(whole: Operation) -> list[Operation]:
    """Put a composite's parts where it stood; the parts."""
    assert isinstance(whole, Composite)
    rewrite = Rewrite(_source(type(whole)), whole)
    builder = Builder(InsertPoint.before(whole))
    made: list[Operation] = []
    builder.operation_insertion_handler += [made.append, rewrite.inserted]
    values = whole.decompose(builder)
    for part in made:
        if not is_known(part.location):
            locate(part, at(whole, part.name.rpartition(".")[2]))
    for old, new in zip(whole.results, values, strict=True):
        if old.type != new.type:
            raise ValueError(f"{whole.name}: decomposed into {new.type}; need {old.type}")
    rewrite.replaced(whole, values)
    for old, new in zip(whole.results, values, strict=True):
        old.replace_all_uses_with(new)
    rewrite.removed(whole)
    Rewriter.erase_op(whole)
    rewrite.done()
    return made


@cache
def _source(cls: type[Operation]) -> Source:
    """Where it is written what an operation is made of."""
    assert issubclass(cls, Composite)
    made_by = cls.parts if issubclass(cls, CompositeOp) else cls.decompose
    code = inspect.unwrap(made_by).__code__
    return Source(f"decompose {cls.name}", Path(code.co_filename).name, code.co_firstlineno)
