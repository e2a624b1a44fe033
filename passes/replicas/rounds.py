"""Combines the parts of replicas in rounds, in each of which a chip sends to its neighbours only.

Replica r holds one part [n] of a sum, cut into N fragments. After a reduce-scatter, replica r holds
fragment r of the sum. Chips stand in a ring, in the order of their numbers.

    direct   one exchange: each chip sends N - 1 fragments, one to each other chip
    ring     N - 1 rounds: the sum of a fragment travels on by one chip, which adds its own part
    both     N - 1 rounds: the same, half of each fragment one way round and half the other way
    middle   N / 2 rounds: a fragment is summed from both sides, and the sums meet where it ends

A round is an ordinary computation: its maps say which fragment a replica adds, and `wrap` brings
the ring around. So no level below knows that there are rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

import numpy as np
from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, i64
from xdsl.ir import SSAValue

from ...backends.links.links import routes_of
from ...backends.prices import cost
from ...backends.target import Target
from ...dialects import nn
from ...dialects.structured import Body, Stage, Structure
from ...ir.geometry.space import AccessMap, AxisMap, Dim, Space
from ..gradients.emit import Emitter
from .written import PARTS

Method = Literal["direct", "ring", "both", "middle"]
"""A way to combine parts."""

Way = Literal["auto", "direct", "ring", "both", "middle"]
"""A method, or the choice of the fastest for each sum."""

DIRECT: Method = "direct"
RING: Method = "ring"
BOTH: Method = "both"
MIDDLE: Method = "middle"
AUTO: Way = "auto"


@dataclass(frozen=True)
class Hop:
    """An exchange of a method: what each chip sends along the ring.

    Attributes:
        up: fragments sent to the next chip. down: to the one before.
        apart: fragments sent to each other chip, at once.
    """

    up: float = 0.0
    down: float = 0.0
    apart: float = 0.0


def hops(method: Method, replicas: int) -> list[Hop]:
    """The exchanges of a reduce-scatter, or of an all-gather, by a method."""
    n = replicas
    return {
        DIRECT: lambda: [Hop(apart=1.0)],
        RING: lambda: [Hop(up=1.0)] * (n - 1),
        BOTH: lambda: [Hop(0.5, 0.5)] * (n - 1),
        MIDDLE: lambda: [Hop(up=1.0)] * (1 - n % 2) + [Hop(1.0, 1.0)] * ((n - 1) // 2),
    }[method]()


METHODS: tuple[Method, ...] = (DIRECT, RING, BOTH, MIDDLE)
"""The ways to combine parts, the one with the fewest exchanges first."""


@dataclass(frozen=True)
class Load:
    """What a method costs.

    Attributes:
        cycles: of all its exchanges, with their syncs.
        link_bytes: those that the busiest link carries in all of them.
    """

    cycles: int
    link_bytes: int


def load_of(method: Method, fragment: int, replicas: int, target: Target) -> Load:
    """What a reduce-scatter or an all-gather costs, by the links that it uses.

    Args:
        fragment: bytes of the fragment of one replica.
    """
    chips, apart = target.chips, target.chips // replicas
    every = np.arange(replicas)
    routes = routes_of(target.links)
    cycles, load = 0, np.zeros(len(routes.bytes_per_second))
    longer = cost.sync_cycles(target, "all")
    for hop in hops(method, replicas):
        moved = np.zeros((replicas, replicas))
        moved += hop.apart
        moved[every, (every + 1) % replicas] += hop.up
        moved[every, (every - 1) % replicas] += hop.down
        np.fill_diagonal(moved, 0.0)
        of, to = np.nonzero(moved)
        pairs = of * apart * chips + to * apart
        amount = np.ceil(moved[of, to] * fragment).astype(np.int64)
        seconds = routes.seconds(pairs, amount).max(initial=0.0)
        cycles += ceil((seconds + target.links.first_word_seconds()) * target.clock_hz) + longer
        moving = np.zeros(chips * chips, np.int64)
        moving[pairs] = amount
        load += np.bincount(routes.link, moving[routes.pair], len(load))
    return Load(cycles, int(load.max(initial=0)))


def chosen(bytes_of_part: int, replicas: int, target: Target) -> Method:
    """The method that combines parts of so many bytes in the fewest cycles."""
    fragment = ceil(bytes_of_part / replicas)
    return min(METHODS, key=lambda each: load_of(each, fragment, replicas, target).cycles)


# Reduce-scatter


def summed(emit: Emitter, parts: SSAValue, method: Method) -> SSAValue:
    """The sum of the parts of all replicas.

    Args:
        parts: with a leading axis of replicas.
    """
    replicas, *given = nn.shape_of(parts)
    shape, size = given, prod(given)
    if method == DIRECT or replicas == 1 or not size:
        return emit(nn.ReduceOp(parts, "sum", [0]))
    halves = 2 if method == BOTH else 1
    # Fragments cut the first axis. If it is too short, all axes are one.
    if not shape or shape[0] < replicas * halves:
        shape, parts = [size], emit.reshaped(parts, (replicas, size))
    length, *rest = shape
    fragment = ceil(length / replicas / halves)
    whole = replicas * halves * fragment
    none = [0] * len(rest)
    if whole > length:
        parts = emit(nn.PadOp(parts, [0, 0, *none], [0, whole - length, *none]))
    ring = _Ring(emit, replicas, halves, (fragment, *rest))
    own = emit.reshaped(parts, (replicas, replicas, halves, fragment, *rest))
    found = ring.met(own) if method == MIDDLE else ring.sent_round(own)
    found = emit.reshaped(found, (whole, *rest))
    if whole > length:
        found = emit(nn.SliceOp(found, [0, *none], [1] * len(shape), [length, *rest]))
    return emit.reshaped(found, given)


@dataclass
class _Ring:
    """Rounds over fragments [replicas, halves, elements...].

    In half 0 of a fragment, what is sent goes up the ring, and in half 1 down.
    """

    emit: Emitter
    replicas: int
    halves: int
    sizes: tuple[int, ...]

    def sent_round(self, own: SSAValue) -> SSAValue:
        """Fragment r of the sum on replica r, after its sum has visited all others."""
        n = self.replicas
        total = self._add([self._fragment(n - 1, 1), self._fragment(n - 2)], [own, own])
        for left in range(n - 3, -1, -1):
            total = self._add([self._before(), self._fragment(left)], [total, own])
        return total

    def met(self, own: SSAValue) -> SSAValue:
        """Fragment r of the sum on replica r, where sums of both sides meet."""
        n, reach = self.replicas, self.replicas // 2
        if n == 2:
            return self.sent_round(own)
        two = _Ring(self.emit, n, 2, self.sizes)
        if n % 2 == 0:
            first = self._add([self._fragment(reach, 1), self._fragment(reach - 1)], [own, own])
            other = self._copy(self._fragment(1 - reach), own)
            sides = self.emit(nn.ConcatOp([first, other], 1))
            left = reach - 2
        else:
            sides = two._copy(two._fragment(reach, whole=True), own)
            left = reach - 1
        for far in range(left, 0, -1):
            sides = two._add([two._before(), two._fragment(far, whole=True)], [sides, own])
        return self._meet(sides, own)

    def _meet(self, sides: SSAValue, own: SSAValue) -> SSAValue:
        """The sum of what arrives from both neighbours, and the own part of fragment r."""
        n = self.replicas

        def side(half: int) -> AccessMap:
            replica = AxisMap(n, ((0, 1),), 2 * half - 1, outside="wrap")
            return AccessMap((replica, AxisMap(2, (), half), *self._elements))

        arriving, mine = [side(0), side(1)], self._fragment(0)
        if isinstance(nn.element_of(own), AnyFloat):
            body = Body("add", then=(Stage("add"),))
            return self._compute([*arriving, mine], [sides, sides, own], body)
        # Chains add floats only.
        total = self._add(arriving, [sides, sides])
        here = AccessMap((self._replica(0), _axis(self.halves, 1), *self._elements))
        return self._add([here, mine], [total, own])

    # Maps. Dimensions: 0 the replica, 1 the half, the others the element

    @property
    def _elements(self) -> tuple[AxisMap, ...]:
        return tuple(_axis(n, d) for d, n in enumerate(self.sizes, 2))

    def _before(self) -> AccessMap:
        """What the neighbour has sent: replica r - 1 in half 0, r + 1 in half 1."""
        return AccessMap((self._replica(1), _axis(self.halves, 1), *self._elements))

    def _replica(self, back: int) -> AxisMap:
        """The replica that lies so many chips back on the way, in each half."""
        turn = ((1, 2 * back),) if self.halves == 2 and back else ()
        return AxisMap(self.replicas, ((0, 1), *turn), -back, outside="wrap" if back else "none")

    def _fragment(self, left: int, back: int = 0, *, whole: bool = False) -> AccessMap:
        """The own part of the fragment that has so many chips left to go.

        Args:
            back: by how many chips the replica lies back on the way.
            whole: both halves read the same fragment.
        """
        n, far = self.replicas, left - back
        turn = ((1, -2 * far),) if self.halves == 2 and far else ()
        which = AxisMap(n, ((0, 1), *turn), far, outside="wrap" if far else "none")
        half = AxisMap(1) if whole else _axis(self.halves, 1)
        return AccessMap((self._replica(back), which, half, *self._elements))

    # Operations

    def _add(self, maps: list[AccessMap], values: list[SSAValue]) -> SSAValue:
        return self._compute(maps, values, Body("add"))

    def _copy(self, access: AccessMap, value: SSAValue) -> SSAValue:
        return self._compute([access], [value], Body("identity"))

    def _compute(self, maps: list[AccessMap], values: list[SSAValue], body: Body) -> SSAValue:
        names = ("r", "h", *(f"e{i}" for i in range(len(self.sizes))))
        sizes = (self.replicas, self.halves, *self.sizes)
        dims = tuple(map(Dim, names, sizes))
        result = AccessMap(tuple(_axis(dim.size, d) for d, dim in enumerate(dims)))
        made = nn.ComputeOp(values, Structure(Space(dims, tuple(maps), (result,)), body))
        if self.halves > 1:
            made.attributes[PARTS] = DenseArrayBase.from_list(
                i64, (0, self.halves, *(0 for _ in self.sizes))
            )
        return self.emit(made)


def _axis(size: int, dim: int) -> AxisMap:
    return AxisMap(size, ((dim, 1),) if size > 1 else ())
