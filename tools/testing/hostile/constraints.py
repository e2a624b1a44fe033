"""Damaged constraints for the planner (JSON), and constraints that no plan can keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.provenance import place
from .case import Case, Damaged
from .programs import MODULE, ProgramFiles, any_program
from .text import damage_text
from .trees import damage_tree, json_text

CONSTRAINTS = "constraints.json"

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
    """A file of constraints that says something absurd, or is damaged."""
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


def _tree(files: ProgramFiles, random: np.random.Generator) -> dict[str, Any]:
    """Constraints on operators that the program has, and on others."""
    operators = [op for op in files.program.module.walk() if op.name.startswith("nn.")]
    names = [*(place(op) for op in operators), *(op.name for op in operators), "*", "no such"]
    chosen = [names[int(random.integers(len(names)))] for _ in range(int(random.integers(1, 4)))]
    tree: dict[str, Any] = {"operators": {name: _asked(random) for name in chosen}}
    if random.random() < 0.2:
        tree["memory_proportion"] = (0, 0.001, 1, 2, -1, 1e-300)[int(random.integers(6))]
    return tree


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
