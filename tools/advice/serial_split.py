"""Advice to split the operators that fill the fullest tile into steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import cast

from xdsl.ir import Operation

from ...backends.memory import MemoryReport
from ...dialects import partition
from ...dialects.steps import Superstep, Vertices
from ...dialects.structured import Movement, Structured
from ...ir.node_names import operations_named
from ...ir.provenance import origin
from ...ir.upstream import ModuleOp
from ...ir.xdsl.walk import operations
from ...passes.plans.fused import FusedGroups
from ..driver.executable import MACHINE, Executable
from ..driver.extensions.loaded import Extensions
from .memory_map import MemoryMap
from .recomputation import can_change_nn, module_behind_nn
from .room import Compile, CompileSettings, Trial, trial

ROUNDS = 4
"""How often to lower the limit of the operator in the fullest superstep."""

PARTITION = "partition"

_STEP = re.compile(r"/((?:part|step)\d+)")
"""The part of an operation's origin that names the step of its operator."""


def serial_splits(
    found: MemoryMap,
    exe: Executable,
    own: CompileSettings,
    compile_with: Compile,
    known: Extensions,
) -> Iterator[Trial]:
    """Constraints that halve the temporary memory of the operator in the fullest superstep.

    If no plan with one step keeps such a limit, the operator's work is split into several steps.

    Each change adds the operator of the superstep that is then the fullest, or halves its limit
    again, until the program fits or no more memory is freed.

    Args:
        found, exe: the program as it is.
        own: how it was compiled.
    """
    if not can_change_nn(found, exe, own):
        return
    module = module_behind_nn(exe, own, known)
    FusedGroups(module).fuse()
    planned = [op for op in operations(module) if isinstance(op, Structured | Movement)]
    limits: dict[str, float] = dict(own.operators)
    before, last = exe, trial("", own, exe)
    for _ in range(ROUNDS):
        name = _operator_of(before.module_at(MACHINE), before.memory.worst_step, planned)
        share = _share(before.memory)
        if name is None or not share:
            return
        limits[name] = float(f"{min(share, limits.get(name, 1.0)) / 2:.2g}")
        changed = replace(own, operators=tuple(limits.items()))
        after = compile_with(changed)
        tried = trial(_description(limits, after), changed, after)
        if tried.bytes >= last.bytes:
            return
        yield tried
        if tried.fits:
            return
        before, last = after, tried


def constraints_with(
    given: Mapping[str, object] | None, operators: Iterable[tuple[str, float]]
) -> dict[str, object]:
    """Constraints for JSON, with memory proportions of some operators.

    An operator with a whole plan keeps it.

    Args:
        given: the contents of a constraints file, if any.
    """
    whole = dict(given or {})
    named = dict(cast("Mapping[str, Mapping[str, object]]", whole.get("operators", {})))
    for name, proportion in operators:
        choices = named.get(name, {})
        if "plan" not in choices:
            named[name] = {**choices, "memory_proportion": proportion}
    return {**whole, "operators": named}


def _description(limits: Mapping[str, float], exe: Executable) -> str:
    """The constraints to write into a file, and the steps of the operators."""
    steps = {name: _steps(name, exe.module_at(PARTITION)) for name in limits}
    many = ", ".join(f"{name} in {n} steps" for name, n in steps.items() if n > 1)
    text = quote(json.dumps(constraints_with(None, limits.items())))
    return f"--constraints with {text}" + (f": {many}" if many else "")


def _steps(name: str, module: ModuleOp) -> int:
    """The number of steps in which an operator is computed.

    Args:
        module: at partition.
    """
    paths = (origin(op) or "" for op in operations(module) if isinstance(op, partition.ComputeOp))
    steps = {tuple(_STEP.findall(p[len(name) :])) for p in paths if p.startswith(f"{name}/")}
    return sum(not any(o[: len(s)] == s and o != s for o in steps) for s in steps) or 1


def _operator_of(module: ModuleOp, step: str, planned: Sequence[Operation]) -> str | None:
    """The name of the planned operator that a superstep computes; None if there is none.

    Paths of an operator's lowering begin with its name.

    Args:
        module: at exchange.
    """
    for op in operations(module):
        if isinstance(op, Superstep) and op.sym_name.data == step:
            for each in op.body.block.ops:
                path = origin(each) if isinstance(each, Vertices) else None
                while path:
                    if operations_named(path, planned):
                        return path
                    path = path.rpartition("/")[0]
    return None


def _share(report: MemoryReport) -> float:
    """The share of the usable bytes that the fullest tile's worst superstep takes temporarily."""
    taken = sum(v.bytes for v in report.variables if v.live and not v.resident and not v.waits)
    return taken / report.target.usable_bytes_per_tile
