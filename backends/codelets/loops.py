"""Inner loops of elementwise codelets, as poplibs publishes or abele assumes them.

The loops of abele's own scalar functions are in their records, backends/codelets/scalar.py. Here
are the other published ones, which a user's function may be priced as.
Source: poplibs lib/popops/codelets/popopsCycleEstimators.hpp; relu, gelu, logaddexp from its
non-linearity codelets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..target.dtype_kinds import Kind


@dataclass(frozen=True)
class Loop:
    """The inner loop of an elementwise codelet.

    Attributes:
        cycles: per pass.
        elements: per pass, 0 for a full vector.
        counted: whether the cycles include loads and stores.
        assumed: whether nobody has published it.
    """

    cycles: int
    elements: int = 0
    counted: bool = False
    assumed: bool = False


def vector(cycles: int) -> Loop:
    """A loop that takes a full vector per pass; loads and stores are not in its cycles."""
    return Loop(cycles)


def single(cycles: int) -> Loop:
    """A loop that takes one element per pass; loads and stores are not in its cycles."""
    return Loop(cycles, elements=1)


def unrolled(cycles: int, elements: int) -> Loop:
    """A loop that takes some elements per pass, with loads and stores in its cycles."""
    return Loop(cycles, elements, counted=True)


def assumed(loop: Loop) -> Loop:
    """That loop, of a codelet that nobody has published."""
    return replace(loop, assumed=True)


@dataclass(frozen=True)
class Loops:
    """The loops of one function: for 32-bit floats, for 16-bit floats, and for integers.

    None: nobody has published one, so that it costs ASSUMED_LOOP.
    """

    float32: Loop | None
    float16: Loop | None
    integer: Loop | None

    def of(self, kind: Kind) -> Loop | None:
        """The loop for a kind of elements."""
        return {"float32": self.float32, "float16": self.float16, "int": self.integer}[kind]


ASSUMED_LOOP = assumed(single(20))
"""The loop of a function that nobody has published: a short library routine, one element at a
time."""

PUBLISHED: Mapping[str, Loops] = {
    "and": Loops(None, None, unrolled(49, 4)),
    "atan2": Loops(unrolled(272, 2), unrolled(578, 4), None),
    "cast": Loops(vector(1), vector(1), single(1)),
    "expm1": Loops(single(4), vector(5), None),
    "gelu": Loops(vector(10), vector(5), None),
    "log1p": Loops(vector(180), vector(180), None),
    "logaddexp": Loops(vector(23), vector(13), None),
    "not": Loops(None, None, single(17)),
    "not_equal": Loops(unrolled(20, 4), unrolled(11, 4), unrolled(29, 2)),
    "or": Loops(None, None, unrolled(23, 4)),
    "rsqrt": Loops(single(1), vector(3), None),
}
"""Published loops of functions that abele has no record of, by the name that poplibs gives them."""
