"""The folder for what abele would otherwise compute again in each process."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$ABELE_CACHE`, else abele's folder in the user's cache."""
    given = os.environ.get("ABELE_CACHE")
    if given:
        return Path(given)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "abele"
