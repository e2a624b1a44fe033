"""Damages the arrays beside a program's text: the files of blobs/."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .binary import damage_bytes
from .case import Case, Damaged
from .models import model_case
from .programs import MODULE, ProgramFiles, any_program

LINK = "/etc/passwd"
"""The target of a file that became a symbolic link."""


def blobs(random: np.random.Generator) -> Case:
    """A program with a damaged, missing, swapped or surplus array, or a link in its place."""
    files = _with_blobs(random)
    contents = dict(files.blobs)
    names = sorted(contents)
    name, other = (names[int(random.integers(len(names)))] for _ in range(2))
    what = int(random.integers(6))
    if what == 0:
        del contents[name]
        done = "missing"
    elif what == 1:
        contents[name], contents[other] = contents[other], contents[name]
        done = f"swapped with {other}"
    elif what == 2:
        contents[f"blobs/{'0' * 24}.npy"] = contents[name]
        done = "copied to a name that is not its digest"
    else:
        contents[name], done = damage_bytes(contents[name], random)
    made = Damaged(files.text.encode(), f"{name}: {done}")
    case = model_case(MODULE, made, random, contents, files.target)
    links = {}
    if what == 3:
        links = {name: LINK}
        contents = {each: data for each, data in case.files.items() if each != name}
    else:
        contents = dict(case.files)
    damaged = name if name in contents else MODULE
    return replace(case, files=contents, links=links, damaged=damaged)


def _with_blobs(random: np.random.Generator) -> ProgramFiles:
    while True:
        files = any_program(("nn", "exchange")[int(random.integers(2))], random)
        if files.blobs:
            return files
