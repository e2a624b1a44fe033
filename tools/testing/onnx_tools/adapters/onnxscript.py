"""Transforms a model by onnxscript's optimizer, or by its rewrite rules alone."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as installed
from typing import Any

import onnx

PASSES = (
    *("InlinePass", "LiftConstantsToInitializersPass", "LiftSubgraphInitializersToMainGraphPass"),
    *("DeduplicateInitializersPass", "CommonSubexpressionEliminationPass", "OutputFixPass"),
    *("NameFixPass", "RemoveUnusedNodesPass"),
)
FOLDING = "FoldConstantsPass"


def version() -> str:
    """The installed version."""
    return installed("onnxscript")


def _rules() -> dict[str, Any]:
    """The default rules by name. A rule without a name is called by its place in their list."""
    rules = import_module("onnxscript.rewriter")._DEFAULT_REWRITE_RULES
    return {each.name or f"rule {i}": each for i, each in enumerate(rules)}


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """The names of the rules, and of the passes unless the rules run alone."""
    del model
    return list(_rules()) if option == "rewriter" else [FOLDING, *PASSES, *_rules()]


def transform(model: onnx.ModelProto, option: str, without: Sequence[str] = ()) -> onnx.ModelProto:
    """The transformed model."""
    rewriter: Any = import_module("onnxscript.rewriter")
    kept = [rule for name, rule in _rules().items() if name not in without]
    if option == "rewriter":
        return rewriter.rewrite(model, kept)
    if not without:
        return import_module("onnxscript.optimizer").optimize(model)
    return _without(model, kept, without)


def _without(model: onnx.ModelProto, kept: Sequence[Any], without: Sequence[str]) -> Any:
    """The model after the optimizer without some parts, which it has no setting for."""
    ir: Any = import_module("onnx_ir")
    rewriter: Any = import_module("onnxscript.rewriter")
    optimizer: Any = import_module("onnxscript.optimizer")
    common: Any = import_module("onnx_ir.passes.common")
    folding: Any = import_module("onnxscript.optimizer._constant_folding")
    classes = [getattr(common, name) for name in PASSES if name in without]
    classes += [folding.FoldConstantsPass] if FOLDING in without else []
    # The pass of the rules accepts no empty list of them.
    classes += [] if kept else [rewriter.RewritePass]
    calls, rules = [each.call for each in classes], rewriter._DEFAULT_REWRITE_RULES

    def nothing(self: Any, model: Any) -> Any:
        return ir.passes.PassResult(model, modified=False)

    try:
        rewriter._DEFAULT_REWRITE_RULES = tuple(kept) or rules
        for each in classes:
            each.call = nothing
        return optimizer.optimize(model)
    finally:
        rewriter._DEFAULT_REWRITE_RULES = rules
        for each, call in zip(classes, calls, strict=True):
            each.call = call
