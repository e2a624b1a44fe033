"""Names the part of a tool that is to blame: a pass, an optimiser or a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from ..onnx_graphs.checks import NotCompared
from ..onnx_graphs.graph import ModelCase
from .judge import Found, Judge

SECONDS = 60.0
"""Clock seconds for one search, at most."""

NO_PART = "none of its parts"
"""The culprit where the tool fails with every part left out."""


def culprit(judge: Judge, graph: ModelCase, found: Found) -> str:
    """The parts of the tool that are to blame, in words; "" if the tool has none or cannot tell.

    A part is to blame if the tool does not fail without it, and fails in the same way with this
    part alone. If none fails alone, those are without which the tool does not fail. If the tool
    fails without each of them, those are with which alone it fails.
    """
    if judge.without:
        left = [each for each in _parts(judge, graph) if each not in judge.without]
        return ", ".join(left)
    every = _parts(judge, graph)
    if not every:
        return ""
    if _fails(judge, graph, found, every):
        return NO_PART
    end = monotonic() + SECONDS
    needed: list[str] = []
    for each in every:
        if monotonic() > end:
            break
        if not _fails(judge, graph, found, [each]):
            needed.append(each)
    alone: list[str] = []
    for each in needed or every:
        if monotonic() > end:
            break
        if _fails(judge, graph, found, [other for other in every if other != each]):
            if needed:
                return each
            alone.append(each)
    return " with ".join(needed) or " or ".join(alone)


def _parts(judge: Judge, graph: ModelCase) -> Sequence[str]:
    return judge.process.parts(graph.proto).parts


def _fails(judge: Judge, graph: ModelCase, found: Found, without: Sequence[str]) -> bool:
    """Whether the tool fails in the same way without some parts."""
    try:
        again = replace(judge, without=list(without)).failing(graph, found)
    except NotCompared:
        return False
    return again is not None
