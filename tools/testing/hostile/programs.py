"""Undamaged programs of every level, as files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from ....dialects.levels import NN
from ....ir.support.errors import DoesNotFit
from ....ir.text import write_module
from ..generators.build import build, default_operators
from ..generators.levels import lowered
from ..generators.program import Program
from ..generators.sketch import random_sketch

POOL = 150
"""Number of undamaged programs of each level. The damage differs, so few programs suffice."""

MODULE = "model.mlir"


@dataclass(frozen=True)
class ProgramFiles:
    """A program of some level, its text, and the arrays of its blobs by path."""

    program: Program
    text: str
    blobs: dict[str, bytes]

    @property
    def target(self) -> str | None:
        """The target to compile for; None if the program's text names it."""
        return None if "abele.target" in self.text else self.program.target.spelling()


def any_program(level: str, random: np.random.Generator) -> ProgramFiles:
    """A random undamaged program of a level."""
    return program_files(level, int(random.integers(POOL)))


@lru_cache(maxsize=4 * POOL)
def program_files(level: str, number: int) -> ProgramFiles:
    """The undamaged program of a level with this number."""
    for attempt in range(100):
        made = _program(level, f"{number} {attempt}")
        if made is not None:
            with TemporaryDirectory() as folder:
                root = Path(folder)
                write_module(made.module, root / MODULE)
                blobs = {
                    str(path.relative_to(root)): path.read_bytes()
                    for path in sorted(root.rglob("*.npy"))
                }
                return ProgramFiles(made, (root / MODULE).read_text(), blobs)
    raise AssertionError(f"no program of {level} fits")


def _program(level: str, seed: str) -> Program | None:
    program = build(random_sketch(Random(seed)), default_operators())
    if level == NN.name:
        return program
    try:
        return lowered(program, level, Random(seed))
    except DoesNotFit:
        return None
