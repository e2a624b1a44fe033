"""The Python files that compiled kernels are made from."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

SEQUENCES = [
    Path(__file__).parents[1] / "codelets" / name for name in ("functions.py", "sequences.py")
]
"""The files that define what kernels/functions.py compiles."""


@cache
def folder_stamp(folder: Path) -> str:
    """A digest of the Python files of a folder, and of SEQUENCES: their names and contents."""
    found = sha256()
    for path in [*sorted(folder.glob("*.py")), *SEQUENCES]:
        found.update(f"{path.name} {path.stat().st_size}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()
