"""abele cache."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from ...ir.support.errors import InputError
from ..driver.cache.key import Parts, key_of, parts_of, why_no_key
from ..driver.cache.model_digest import LIMIT
from ..driver.cache.store import Entry, Store, store_here, usable_store
from ..driver.extensions.loaded import Extensions
from ..driver.files import PROGRAM_FILE
from ..driver.shown_text import shown
from ..importers.front_ends import front_end_at, listed, suffixes
from ..views.terminal import console
from ..views.user_errors import text_in, user_errors
from .compiling import Compilation, compiles

Action = Literal["list", "explain", "clear"]

OFF = f"the cache is off ({LIMIT}=0)"

KEY_DIGITS = 12
"""The digits of a key in a table."""


@compiles
def cache_command(
    action: Annotated[
        Action,
        typer.Argument(
            help="list: the programs, those used last first. explain: whether MODEL's program is "
            "kept, and if not, what differs from the most similar one. clear: remove all programs.",
        ),
    ] = "list",
    model: Annotated[str, typer.Argument(help="For explain: an .onnx or .mlir file.")] = "",
    *,
    how: Compilation,
) -> None:
    """Show the compiled programs that abele keeps, explain a miss, or remove them all.

    explain takes the options of the command that compiles MODEL.
    """
    with user_errors(text_in(model), model) as context:
        if action == "explain":
            if not model:
                raise InputError("explain: no MODEL; need the model that is compiled")
            _explain(model, how, context.load(how.load))
            return
        if model:
            raise InputError(f"{action} {model}: a model only goes with explain")
        store = store_here()
        if action == "clear":
            programs, size = _cleared(store)
            _say(f"{programs} programs removed, {size:,} bytes, from {store.folder}")
        else:
            _list(store)


def _say(text: str) -> None:
    console().print(shown(text), highlight=False, soft_wrap=True, markup=False)


def _cleared(store: Store) -> tuple[int, int]:
    try:
        return store.clear()
    except OSError as error:
        raise InputError(f"{store.folder}: cannot be cleared: {error.strerror}") from None


def _list(store: Store) -> None:
    entries = sorted(store.entries(), key=lambda each: -each.used)
    if entries:
        table = Table("model", "target", "bytes", "last used", "key")
        table.columns[2].justify = "right"
        for each in entries:
            parts = each.parts
            name, target = (shown(parts.get(part, "unknown")) for part in ("name", "target"))
            row = (name, target.rpartition(" ")[0] or target, f"{each.size:,}", _used(each))
            table.add_row(*row, each.key[:KEY_DIGITS])
        console().print(table)
    size = sum(each.size for each in entries)
    off = "" if store.most else f"; {OFF}"
    _say(f"{len(entries)} programs, {size:,} of {store.most:,} bytes, in {store.folder}{off}")


def _used(entry: Entry) -> str:
    try:
        return datetime.fromtimestamp(entry.used / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def _explain(model: str, how: Compilation, extensions: Extensions) -> None:
    if model.endswith(PROGRAM_FILE):
        raise InputError(f"{model}: compiled already, so it is not kept again; need the model")
    if front_end_at(model) is None:
        raise InputError(f"{model}: unknown kind of file; need {listed(suffixes())}")
    if not Path(model).exists():
        raise InputError(f"{model}: cannot be read: {os.strerror(errno.ENOENT)}")
    request = how.request(model, extensions)
    parts = parts_of(request)
    if parts is None:
        why = why_no_key(request)
        _say(f"{model}: its program cannot be kept: {why}")
        return
    if not store_here().most:
        _say(f"{model}: its program is not kept: {OFF}")
        return
    store, key = usable_store(), key_of(parts)
    entries = [] if store is None else list(store.entries())
    if any(each.key == key for each in entries):
        _say(f"{model}: its program is kept; its key is {key}")
        return
    _say(f"{model}: its program is not kept; its key would be {key}")
    nearest = _nearest(parts, entries)
    if nearest is None:
        _say("no other program is kept")
        return
    kept = nearest.parts
    table = Table("part", f"of {nearest.key[:KEY_DIGITS]}", "now")
    for part in _differing(parts, kept):
        table.add_row(part, shown(kept.get(part, "")), shown(parts.get(part, "")))
    _say("the most similar program that is kept differs in:")
    console().print(table)


def _nearest(parts: Parts, entries: Sequence[Entry]) -> Entry | None:
    """The program with the fewest parts that differ; of several, the one that was used last."""
    known = [each for each in entries if each.parts]
    return min(
        known, key=lambda each: (len(_differing(parts, each.parts)), -each.used), default=None
    )


def _differing(parts: Parts, kept: Parts) -> list[str]:
    return [name for name in {**parts, **kept} if parts.get(name) != kept.get(name)]
