"""The lengths of one run: numbers of elements that follow from the shapes of what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ...ir.support.errors import InputError

if TYPE_CHECKING:
    from ...dialects.host import ArgumentSize, KeptSize, LengthInput
    from .arrays import Tensor


class LengthBoundsError(InputError):
    """A length of a run is out of its bounds."""


class RunLengths:
    """The lengths of a run, as far as they are known.

    Attributes:
        counts: the known lengths, by name.
    """

    def __init__(self, lengths: Iterable[LengthInput]) -> None:
        self.counts: dict[str, int] = {}
        self._bounds = {each.name: each for each in lengths}
        self._origins: dict[str, str] = {}

    def give(self, name: str, count: int) -> None:
        """Set a length that the run gives. Raises LengthBoundsError if it is out of its bounds."""
        self._set(name, count, "the run gives", f"the run gives {name} = {count}")

    def follow_shapes(
        self,
        sizes: Iterable[ArgumentSize],
        shapes: Mapping[str, tuple[int, ...]],
        known: Mapping[str, Tensor],
    ) -> None:
        """Add the lengths that follow from the shapes of inputs.

        Raises InputError for shapes that contradict each other or the bounds of a length.
        """
        # What names one length comes first: a sum may follow from others.
        for each in sorted(sizes, key=lambda each: len(each.lengths)):
            if each.argument not in shapes:
                continue
            size, tensor = shapes[each.argument][each.axis], known[each.argument]
            what = f"input {tensor}: axis {each.axis} has {size} elements"
            if self._follow(each, size, what):
                continue
            wanted = self._size(each)
            # An array in its largest shape holds its own padding.
            if size not in (wanted, tensor.shape[each.axis]):
                raise InputError(f"{what}; need {wanted}, because {self._told(each)}")

    def follow_states(self, sizes: Iterable[KeptSize], held: Mapping[str, int]) -> None:
        """Add the lengths that nothing else says: all of what states hold is read.

        Raises InputError for lengths out of their bounds, and for those that states do not reach.
        A run that begins again gives the length.

        Args:
            held: the elements that exist, by the name of the state that holds the number.
        """
        sizes = sorted(sizes, key=lambda each: len(each.lengths))
        for each in sizes:
            self._follow(each, held[each.held], _held(each, held))
        # Of a state with an axis of no elements, nothing is read.
        unread = {each.state for each in sizes if not self._size(each)}
        for each in sizes:
            if each.state not in unread and self._size(each) > held[each.held]:
                raise InputError(
                    f"{_held(each, held)}; a run cannot read {self._size(each)}: {self._told(each)}"
                )

    def _follow(self, each: ArgumentSize | KeptSize, size: int, what: str) -> bool:
        """Add the one length of a size that is not known. Return whether there is one.

        Raises InputError if there are several, or if it is out of its bounds.
        """
        missing = [name for name in each.lengths if name not in self.counts]
        if len(missing) > 1:
            raise InputError(
                f"{what}, the sum of {' and '.join(missing)}; give one of them as an input"
            )
        for name in missing:
            others = sum(self.counts[other] for other in each.lengths if other != name)
            count = size - each.offset - others
            self._set(name, count, what, f"{what}, so that {name} is {count}")
        return bool(missing)

    def _set(self, name: str, count: int, origin: str, told: str) -> None:
        low, high = self._bounds[name].least, self._bounds[name].most
        if not low <= count <= high:
            ends = f"{min(low, count)}..{max(high, count)}"
            wider = f", or compile with wider bounds: --dim {name}={ends}" if count >= 0 else ""
            raise LengthBoundsError(f"{told}; need {low}..{high}{wider}")
        self.counts[name], self._origins[name] = count, origin

    def _size(self, each: ArgumentSize | KeptSize) -> int:
        """The number of elements along an axis. All lengths that it depends on are known."""
        return each.offset + sum(self.counts[name] for name in each.lengths)

    def _told(self, each: ArgumentSize | KeptSize) -> str:
        return "; ".join(f"{n} is {self.counts[n]}: {self._origins[n]}" for n in each.lengths)


def _held(each: KeptSize, held: Mapping[str, int]) -> str:
    return f"state {each.state!r} holds {held[each.held]} elements along axis {each.axis}"
