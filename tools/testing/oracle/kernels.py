"""Compares compiled kernels with NumPy: both must give the same bytes for a program.

NumPy's calls define the bytes of a machine, and kernels write the same bytes faster. Every other
check of the kit runs NumPy alone and so does not test the kernels that users' programs run with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TypeAlias, cast

from ....backends.codelets.numerics import kind_of
from ....backends.evaluate.binder import Binder
from ....backends.evaluate.host import Run
from ....backends.host.binders import best_binder
from ....backends.host.load import NoKernels, kernels
from ....dialects import exchange
from ....dialects.steps import Copy, Vertices
from ...debug.kernel_problem import module_kernel_problem
from ...debug.machine_results import Results
from ...debug.wrong_kernel import REPORT, WrongKernel
from ..generators.program import Program

TASKS = ("sharing", "copies", "chains", "functions", "routes", "products", "lookups")
"""The tasks whose kernels run programs."""

LENGTHS = (8, 32, 128, 256, 600)
"""Lengths above which kernels change their method: vectors, chains of sums, panels."""

LANES = 16
"""Elements of the longest vector. A kernel handles the elements after the last whole vector
separately."""

DEEP = 5
"""The number of nested loops from which on the kernel of copies keeps its own counters."""

Situation: TypeAlias = "tuple[object, ...]"
"""The properties of an operation that decide, roughly, which parts of a kernel run."""


def has_kernels() -> bool:
    """Whether this host runs programs with compiled kernels."""
    return best_binder() is not Binder


@cache
def prepare_kernels() -> tuple[str, ...]:
    """Load the kernels of all tasks, and compile the uncached ones, which takes a minute.

    Otherwise the first program that needs them would seem to hang. Returns messages about the
    kernels that fail their self-test and are not used: NumPy does their tasks.
    """
    problems: dict[str, str] = {}
    for task in TASKS if has_kernels() else ():
        try:
            kernels(task)
        except NoKernels as problem:
            # The problem names the failed task, which other tasks may depend on.
            problems[problem.task] = str(problem)
    return tuple(problems.values())


def situations(program: Program) -> set[Situation]:
    """The situations of all operations in a program of exchange."""
    variables = {op.symbol: op for op in program.module.ops if isinstance(op, exchange.VariableOp)}
    found: set[Situation] = set()
    for op in program.module.walk():
        if isinstance(op, Copy):
            target = variables[op.destination]
            cuts = [_cuts(variables[name]) for name in op.sources]
            found |= {("copy", target.dtype.itemsize, each, _cuts(target)) for each in cuts}
            met = [target, *(variables[name] for name in op.sources)]
            loops = max(map(_nested, met))
            if any(_has_windows(each) for each in met):
                shapes = tuple((each.placed.parts, each.placed.box) for each in met)
                found.add(("windows", target.dtype.itemsize, loops, shapes))
        elif isinstance(op, Vertices):
            found.add(_of_vertices(op, [variables[name] for name in (*op.sources, op.destination)]))
    return found


def is_rare(situation: Situation) -> bool:
    """Whether few programs contain a situation, so that a kernel for it should run soon."""
    kind, *rest = situation
    if kind == "copy":
        _, source, target = cast("list[tuple[int, int]]", rest)
        return max(source[0], target[0]) > 2
    return kind in ("lookup", "whole", "combined") or rest[-1] == len(LENGTHS)


def is_deep(situation: Situation) -> bool:
    """Whether a copy may need more loops than most programs have, so kernels always run it.

    Copies without windows are mostly made along routes, which need no such loops.
    """
    kind, *rest = situation
    return kind == "windows" and cast("int", rest[1]) >= DEEP


def _has_windows(variable: exchange.VariableOp) -> bool:
    return any(len(axis.terms) > 1 for axis in variable.placed.access.axes)


def _cuts(variable: exchange.VariableOp) -> tuple[int, int]:
    """The number of dimensions along which a variable is split, and the number of its axes."""
    return sum(n > 1 for n in variable.placed.parts), len(variable.placed.shape)


def _nested(variable: exchange.VariableOp) -> int:
    """The largest number of nested loops that fill a variable's blocks, over parts and elements."""
    layout = variable.placed
    return sum(n > 1 for n in layout.parts) + sum(n > 1 for n in layout.box)


def _of_vertices(op: Vertices, variables: Sequence[exchange.VariableOp]) -> Situation:
    structure, split = op.structure(), op.plan.data.split
    space, body = structure.space, structure.body
    kind = kind_of(body, len(space.relations))
    sizes = [-(-dim.size // parts) for dim, parts in zip(space.dims, split, strict=True)]
    merged = prod(sizes[d] for d in space.of_kind("reduction"))
    kept = [sizes[d] for d in space.of_kind("parallel", "whole")]
    inner = kept[-1] if kept else 1
    edges = tuple(sorted(kept)[-2:]) if kind == "contraction" else (min(inner % LANES, 2),)
    dtypes = tuple(v.dtype.name for v in variables)
    return (kind, dtypes, bisect_left(LENGTHS, inner), edges, bisect_left(LENGTHS, merged))


def wrong_kernel(program: Program, found: Run) -> tuple[str, str] | None:
    """The kernels that differ from NumPy on a program of exchange, and the difference, in words.

    Returns None if all bytes are equal. Where both results are NaN, their bits may differ.

    Args:
        found: the results by NumPy.
    """
    right = Results(found.outputs, found.state)
    problem = module_kernel_problem(program.module, program.target, program.inputs, right)
    if problem is None:
        return None
    if isinstance(problem, WrongKernel):
        tasks = [each for each in problem.wrong.kernels if not each.startswith("numpy.")]
        return f"the compiled kernels of {' and '.join(tasks)}", str(problem)
    differs = problem.words("the run with kernels", "the one with NumPy")
    return FUSED, f"compiled kernels are wrong together, not a pass: {differs}. {REPORT}"


FUSED = "compiled kernels of several operations"
"""The blame where no single operation's kernel is wrong."""
