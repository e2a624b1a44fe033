"""Damages zip archives: their bytes, or their members."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, replace
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from .binary import damage_bytes
from .case import Damaged

EPOCH = (1980, 1, 1, 0, 0, 0)
NAMES = ("../../x", "/x.npy", "", ".", "a/", "x\\y.npy", "blobs/../meta.json", "y" * 60_000, "é")
BOMB = 64 << 20
"""Bytes that a small compressed member becomes."""
SYMLINK, DEVICE = 0o120777 << 16, 0o020666 << 16
"""File types in a member's attributes."""


@dataclass(frozen=True)
class Member:
    """A member of an archive.

    Attributes:
        attributes: the value of ZipInfo.external_attr.
    """

    name: str
    data: bytes
    method: int = ZIP_STORED
    attributes: int = 0o644 << 16


def members_of(archive: bytes) -> list[Member]:
    """The members of an archive."""
    with ZipFile(io.BytesIO(archive)) as file:
        return [Member(info.filename, file.read(info)) for info in file.infolist()]


def archive_of(members: list[Member]) -> bytes:
    """An archive of these members. Names may repeat."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), ZipFile(stream, "w") as file:
        warnings.simplefilter("ignore")
        for each in members:
            info = ZipInfo("x", date_time=EPOCH)
            # ZipInfo itself changes some names.
            info.filename = each.name
            info.external_attr = each.attributes
            info.compress_type = each.method
            file.writestr(info, each.data)
    return stream.getvalue()


def damage_zip(archive: bytes, random: np.random.Generator) -> Damaged:
    """An archive with damaged bytes, or with one or two damaged members."""
    if random.random() < 0.4:
        return damage_bytes(archive, random)
    members = members_of(archive)
    done: list[str] = []
    for _ in range(int(random.integers(1, 3))):
        if members:
            done.append(_change(members, random))
    made = archive_of(members)
    if random.random() < 0.15:
        made, more = damage_bytes(made, random)
        done.append(more)
    return Damaged(made, "; ".join(done))


METHODS = (ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA)


def _change(members: list[Member], random: np.random.Generator) -> str:
    place = int(random.integers(len(members)))
    member = members[place]
    what = int(random.integers(10))
    name = NAMES[int(random.integers(len(NAMES)))]
    other = members[int(random.integers(len(members)))]
    if what == 0:
        del members[place]
        return f"no {member.name}"
    if what == 1:
        members.append(member)
        return f"{member.name} twice"
    if what == 2:
        members.append(replace(other, name=member.name))
        return f"two members {member.name}"
    if what == 3:
        members[place] = replace(member, name=name)
        return f"{member.name} is called {name[:20]!r}"
    if what == 4:
        members.append(Member(name, member.data))
        return f"a further member {name[:20]!r}"
    if what == 5:
        members[place] = replace(member, method=METHODS[int(random.integers(len(METHODS)))])
        return f"{member.name} is compressed"
    if what == 6:
        attributes = (SYMLINK, DEVICE)[int(random.integers(2))]
        members[place] = replace(member, data=b"/etc/passwd", attributes=attributes)
        return f"{member.name} is a link or a device"
    if what == 7:
        members[place] = replace(member, data=bytes(BOMB), method=ZIP_DEFLATED)
        return f"{member.name} is a bomb"
    if what == 8:
        members[place] = replace(member, data=other.data)
        return f"{member.name} is {other.name}"
    data, how = damage_bytes(member.data, random)
    members[place] = replace(member, data=data)
    return f"{member.name}: {how}"
