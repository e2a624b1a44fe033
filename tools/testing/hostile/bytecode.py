"""Damaged bytecode of StableHLO: its bytes, its sections, and the numbers in them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from .binary import damage_bytes
from .case import Damaged

FOLDER = (
    Path(__file__).resolve().parents[3] / "tests" / "tools" / "importers" / "stablehlo" / "bytecode"
)
"""Bytecode that jaxlib wrote."""

MAGIC = b"ML\xefR"

ALIGNED = 0x80
"""The bit of a section's number that says that its alignment follows."""

NUMBERS = (0, 1, 2, 7, 127, 128, 255, 16_383, 1 << 20, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63)
"""Numbers that stand where the file has another one."""

SECTIONS = 9
"""One more than the largest number of a section."""


@lru_cache(maxsize=1)
def whole_bytecode() -> list[bytes]:
    """Whole programs."""
    found = [path.read_bytes() for path in sorted(FOLDER.glob("*.mlirbc"))]
    assert found, f"{FOLDER}: no programs"
    return found


def varint(number: int) -> bytes:
    """A number as MLIR's bytecode has it: the first byte says how many follow.

    Source: https://mlir.llvm.org/docs/BytecodeFormat.
    """
    for size in range(1, 9):
        if number < 1 << 7 * size:
            return (((number << 1) | 1) << (size - 1)).to_bytes(size, "little")
    return b"\0" + (number & ((1 << 64) - 1)).to_bytes(8, "little")


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    first = data[at]
    if not first:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    size = (first & -first).bit_length()
    return int.from_bytes(data[at : at + size], "little") >> size, at + size


Section = tuple[int, bytes]
"""The number of a section, with its bit of alignment, and its bytes."""


def sections_of(data: bytes) -> tuple[bytes, list[Section]]:
    """What stands before the sections of a whole program, and the sections."""
    _, at = _varint_at(data, len(MAGIC))
    at = data.index(b"\0", at) + 1
    head, found = data[:at], list[Section]()
    while at < len(data):
        number = data[at]
        size, at = _varint_at(data, at + 1)
        if number & ALIGNED:
            _, at = _varint_at(data, at)
            while data[at] == 0xCB:
                at += 1
        found.append((number & ~ALIGNED, data[at : at + size]))
        at += size
    return head, found


def _joined(head: bytes, sections: list[Section]) -> bytes:
    return head + b"".join(bytes([n]) + varint(len(data)) + data for n, data in sections)


def _change_number(data: bytes, random: np.random.Generator) -> tuple[bytes, str]:
    """Replace the number that begins at some byte by another one."""
    if not data:
        return data, "an empty section"
    at = int(random.integers(len(data)))
    old, end = _varint_at(data + bytes(9), at)
    near = old + (-1, 1, 2)[int(random.integers(3))]
    new = near if random.random() < 0.5 else NUMBERS[int(random.integers(len(NUMBERS)))]
    return data[:at] + varint(max(new, 0)) + data[end:], f"{old} is {new} at {at}"


def _change_sections(data: bytes, random: np.random.Generator) -> tuple[bytes, str]:
    head, sections = sections_of(data)
    place = int(random.integers(len(sections)))
    number, inside = sections[place]
    what = int(random.integers(8))
    if what == 0:
        del sections[place]
        return _joined(head, sections), f"no section {number}"
    if what == 1:
        sections.insert(place, sections[place])
        return _joined(head, sections), f"section {number} twice"
    if what == 2:
        other = int(random.integers(len(sections)))
        sections[place], sections[other] = sections[other], sections[place]
        return _joined(head, sections), f"sections {number} and {sections[place][0]} change places"
    if what == 3:
        sections[place] = (int(random.integers(SECTIONS)), inside)
        return _joined(head, sections), f"section {number} is called {sections[place][0]}"
    if what == 4:
        size = NUMBERS[int(random.integers(len(NUMBERS)))]
        before, after = _joined(head, sections[:place]), _joined(b"", sections[place + 1 :])
        made = before + bytes([number]) + varint(size) + inside + after
        return made, f"section {number} says that it has {size} bytes"
    if what == 5:
        others = [each for each in whole_bytecode() if each != data]
        other = sections_of(others[int(random.integers(len(others)))])[1]
        sections[place] = (number, dict(other).get(number, b""))
        return _joined(head, sections), f"section {number} of another program"
    if what == 6:
        version = NUMBERS[int(random.integers(len(NUMBERS)))]
        text = (b"StableHLO_v9999.0.0", b"", b"StableHLO_v-1", b"../x", b"a" * 70_000)
        producer = text[int(random.integers(len(text)))]
        return MAGIC + varint(version) + producer + b"\0" + _joined(b"", sections), (
            f"version {version} of {producer[:20]!r}"
        )
    changed, how = _change_number(inside, random)
    sections[place] = (number, changed)
    return _joined(head, sections), f"section {number}: {how}"


def bytecode(random: np.random.Generator) -> Damaged:
    """A damaged program, alone or inside the bytes that jax.export writes around it."""
    programs = whole_bytecode()
    data = programs[int(random.integers(len(programs)))]
    done: list[str] = []
    way = random.random()
    if way < 0.6:
        for _ in range(int(random.integers(1, 3))):
            try:
                data, what = _change_sections(data, random)
            except (IndexError, ValueError):
                # The first change left nothing that has sections.
                data, what = damage_bytes(data, random)
            done.append(what)
    else:
        data, what = damage_bytes(data, random)
        done.append(what)
    if random.random() < 0.1:
        size = len(data) if random.random() < 0.5 else NUMBERS[int(random.integers(9))]
        data = bytes(8) + (size & 0xFFFFFFFF).to_bytes(4, "little") + data + bytes(3)
        done.append(f"inside {size} bytes of a FlatBuffer")
    return Damaged(data, "; ".join(done))
