"""Archives with other members."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo


def changed(archive: bytes, ending: str, change: Callable[[Any], Any]) -> bytes:
    """An archive in which a function has changed the JSON of the member with this ending."""

    def edit(data: bytes) -> bytes:
        tree = json.loads(data)
        done = change(tree)
        return json.dumps(tree if done is None else done).encode()

    return edited(archive, ending, edit)


def edited(
    archive: bytes, ending: str, change: Callable[[bytes], bytes | None], method: int = ZIP_STORED
) -> bytes:
    """An archive in which a function has changed the bytes of a member; None leaves it out."""
    made = io.BytesIO()
    with ZipFile(io.BytesIO(archive)) as old, ZipFile(made, "w") as new:
        for info in old.infolist():
            data: bytes | None = old.read(info)
            member = ZipInfo(info.filename, date_time=(1980, 1, 1, 0, 0, 0))
            if info.filename.endswith(ending):
                data = change(old.read(info))
                member.compress_type = method
            if data is not None:
                new.writestr(member, data)
    return made.getvalue()
