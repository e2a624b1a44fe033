"""Checks of tools for tests: they raise the first failure."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

from onnx import printer

from ....ir.support.errors import InputError
from ..onnx_graphs.checks import NotCompared
from ..search.failures import ToolFailed, Untested
from .campaign import REDUCING, Campaign, ToolReport
from .equivalents import own_rules
from .finding import Finding, equivalent_in, load
from .judge import NOT_JUDGED
from .known import Tool, tool_of
from .worker import Limits

EXAMPLES = 200
UNCHANGED = 100
"""A transform that changes none of so many models has not been tested."""


def _shown(finding: Finding) -> str:
    """A finding with the models before and after, as text."""
    after = finding.found.after
    lines = [finding.headline, "", finding.graph.text.rstrip()]
    if after is not None:
        lines += ["", "The transformed model:", "", printer.to_text(after).rstrip()]
    return "\n".join(lines)


def check_tool(
    tool: Tool | str,
    *,
    examples: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    operators: Collection[str] | None = None,
    folder: Path | None = None,
    limits: Limits | None = None,
    python: str | None = None,
    reduce_seconds: float | None = None,
    equivalents: bool = False,
    expect_changes: bool = True,
    report: ToolReport | None = None,
    replay: Path | None = None,
    command: str = "",
    tell: Callable[[str], None] | None = None,
) -> ToolReport:
    """Run a tool on generated ONNX models. Raises ToolFailed at its first failure.

    Raises InputError for a tool that cannot be started, and Untested if it changes no model.

    Args:
        tool: a tool, or its name as for --tool.
        examples: number of models; EXAMPLES if neither this nor seconds is given.
        seconds: start no further model after this time.
        seed: of the models; random if None, or 0 if the environment variable CI is set.
        operators: names of the operators to use; all that the reader supports if None.
        folder: where to save a failure; a new temporary folder if None.
        limits: what the tool may use.
        python: the interpreter of the tool; abele's own if None.
        reduce_seconds: seconds for reducing a failing model.
        equivalents: compare the tool with itself only, on models that proved rules make of each
            other, and with no reference.
        expect_changes: whether a transform that changes no model is an error.
        report: is filled.
        replay: test only the model of this saved finding.
        command: not used; the check of a tool is saved with a script.
        tell: called with a line about a failure that is being reduced.
    """
    del command
    found = tool_of(tool, python) if isinstance(tool, str) else tool
    if seed is None:
        seed = 0 if os.environ.get("CI") else Random().randrange(1 << 32)
    count = examples if examples is not None or seconds is not None else EXAMPLES
    limits = limits or Limits()
    campaign = Campaign(
        found,
        limits,
        python,
        operators,
        REDUCING if reduce_seconds is None else reduce_seconds,
        own_rules() if equivalents else None,
        report if report is not None else ToolReport(),
    )
    try:
        again = (
            campaign.findings(count, seconds, seed) if replay is None else _again(campaign, replay)
        )
        for each in again:
            if tell is not None:
                tell(each.headline)
            wanted = folder or Path(tempfile.mkdtemp(prefix="abele-finding-"))
            raise ToolFailed(each.found.kind, _shown(each), each.save(wanted))
    finally:
        campaign.end()
    done = campaign.report
    if campaign.made == "transform" and expect_changes and not done.changed:
        if done.examples >= UNCHANGED:
            raise Untested(
                f"the transform changed none of {done.examples} models",
                "name operators that it changes with operators=, or say expect_changes=False",
            )
    return done


def _again(campaign: Campaign, folder: Path) -> Iterator[Finding]:
    """The finding of a folder, if it is still one."""
    graph, about = load(folder)
    without = about.get("without")
    names = [str(each) for each in cast("list[Any]", without or [])]
    other = equivalent_in(folder, about)
    judge = replace(campaign.judge(names), alone=other is not None)
    try:
        found = judge.found(graph, equivalent=other)
    except NotCompared as reason:
        raise InputError(f"{folder}: {NOT_JUDGED.get(reason.why, reason.why)}: {reason}") from None
    if found is not None:
        yield Finding(campaign.tool, campaign.version, campaign.made, graph, found, tuple(names))


def replayed(folder: Path, python: str | None = None) -> str:
    """What a saved finding shows now, in words that name both versions; "" if nothing any more.

    Raises InputError.
    """
    _, about = load(folder)
    campaign = Campaign(tool_of(str(about.get("tool")), python), python=python)
    try:
        then, now = str(about.get("version")), campaign.version
        note = "" if then == now else f"found with version {then}; this is version {now}\n"
        found = next(_again(campaign, folder), None)
    finally:
        campaign.end()
    return f"{note}{found.headline}" if found else ""


def check_onnx_transform(function: Callable[..., object], **options: object) -> ToolReport:
    """Test a function that takes an onnx.ModelProto and returns another one, as check_tool does."""
    return _check_function(function, "transform", options)


def check_onnx_runner(function: Callable[..., object], **options: object) -> ToolReport:
    """Test a function of a model and of its inputs by name, which returns the outputs.

    The outputs are a dict by name, or a sequence in the order of the model. For other arguments,
    see check_tool.
    """
    return _check_function(function, "run", options)


def _check_function(
    function: Callable[..., object], made: str, options: dict[str, object]
) -> ToolReport:
    name = getattr(function, "__name__", type(function).__name__)
    if not callable(function) or not hasattr(os, "fork"):
        raise InputError(f"{name}: need a function, on a system with fork")
    tool = Tool(name, "function", function=function, made=made)
    return check_tool(tool, **options)  # pyright: ignore[reportArgumentType]
