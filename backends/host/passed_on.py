"""Variables that only copies read need not be written: their readers read the sources instead.

exchange.move [@a, @b] -> @joined moves [..]      here:
exchange.move [@joined] -> @in                    exchange.move [@a, @b] -> @in moves [..]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ...dialects.steps import Copy, Vertices
from ...ir.geometry.space import Space
from ...ir.upstream import ModuleOp


@dataclass(frozen=True)
class Reading:
    """The sources that a copy reads, and their moves, in the form of a Copy."""

    sources: tuple[str, ...]
    spaces: tuple[Space, ...] | None

    @staticmethod
    def of(op: Copy, passed: Mapping[str, Reading]) -> Reading | None:
        """The reading of a copy if some variables are passed on.

        None if that would take two moves, one after the other.
        """
        if op.spaces is None:
            (source,) = op.sources
            return passed.get(source) or Reading((source,), None)
        found = [passed.get(name) or Reading((name,), None) for name in op.sources]
        if any(each.spaces is not None for each in found):
            return None
        return Reading(tuple(name for each in found for name in each.sources), op.spaces)


def passed_on(
    module: ModuleOp,
    temporary: Collection[str],
    is_copied: Callable[[Reading, str], bool],
) -> dict[str, Reading]:
    """The variables that need not be written, each with the reading that replaces it.

    Args:
        temporary: variables that one operation writes and others read, in supersteps that follow
            each other. The result is in program order.
        is_copied: whether a copy with this reading can fill this variable.
    """
    ops = [op for op in module.walk() if isinstance(op, (Copy, Vertices))]
    readers: dict[str, list[Copy | Vertices]] = {}
    for op in ops:
        for name in op.sources:
            readers.setdefault(name, []).append(op)
    found: dict[str, Reading] = {}
    for op in ops:
        if not isinstance(op, Copy) or not {op.destination, *op.sources} <= set(temporary):
            continue
        own, copies = Reading.of(op, found), readers[op.destination]
        if own is None or not all(isinstance(each, Copy) for each in copies):
            continue
        # Chips that read their own entries read the memory that the copy names.
        if any(isinstance(each, Copy) and each.own is not None for each in (op, *copies)):
            continue
        found[op.destination] = own
        for each in copies:
            assert isinstance(each, Copy)
            reading = Reading.of(each, found)
            if reading is None or not is_copied(reading, each.destination):
                del found[op.destination]
                break
    return found
