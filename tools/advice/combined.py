"""Advice to combine changes: precision, recomputation, parts of a batch, and serial splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..driver.executable import Executable
from ..driver.extensions.loaded import Extensions
from ..driver.recomputation.asked import AUTO
from .memory_map import MemoryMap, memory_map
from .recomputation import RECOMPUTING, can_change_nn
from .room import NARROWER, Compile, CompileSettings, Trial, narrowed, trial
from .serial_split import serial_splits

PARTS = (2, 4)
"""Numbers of micro-batches to try."""

LARGER_SUMS = "the sums of the gradients are larger than what they replace"
"""Why micro-batches may free no memory."""


def combinations(
    found: MemoryMap,
    exe: Executable,
    own: CompileSettings,
    batch: int | None,
    compile_with: Compile,
    known: Extensions,
) -> Iterator[Trial]:
    """Several changes at once, each added to those that freed memory, until the program fits.

    Args:
        found, exe: the program as it is.
        own: how it was compiled.
        batch: the samples of a step of training, which may be taken in parts; None if they may not.
    """
    if found.fits or not can_change_nn(found, exe, own):
        return
    settings, size = own, exe.memory.max_tile_bytes
    texts: dict[str, str] = {}
    for text, change in _changes(found, own, batch):
        option = text.partition("=")[0]
        changed = replace(settings, **change)
        after = compile_with(changed)
        all_texts = texts | {option: text}
        tried = trial(" ".join(all_texts.values()), changed, after)
        frees = tried.bytes < size
        if "micro_batches" in change and not frees:
            tried = replace(tried, note=LARGER_SUMS)
        # A change that needs no other one was tried before.
        if len(all_texts) > 1 or "micro_batches" in change:
            yield tried
        if tried.fits:
            return
        if frees:
            settings, size, texts, exe = changed, tried.bytes, all_texts, after
    if texts:
        for each in serial_splits(memory_map(exe), exe, settings, compile_with, known):
            yield replace(each, change=" ".join((*texts.values(), each.change)))


def _changes(
    found: MemoryMap, own: CompileSettings, batch: int | None
) -> Iterator[tuple[str, dict[str, str | int]]]:
    """Options, each with the fields of the settings that it changes."""
    if found.is_wide and (passes := narrowed(own.passes, found.level)):
        yield NARROWER, {"passes": passes}
    if not own.recompute:
        yield RECOMPUTING, {"recompute": AUTO}
    for parts in PARTS:
        if batch is not None and batch % parts == 0:
            yield f"--training micro-batches={parts}", {"micro_batches": parts}
