"""Damaged targets: TOML files, and the value of --target."""

from __future__ import annotations

import tomllib

import numpy as np

from ....backends.target import resolve_target
from ....backends.target.presets import PRESET_VALUES
from .case import Case, Damaged
from .programs import MODULE, any_program
from .text import damage_text
from .trees import damage_tree, toml_text

TARGET = "target.toml"


def targets(random: np.random.Generator) -> Case:
    """A damaged TOML file that describes a target."""
    files = any_program("nn", random)
    presets = sorted(PRESET_VALUES)
    written = resolve_target(presets[int(random.integers(len(presets)))]).to_toml()
    if random.random() < 0.5:
        tree, done = damage_tree(tomllib.loads(written), random)
        made = Damaged(toml_text(tree), done)
    else:
        made = damage_text(written, random)
    commands = (
        ("run", MODULE, "--check", "--target", TARGET),
        ("plan", MODULE, "--target", TARGET),
        ("run", MODULE, "--load", TARGET),
    )
    return Case(
        made.description,
        commands[int(random.integers(len(commands)))],
        {MODULE: files.text.encode(), **files.blobs, TARGET: made.data},
        damaged=TARGET,
    )
