"""Damages bytes regardless of their format: flips bits, removes and repeats pieces."""

from __future__ import annotations

import numpy as np

from .case import Damaged

PIECES = (1, 2, 4, 16, 64, 512)
"""Lengths of pieces, in bytes."""


def damage_bytes(data: bytes, random: np.random.Generator) -> Damaged:
    """Bytes after one to three changes."""
    done: list[str] = []
    for _ in range(int(random.integers(1, 4))):
        data, what = _change(data, random)
        done.append(what)
    return Damaged(data, "; ".join(done))


def _change(data: bytes, random: np.random.Generator) -> tuple[bytes, str]:
    place = int(random.integers(len(data) + 1))
    length = PIECES[int(random.integers(len(PIECES)))]
    what = int(random.integers(7))
    if what == 0:
        return data[:place], f"ends after {place} bytes"
    if what == 1:
        return data[:place] + data[place + length :], f"{length} bytes missing at {place}"
    if what == 2:
        return data[: place + length] + data[place:], f"{length} bytes twice at {place}"
    if what == 3:
        return _over(data, place, bytes(length)), f"{length} zeros at {place}"
    if what == 4:
        return _over(data, place, b"\xff" * length), f"{length} bytes 255 at {place}"
    if what == 5:
        return _over(data, place, random.bytes(length)), f"{length} random bytes at {place}"
    if not data:
        return data, "empty"
    place = min(place, len(data) - 1)
    bit = 1 << int(random.integers(8))
    return _over(data, place, bytes([data[place] ^ bit])), f"bit {bit} of byte {place} flipped"


def _over(data: bytes, place: int, new: bytes) -> bytes:
    end = min(place + len(new), len(data))
    return data[:place] + new[: end - place] + data[end:]
