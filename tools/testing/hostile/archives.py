"""Damaged program files (.abele): damaged bytes, members, and entries of meta.json."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from ....ir.support.errors import DoesNotFit, InputError
from ...driver.compile import compile_model
from .case import Case, Damaged
from .models import model_case
from .programs import MODULE, program_files
from .text import damage_text
from .trees import damage_tree, json_text
from .zips import Member, archive_of, damage_zip, members_of

POOL = 30
"""Number of undamaged program files to choose from."""

META, ARCHIVE = "meta.json", "model.abele"


@lru_cache(maxsize=POOL)
def program_archive(number: int) -> bytes:
    """The undamaged program file with this number."""
    for attempt in range(100):
        files = program_files("nn", number + POOL * attempt)
        with TemporaryDirectory() as folder:
            root = Path(folder)
            for name, data in {MODULE: files.text.encode(), **files.blobs}.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_bytes(data)
            try:
                exe = compile_model(root / MODULE, files.program.target, cache=False)
                exe.save(root / ARCHIVE)
            except (DoesNotFit, InputError):
                continue
            return (root / ARCHIVE).read_bytes()
    raise AssertionError("no program compiles")


def archive(random: np.random.Generator) -> Case:
    """A damaged program file."""
    whole = program_archive(int(random.integers(POOL)))
    edit = (damage_zip, _meta, _text)[int(random.integers(3))]
    made = edit(whole, random)
    case = model_case(ARCHIVE, made, random, target=None, is_source=edit is damage_zip)
    # Texts that were made to differ need not agree.
    return case if edit is damage_zip else replace(case, compare="")


def _meta(whole: bytes, random: np.random.Generator) -> Damaged:
    """A program file with changed values in its meta.json."""
    members = members_of(whole)
    meta, done = damage_tree(_meta_of(members), random)
    return Damaged(_with(members, META, json_text(meta)), f"meta.json: {done}")


def _text(whole: bytes, random: np.random.Generator) -> Damaged:
    """A program file with a damaged program text and the correct digest of that text."""
    members = members_of(whole)
    names = [each.name for each in members if each.name.endswith(".mlir")]
    name = names[int(random.integers(len(names)))]
    (old,) = (each.data for each in members if each.name == name)
    text, done = damage_text(old.decode(), random)
    meta = _meta_of(members)
    meta["texts"][name.removesuffix(".mlir")] = blake2b(text, digest_size=12).hexdigest()
    made = _with(members_of(_with(members, name, text)), META, json_text(meta))
    return Damaged(made, f"{name}: {done}")


def _meta_of(members: list[Member]) -> dict[str, Any]:
    (data,) = (each.data for each in members if each.name == META)
    return cast("dict[str, Any]", json.loads(data))


def _with(members: list[Member], name: str, data: bytes) -> bytes:
    return archive_of([Member(e.name, data if e.name == name else e.data) for e in members])
