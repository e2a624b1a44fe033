"""Extensions in .toml files: one target each."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from ....backends.target import resolve_target
from .extension import Extension
from .loaded import Extensions
from .part import Part
from .registration import install, registered
from .source import read_source


def load_target(path: Path, _: Extensions) -> Part:
    """The target of a .toml file, registered; the earlier one if the file has not changed.

    A target without a name of its own is named after the file. Raises InputError.
    """
    text = read_source(path)
    key, digest = str(path.resolve()), sha256(text).hexdigest()
    known = registered(key)
    if known is not None and known.digest == digest:
        return known
    target = resolve_target(str(path))
    if target.name == target.base:
        target = replace(target, name=path.stem).read_from(target.file)
    found = Extension(targets=(target,))
    return install(key, Part(str(path), path.resolve().parent, found, digest))
