"""Tracebacks of the user's code: the frames of abele's kit and of xDSL around it are left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

LIBRARIES = ("abele", "xdsl")
"""Packages whose frames say nothing about a user's pass, except after its last frame."""


def trimmed(error: BaseException) -> BaseException:
    """An error with a traceback that begins with the user's first frame.

    Frames of libraries stay only after the user's last frame, where they show what raised. The
    traceback is unchanged if no frame is the user's.
    """
    frames = list(_frames(error.__traceback__))
    last = max((i for i, each in enumerate(frames) if _is_users(each)), default=None)
    if last is None:
        return error
    kept = [each for i, each in enumerate(frames) if i > last or _is_users(each)]
    return error.with_traceback(_chained(kept))


def place_of(error: BaseException) -> str:
    """The user's last line before an error, as " (mine.py:12, in apply)"; "" if there is none."""
    own = [each for each in _frames(error.__traceback__) if _is_users(each)]
    if not own:
        return ""
    code = own[-1].tb_frame.f_code
    return f" ({Path(code.co_filename).name}:{own[-1].tb_lineno}, in {code.co_name})"


def _frames(traceback: TracebackType | None) -> Sequence[TracebackType]:
    found: list[TracebackType] = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _is_users(traceback: TracebackType) -> bool:
    module = str(traceback.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] not in LIBRARIES


def _chained(frames: Sequence[TracebackType]) -> TracebackType | None:
    """One traceback of some frames, the outermost first."""
    chain: TracebackType | None = None
    for each in reversed(frames):
        chain = TracebackType(chain, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return chain
