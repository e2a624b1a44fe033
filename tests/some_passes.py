"""Small passes for the tests of the pass manager and its instruments."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.test import TestOp
from xdsl.passes import ModulePass

from abele.dialects.blob_attr import BlobAttr
from abele.ir.blob import Blob
from abele.ir.errors import DoesNotFit
from abele.ir.provenance import named


@dataclass(frozen=True)
class Append(ModulePass):
    """Append operations that name a blob."""

    name = "append"
    count: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for number in range(self.count):
            new = TestOp(attributes={"blob": BlobAttr(Blob(np.arange(number + 1)))})
            new.location = named(f"node{number}")
            op.body.block.add_op(new)


@dataclass(frozen=True)
class Nothing(ModulePass):
    """Change nothing; take options of every kind."""

    name = "nothing"
    rate: float = 0.5
    limit: int | None = None
    sizes: tuple[int, ...] = ()
    fractions: tuple[float, ...] = ()
    keep_order: bool = False
    label: str = ""
    either: int | float = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class Break(ModulePass):
    """Leave a use before its definition."""

    name = "break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        late = TestOp(result_types=[i32])
        op.body.block.add_ops([TestOp(late.results), late])


@dataclass(frozen=True)
class Crash(ModulePass):
    """Change the module, then fail."""

    name = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        Append().apply(ctx, op)
        raise RuntimeError("half way\nand more")


@dataclass(frozen=True)
class TooLarge(ModulePass):
    """Fail as a planner does."""

    name = "too-large"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise DoesNotFit("conv1.out", 2, 1)


@dataclass(frozen=True)
class NeedsLimit(ModulePass):
    """Have an option without a default."""

    name = "needs-limit"
    limit: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class Chooses(ModulePass):
    """Have options of a few words."""

    name = "chooses"
    how: Literal["a", "b"] = "a"
    order: tuple[Literal["a", "b"], ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class NeedsTable(ModulePass):
    """Have an option that no pipeline can give."""

    name = "needs-table"
    most_of: dict[str, int] = field(default_factory=dict[str, int])

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


REGISTRY = {
    "chooses": "some_passes:Chooses",
    "append": "some_passes:Append",
    "nothing": "some_passes:Nothing",
    "break": "some_passes:Break",
    "crash": "some_passes:Crash",
    "too-large": "some_passes:TooLarge",
    "needs-limit": "some_passes:NeedsLimit",
    "elsewhere": "no.such.module:Pass",
}
