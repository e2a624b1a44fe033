"""Files that are whole or absent: written beside and renamed."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """A stream whose bytes become the file when the block ends, and vanish when it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{uuid4().hex}.{path.name}")
    try:
        with open(beside, "xb") as stream:
            yield stream
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
