"""Whether a folder is private: whether only this user and the superuser can put files into it.

Compiled functions are read by unpickling, which can run code, and a compiled program can compute
anything. So a folder of them that others can write to is as good as a program of theirs.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from functools import cache
from pathlib import Path

from .cache_folder import cache_folder

SUPERUSER = 0

KERNELS = "*.nb[ci]"
"""Files of compiled functions."""


def private_folder(name: str) -> Path:
    """A private folder for kernels in the cache folder, which is created if it is missing.

    Raises OSError.

    Args:
        name: of the folder.
    """
    folder = cache_folder().absolute() / "kernels" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    problem = intrusion(folder)
    if problem:
        raise PermissionError(errno.EPERM, problem, str(folder))
    return folder


@cache
def intrusion(folder: Path, files: str = KERNELS) -> str:
    """How other users could have put files into an existing folder; "" if they could not.

    Args:
        files: a pattern of the names of files to check.
    """
    place = Path(os.path.realpath(folder))
    try:
        for entry in sorted(place.glob(files)):
            try:
                found = entry.stat()
            except FileNotFoundError:
                # Another process has removed it, or given it its name.
                continue
            if not _is_own(found):
                return f"{entry} belongs to another user"
        for each in (place, *place.parents):
            found = each.stat()
            if not _is_own(found):
                return f"{each} belongs to another user"
            # In a folder with the sticky bit, such as /tmp, users cannot replace files of others.
            if each != place and found.st_mode & stat.S_ISVTX:
                continue
            if found.st_mode & stat.S_IWOTH or (
                found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid)
            ):
                return f"others can write to {each}"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def _is_own(found: os.stat_result) -> bool:
    """Whether this user or the superuser owns a file."""
    return found.st_uid in (os.geteuid(), SUPERUSER)


@cache
def _is_own_group(number: int) -> bool:
    """Whether this user is the only member of a group. Many systems create such a group for each
    user.
    """
    if number == SUPERUSER:
        return True
    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
