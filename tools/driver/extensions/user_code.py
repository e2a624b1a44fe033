"""Frames of users' code in the traceback of an error."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from sysconfig import get_paths
from traceback import StackSummary, format_exception_only, format_list, walk_tb
from types import FrameType
from typing import cast

from xdsl.ir import Operation

from ....ir.upstream import ModuleOp


def user_traceback(error: BaseException, folders: Iterable[Path]) -> str:
    """The part of an error's traceback that lies in users' folders; "" if there is none."""
    calls = [call for call in walk_tb(error.__traceback__) if _is_in(call[0], folders)]
    if not calls:
        return ""
    lines = [*format_list(StackSummary.extract(calls)), *format_exception_only(error)[:1]]
    return "".join(["Traceback of your files (most recent call last):\n", *lines]).rstrip()


def user_operation(error: BaseException, folders: Iterable[Path]) -> Operation | None:
    """The operation that the innermost function in users' folders worked on; None if unknown."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__) if _is_in(frame, folders)]
    for frame in reversed(frames):
        for value in cast(dict[str, object], frame.f_locals).values():
            if isinstance(value, Operation) and not isinstance(value, ModuleOp):
                return value
    return None


def _is_in(frame: FrameType, folders: Iterable[Path]) -> bool:
    """Whether a frame runs users' code.

    Installed packages may lie inside a user's folder, and a user's folder inside that of a
    package: the innermost folder decides.
    """
    path = Path(frame.f_code.co_filename)
    return _depth(path, folders) > _depth(path, _other_folders())


def _depth(path: Path, folders: Iterable[Path]) -> int:
    """The number of path components of the innermost folder that contains a file, or 0."""
    return max((len(each.parts) for each in folders if path.is_relative_to(each)), default=0)


@lru_cache(maxsize=1)
def _other_folders() -> tuple[Path, ...]:
    """The folders of abele and of all installed packages."""
    rooms = ("ir", "dialects", "backends", "passes", "tools")
    ours = [Path(import_module(f"abele.{room}").__path__[0]) for room in rooms]
    return (*ours, *map(Path, dict.fromkeys(get_paths().values())))
