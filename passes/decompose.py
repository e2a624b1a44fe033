"""Replace composite operations by the simpler operations that define them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..dialects.levels import NN
from ..dialects.nn.composite import CompositeOp
from ..dialects.structured import Composite
from ..ir.edit import Edit, source_at
from ..ir.provenance import at, is_known, locate
from ..ir.rewriting import Source, may_rewrite
from ..ir.upstream import Builder, Context, InsertPoint, ModuleOp, ModulePass


@dataclass(frozen=True)
class Decompose(ModulePass):
    """Replace composite operations by their parts, until no composite is left. nn -> nn.

    A part's location is below that of the whole operation, "bn1/scale", unless the decomposition
    sets another.
    """

    name = "decompose"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace composites until there are none."""
        pending = [each for each in op.walk() if isinstance(each, Composite)]
        while pending and may_rewrite():
            whole = pending.pop()
            assert isinstance(whole, Operation)
            made, _ = replace_by_parts(whole)
            parts = (each for part in made for each in part.walk())
            pending += [each for each in parts if isinstance(each, Composite)]


def replace_by_parts(whole: Operation) -> tuple[list[Operation], list[SSAValue]]:
    """Replace a composite by its parts. Returns the parts, and one value per result."""
    assert isinstance(whole, Composite)
    return replace_by_built(whole, whole.decompose, _source(type(whole)))


def replace_by_built(
    whole: Operation, build: Callable[[Builder], Sequence[SSAValue]], source: Source
) -> tuple[list[Operation], list[SSAValue]]:
    """Replace an operation by others that compute the same.

    Returns the new operations, and the values of the results.

    Args:
        build: builds the new operations, and returns one value per result.
        source: the place where they are defined.
    """
    with Edit(source, whole) as edit:
        builder = Builder(InsertPoint.before(whole))
        made: list[Operation] = []
        builder.operation_insertion_handler += [made.append, edit.inserted]
        values = build(builder)
        for part in made:
            if not is_known(part.location):
                locate(part, at(whole, part.name.rpartition(".")[2]))
        for old, new in zip(whole.results, values, strict=True):
            if old.type != new.type:
                raise ValueError(f"{whole.name}: decomposed into {new.type}; need {old.type}")
        edit.replace(whole, values)
    return made, list(values)


def _source(cls: type[Operation]) -> Source:
    """Where the parts of an operation are defined."""
    assert issubclass(cls, Composite)
    made_by = cls.parts if issubclass(cls, CompositeOp) else cls.decompose
    return source_at(f"decompose {cls.name}", made_by)
