"""The operations that the code of a pass names, in all the ways that code is written."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from abele.dialects import nn, tile
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.tools.testing.search.named import classes_named_by


def named(tested: ModulePass) -> set[str]:
    """The names of the operations that a pass names."""
    found = (cls for cls in classes_named_by(tested) if issubclass(cls, Operation))
    return {cls.name for cls in found if hasattr(cls, "name")}


class OneType(RewritePattern):
    """The usual way."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.SubOp, rewriter: PatternRewriter) -> None:
        """Do nothing."""


class TwoTypes(RewritePattern):
    """A union of types."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.AddOp | tile.CopyOp, rewriter: PatternRewriter) -> None:
        """Look at what made the operand."""
        if isinstance(op.operands[0].owner, nn.ReluOp):
            rewriter.erase(op)


@dataclass(frozen=True)
class Greedy(ModulePass):
    """Patterns in a greedy applier."""

    name = "greedy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(GreedyRewritePatternApplier([OneType(), TwoTypes()])).rewrite_module(
            op
        )


def logged(function: Callable[..., None]) -> Callable[..., None]:
    """A decorator."""

    @functools.wraps(function)
    def call(*given: object) -> None:
        function(*given)

    return call


def _only(cls: type[Operation]) -> Callable[[Operation], bool]:
    return lambda op: isinstance(op, cls)


TABLE = {nn.NegOp: "neg", nn.AbsOp: "abs"}
is_clip = _only(nn.ClipOp)


@dataclass(frozen=True)
class Idioms(ModulePass):
    """A decorator, a table, a closure, a text, an annotation, a match statement."""

    name = "idioms"

    @logged
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if type(each) in TABLE or is_clip(each) or each.name == "nn.exp":
                self.handle(each)
            if type(each).__name__ == "FloorOp":
                self.handle(each)
            match each:
                case nn.MulOp():
                    pass
                case _:
                    pass

    @staticmethod
    def handle(op: nn.SqrtOp) -> None:
        """Say so in an annotation."""


@dataclass(frozen=True)
class Local(ModulePass):
    """Imports what it needs where it needs it."""

    name = "local"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from abele.dialects import nn as names
        from abele.dialects.nn import TanhOp

        assert not any(isinstance(each, TanhOp | names.DivOp) for each in op.walk())


def test_the_types_of_rewrite_patterns_are_named():
    assert named(Greedy()) == {"nn.sub", "nn.add", "tile.copy", "nn.relu", "builtin.module"}


def test_code_is_read_through_decorators_tables_closures_texts_and_annotations():
    own = {each for each in named(Idioms()) if each.startswith("nn.")}
    assert own == {"nn.neg", "nn.abs", "nn.clip", "nn.exp", "nn.mul", "nn.sqrt", "nn.floor"}


def test_local_imports_are_read():
    assert {"nn.tanh", "nn.div"} <= named(Local())


def loaded(file: Path, name: str) -> ModuleType:
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


HELPERS = """
from abele.dialects import nn

def is_relu(op):
    return isinstance(op, nn.ReluOp)
"""

MAIN = """
from dataclasses import dataclass
import named_by_helpers
from abele.ir.upstream import ModulePass

@dataclass(frozen=True)
class Main(ModulePass):
    name = "main"
    def apply(self, ctx, op):
        assert not any(named_by_helpers.is_relu(each) for each in op.walk())
"""


def test_helpers_in_another_file_of_the_folder_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "named_by_helpers.py").write_text(HELPERS)
    (tmp_path / "named_by_main.py").write_text(MAIN)
    for name in ("named_by_helpers", "named_by_main"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    loaded(tmp_path / "named_by_helpers.py", "named_by_helpers")
    main = loaded(tmp_path / "named_by_main.py", "named_by_main")
    assert named(main.Main()) == {"nn.relu"}
