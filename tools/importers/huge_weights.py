"""Refuse weights that no plan can fit on the chip, before their bytes are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ...backends.target import DEFAULT_TARGET, MOST_TILES, Target, resolve_target
from ...ir.support.errors import DoesNotFit

WeightCheck = Callable[[Mapping[str, int]], None]
"""Raises DoesNotFit for weights, in bytes by name, that are too large to read."""

TIMES_THE_CHIP = 4
"""Weights larger than all tiles by this factor are refused unread. Smaller ones are read, so that
narrowing passes can apply, and so that the error can report what fills the tiles."""

READ_BYTES = 2 << 30
"""Weights up to this size are always read, because that takes only seconds."""

SHOWN = 3
"""The number of weights that a message names."""


@dataclass
class Weighed:
    """The sizes of weights that an import meets one after the other.

    The check sees all of them again after each 2 GiB of new ones, not at each weight.

    Attributes:
        check: called before a weight is read.
        sizes: bytes by name.
        unchecked: the bytes that are new since the last check.
    """

    check: WeightCheck
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    unchecked: int = 0

    def add(self, name: str, size: int) -> None:
        """Add a weight that is not read yet. Raises what the check raises."""
        self.sizes[name] = size
        self.unchecked += size
        if self.unchecked > READ_BYTES:
            self.check(self.sizes)
            self.unchecked = 0


def refusing_huge_weights(target: str | Target | None) -> WeightCheck:
    """A check that raises DoesNotFit for weights far larger than a target.

    Args:
        target: as for compile_model.
    """
    return partial(_refuse, target)


def _refuse(given: str | Target | None, weights: Mapping[str, int]) -> None:
    needed = sum(weights.values())
    if needed <= READ_BYTES:
        return
    target = given if isinstance(given, Target) else resolve_target(given or DEFAULT_TARGET)
    available = target.usable_bytes_per_tile * target.tiles
    if needed <= TIMES_THE_CHIP * available:
        return
    largest = sorted(weights.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {size} B" for name, size in largest[:SHOWN])
    rest = sum(size for _, size in largest[SHOWN:])
    tiles = -(-needed // target.usable_bytes_per_tile)
    more = f", or {tiles} tiles and more (--target {target.base}:N)" if tiles <= MOST_TILES else ""
    others = f", others {rest} B" if rest else ""
    count = "1 weight" if len(weights) == 1 else f"{len(weights)} weights"
    raise DoesNotFit(
        f"the model with {count} ({shown}{others}), not read yet,",
        needed,
        available,
        units="bytes on all tiles together",
        remedy=f"a smaller model, weights of fewer bits{more}",
    )
