"""Damaged constraint files for the planner (JSON), and constraints that no plan can satisfy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....dialects.structured import Structured
from ....ir.provenance import place
from .case import Case, Damaged
from .programs import MODULE, ProgramFiles, any_program
from .text import damage_text
from .trees import damage_tree, json_text

CONSTRAINTS = "constraints.json"

KNOWN = ("amp", "mac", "outer", "slic", "swapped", "vmac")
METHODS = ("amp", "slic", "mac", "outer", "reduce", "vector", "none", "")
DIMENSIONS = ("m", "n", "k", "b", "i0", "i1", "o0", "x", "c", "h", "w", "batch", "0", "")
COUNTS = (0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 64, 1000, -1, 2**31, 2**64, 10**30)
PLANS = (
    "split [4, 2, 1] method amp",
    "split [] method amp",
    "split [0]",
    "split [1, 1, 1, 1] method mac",
    "split [99999999999] method none",
    "steps",
    "",
    "split [2, 2] steps [1, 4] ring 0",
)


def constraints(random: np.random.Generator) -> Case:
    """A damaged file of constraints, or one with absurd constraints."""
    files = any_program("nn", random)
    tree = _tree(files, random)
    edit = int(random.integers(4))
    if edit == 0:
        made = damage_text(json_text(tree).decode(), random)
    elif edit == 1:
        tree, done = damage_tree(tree, random)
        made = Damaged(json_text(tree), done)
    else:
        made = Damaged(json_text(tree), "random constraints")
    target = () if files.target is None else ("--target", files.target)
    if files.target is None and random.random() < 0.5:
        target = ("--target", "tiny:4", "--chips", "4")
    if random.random() < 0.3:
        target = (*target, "--shard", _shard(files, random))
    commands = (
        ("run", MODULE, "--check", "--constraints", CONSTRAINTS, *target),
        ("plan", MODULE, "--constraints", CONSTRAINTS, *target),
        ("memory", MODULE, "--constraints", CONSTRAINTS, *target),
    )
    return Case(
        made.description,
        commands[int(random.integers(len(commands)))],
        {MODULE: files.text.encode(), **files.blobs, CONSTRAINTS: made.data},
        damaged=CONSTRAINTS,
    )


def _shard(files: ProgramFiles, random: np.random.Generator) -> str:
    """A shard of an operator of the program, or text that is none."""
    names = [*map(place, files.program.module.walk()), "*"]
    name = names[int(random.integers(len(names)))]
    dimension = DIMENSIONS[int(random.integers(len(DIMENSIONS)))]
    texts = (f"{name}:{dimension}=2", f"*:{dimension}=4", f"{name}:{dimension}", name, ":=", "")
    return texts[int(random.integers(len(texts)))]


LIKELY = 0.7
"""How often constraints name operators, dimensions and methods that the program has."""


def _tree(files: ProgramFiles, random: np.random.Generator) -> dict[str, Any]:
    """Constraints on operators of the program, and on operators that it does not have."""
    operators = [op for op in files.program.module.walk() if isinstance(op, Structured)]
    if operators and random.random() < LIKELY:
        op = operators[int(random.integers(len(operators)))]
        dimensions = [dim.name for dim in op.structure().space.dims]
        name = place(op) if random.random() < 0.8 else "*"
        return {"operators": {name: _likely(dimensions, random)}}
    names = [*map(place, files.program.module.walk()), "*", "no such"]
    chosen = [names[int(random.integers(len(names)))] for _ in range(int(random.integers(1, 4)))]
    tree: dict[str, Any] = {"operators": {name: _asked(random) for name in chosen}}
    if random.random() < 0.2:
        tree["memory_proportion"] = (0, 0.001, 1, 2, -1, 1e-300)[int(random.integers(6))]
    return tree


def _likely(dimensions: list[str], random: np.random.Generator) -> dict[str, Any]:
    """One to three requirements on an operator. Each alone can be satisfied by some plan."""

    def dimension() -> str:
        return dimensions[int(random.integers(len(dimensions)))] if dimensions else "d0"

    def parts() -> dict[str, int]:
        return {dimension(): int(random.integers(1, 6)) for _ in range(int(random.integers(1, 3)))}

    makers: dict[str, Callable[[], Any]] = {
        "split": parts,
        "steps": parts,
        "across": parts,
        "ring": lambda: {dimension(): dimension()},
        "tiles": lambda: int(random.integers(1, 9)),
        "method": lambda: KNOWN[int(random.integers(len(KNOWN)))],
        "memory_proportion": lambda: (0, 0.001, 0.5, 1)[int(random.integers(4))],
    }
    keys = random.choice(sorted(makers), int(random.integers(1, 4)), replace=False)
    asked = {str(key): makers[str(key)]() for key in keys}
    # A ring turns in steps.
    if "ring" in asked and random.random() < 0.7:
        asked["steps"] = {next(iter(asked["ring"])): int(random.integers(1, 6))}
    return asked


def _asked(random: np.random.Generator) -> dict[str, Any]:
    def dimension() -> str:
        return DIMENSIONS[int(random.integers(len(DIMENSIONS)))]

    def parts() -> dict[str, int]:
        return {
            dimension(): COUNTS[int(random.integers(len(COUNTS)))]
            for _ in range(int(random.integers(0, 4)))
        }

    asked: dict[str, Any] = {}
    for key, made in {
        "split": parts,
        "steps": parts,
        "across": parts,
        "ring": dimension,
        "tiles": lambda: COUNTS[int(random.integers(len(COUNTS)))],
        "method": lambda: METHODS[int(random.integers(len(METHODS)))],
        "memory_proportion": lambda: (0, 0.001, 0.5, 1, 2)[int(random.integers(5))],
    }.items():
        if random.random() < 0.35:
            asked[key] = made()
    if random.random() < 0.15:
        asked["plan"] = PLANS[int(random.integers(len(PLANS)))]
    return asked
