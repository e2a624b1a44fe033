"""Watches which files a command opens, changes and executes, by Python's audit events."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

CHANGES: dict[str, tuple[int, ...]] = {
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.mkdir": (0,),
    "os.symlink": (1,),
    "os.link": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "shutil.rmtree": (0,),
    "shutil.move": (0, 1),
}
"""Events that change files, with the positions of the arguments that are paths."""

RUNS = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
"""Events that run programs or reach other hosts."""

DEVICES = ("/dev", "/proc")
"""Folders of devices, where writing loses nothing. Arguments of commands name files there."""

SYSTEM = ("/proc", "/sys", "/dev", "/usr", "/lib", "/lib64", "/etc/localtime", "/etc/mime.types")
"""Files that Python and its libraries read."""


@dataclass
class Watched:
    """What this process may open and change.

    Attributes:
        readable: the folders in which files may be read.
        writable: the folders in which files may be changed.
        named: the arguments of the command, which may name further files.
        escapes: each forbidden access.
    """

    readable: Sequence[str]
    writable: Sequence[str]
    named: Sequence[str] = ()
    escapes: list[str] = field(default_factory=list[str])

    def begin(self, folder: Path, named: Sequence[str]) -> None:
        """Forget what was, and watch a command that may read and write in a folder."""
        inside, self.named, self.escapes = _path(folder), named, []
        self.readable = [*self.readable[:-1], inside]
        self.writable = [*self.writable[:-1], inside]

    def look(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event if it is forbidden."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING:
                # A file without a name is opened by the name of its folder, and leaves nothing.
                if isinstance(path, str | bytes) and os.path.isdir(path):
                    return
                self._note(path, "wrote", self.writable)
            elif not self._is_named(path):
                self._note(path, "read", self.readable)
        elif event in CHANGES:
            for place in CHANGES[event]:
                self._note(arguments[place], event, self.writable)
        elif event in RUNS:
            # abele compiles its kernels in a process of its own.
            if event == "subprocess.Popen" and arguments[0] == sys.executable:
                return
            self.escapes.append(f"{event} {arguments[0]!r}")
        elif event == "compile":
            source, name = arguments
            is_file = isinstance(name, str | bytes) and os.path.isfile(name)
            inside = self.readable[-1:]
            if source is not None and is_file and _is_in(name, inside) and not self._is_named(name):
                self.escapes.append(f"ran code of {name!r}")

    def _is_named(self, path: object) -> bool:
        text = os.fsdecode(path) if isinstance(path, str | bytes) else ""
        named = self.named
        return bool(text) and any(text in each or os.path.basename(text) in each for each in named)

    def _note(self, path: object, what: str, allowed: Sequence[str]) -> None:
        if isinstance(path, str | bytes) and not _is_in(path, allowed):
            self.escapes.append(f"{what} {os.fsdecode(path)!r}")


def watch_files(folder: Path, own: Sequence[Path]) -> Watched:
    """Watch this process from now on. A process cannot stop watching.

    Args:
        folder: the folder in which files may be read and written.
        own: the folders of abele, whose files may be read and whose caches may be written.
    """
    inside, caches = _path(folder), _folders(own)
    readable = _folders([*own, sys.prefix, sys.base_prefix, *filter(None, sys.path), *SYSTEM])
    watched = Watched([*readable, inside], [*caches, *DEVICES, inside])
    sys.addaudithook(_once_at_a_time(watched.look))
    return watched


def _once_at_a_time(
    look: Callable[[str, tuple[Any, ...]], None],
) -> Callable[[str, tuple[Any, ...]], None]:
    """The audit function `look`, made to ignore events that it causes itself by resolving paths."""
    going: list[bool] = []

    def outer(event: str, arguments: tuple[Any, ...]) -> None:
        if going:
            return
        going.append(True)
        try:
            look(event, arguments)
        finally:
            going.clear()

    return outer


def _folders(paths: Sequence[Path | str]) -> list[str]:
    return sorted({_path(each) for each in paths})


def _path(path: str | bytes | Path) -> str:
    try:
        return os.path.realpath(os.fsdecode(path))
    # A NUL, or a name that is too long.
    except (ValueError, OSError):
        return ""


def _is_in(path: str | bytes, folders: Sequence[str]) -> bool:
    real = _path(path)
    return not real or any(real == each or real.startswith(f"{each}/") for each in folders)
