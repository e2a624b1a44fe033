"""What a codelet works on: the cells of one shape class, all at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from numpy.lib.stride_tricks import as_strided

from ...dialects.structured import Body
from ..host.fast import Stamp
from .calls import Array, Call


@dataclass(frozen=True)
class Cells:
    """All cells of one shape class, through views with an axis a cut and an axis a dimension.

    body: what happens at each point. operands, those of the chain last, and result: (parts of the
    class..., dimensions...), of one shape; an array has stride 0 along dimensions that it does not
    depend on. merged: axes of the reduction dimensions. shared: the operands, of which all replicas
    that cuts make are the first one, unless the result is written over them. stamps: of the
    operands' variables, where known. alike: the operands whose replicas are equal whenever cells
    are computed. spared: those of them of which the first replica alone is read, noted as calls are
    bound.
    """

    body: Body
    operands: tuple[Array, ...]
    result: Array
    merged: tuple[int, ...]
    shared: tuple[Array, ...] = ()
    stamps: tuple[Stamp | None, ...] = ()
    alike: Collection[int] = ()
    spared: set[int] = field(default_factory=set[int])

    @property
    def operands_read(self) -> tuple[Array, ...]:
        """The operands as they are read: those that are alike, on the first of their replicas."""
        return tuple(self.shared[i] if i in self.alike else a for i, a in enumerate(self.operands))

    @property
    def result_once(self) -> Array:
        """The result with one element along the reduction dimensions."""
        return self.once(self.result)

    def once(self, array: Array) -> Array:
        """One element along the reduction dimensions of an array that does not depend on them."""
        shape = [1 if d in self.merged else n for d, n in enumerate(array.shape)]
        return as_strided(array, shape, array.strides)


def alike_calls(
    cells: Cells, which: Sequence[int], bind: Callable[[Sequence[Array]], Call | None]
) -> list[Call]:
    """A call on the first replica of some operands: of those that are alike, and of the others
    while it is known that theirs are equal.

    bind: makes the call on operands that are seen in one way or the other; None if it cannot, and
    then there are no calls.
    """
    operands = list(cells.operands_read)
    call = bind(operands)
    if call is None:
        return []
    cells.spared.update(i for i in which if i in cells.alike)
    stamps: list[Stamp] = []
    for i in which:
        stamp = cells.stamps[i] if cells.stamps else None
        if stamp is not None and cells.shared[i] is not operands[i]:
            operands[i] = cells.shared[i]
            stamps.append(stamp)
    alike = bind(operands) if stamps else None
    return [call if alike is None else (_Alike(stamps, alike, call), ())]


class _Alike:
    """One of two calls: what it reads is equal on all tiles, or may not be."""

    __slots__ = ("_alike", "_apart", "_stamps")

    def __init__(self, stamps: Sequence[Stamp], alike: Call, apart: Call) -> None:
        self._stamps, self._alike, self._apart = stamps, alike, apart

    def __call__(self) -> None:
        """Make the call."""
        function, arguments = self._alike
        for stamp in self._stamps:
            if stamp.whole is None:
                function, arguments = self._apart
                break
        function(*arguments)
