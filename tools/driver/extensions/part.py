"""The extension of one file or package, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .extension import Extension


@dataclass(frozen=True)
class Part:
    """The extension of one file or package.

    Attributes:
        owner: its name in messages.
    """

    owner: str
    folder: Path
    extension: Extension
    digest: str = ""
    warnings: tuple[str, ...] = ()
