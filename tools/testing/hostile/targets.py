"""Damaged targets: TOML files, partitions of pods among them, and numbers of chips."""

from __future__ import annotations

import tomllib

import numpy as np

from ....backends.links.table import OWN_TOPOLOGIES
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
    preset = presets[int(random.integers(len(presets)))]
    written = resolve_target(preset).to_toml()
    if random.random() < 0.3:
        written = _partition(preset, random)
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
    command = commands[int(random.integers(len(commands)))]
    if random.random() < 0.3:
        command = (*command, "--chips", str(_CHIPS[int(random.integers(len(_CHIPS)))]))
    return Case(
        made.description,
        command,
        {MODULE: files.text.encode(), **files.blobs, TARGET: made.data},
        damaged=TARGET,
    )


_CHIPS = (0, 1, 2, 3, 4, 7, 16, 64, 4096, 2**31, -1)


def _partition(preset: str, random: np.random.Generator) -> str:
    """A file of a partition, which the preset may not have."""
    chips = _CHIPS[int(random.integers(len(_CHIPS)))]
    kinds = (*OWN_TOPOLOGIES, "")
    kind = kinds[int(random.integers(len(kinds)))]
    topology = f'topology = "{kind}"\n' if kind else ""
    sync = f"sync = {_CHIPS[int(random.integers(len(_CHIPS)))]}\n" if random.random() < 0.5 else ""
    return f'base = "{preset}"\n[partition]\nchips = {chips}\n{topology}{sync}'
