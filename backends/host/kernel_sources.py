"""The Python files from which kernels are compiled."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

SEQUENCES = [
    Path(__file__).parents[1] / "codelets" / name
    for name in ("functions.py", "philox.py", "sequences.py")
]
"""The files that define what kernels/functions.py compiles."""


KERNELS = Path(__file__).with_name("kernels")
"""The folder of the kernels."""

BATTERIES = Path(__file__).with_name("battery")
"""The folder of the batteries, which prove kernels."""


@cache
def folder_stamp(folder: Path) -> str:
    """A digest of the Python files of a folder, and of SEQUENCES: their names and contents.

    It is computed by the first call for the folder in this process.
    """
    return _digest(folder)


def has_changed(folder: Path) -> bool:
    """Whether any of those files has changed since: compiled code may then not match the stamp."""
    return _digest(folder) != folder_stamp(folder)


def _digest(folder: Path) -> str:
    found = sha256()
    for path in [*sorted(folder.glob("*.py")), *SEQUENCES]:
        found.update(f"{path.name} {path.stat().st_size}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


# Compute the stamp now: Python reads these files from here on, and compiles kernels minutes later.
_ = folder_stamp(KERNELS)
