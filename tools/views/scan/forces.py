"""Forces on vertices, and the steps that vertices take.

As in ForceAtlas2 (Jacomy et al., PLoS ONE 9(6), 2014), vertices repel each other like charges, by
1/d in the plane, and edges attract. Repulsion is computed on a grid: masses are spread over its
points, convolved with the kernel by FFT, and read at the places of the vertices. A vertex moves to
the mean of its neighbours, whatever their number. Near neighbours count more than far ones, so that
a vertex joins most of them instead of hanging between all. Gravity pulls everything into a round
shape. Two forces depend on layers: a vertex is attracted to the centre of its layer, and repelled
by nearby vertices of other layers, so that layers form lobes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ....ir.support.on_step import OnStep
from .blur import blur
from .kernels import deposit, deposit_layers, pull, step
from .threads import FEW, SLICES, in_slices

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]


REPELLED = 2
"""The number of steps between two computations of the repulsion: vertices move little in one
step."""


@dataclass(frozen=True)
class Strengths:
    """The strengths of the forces.

    Attributes:
        bind: attraction by edges.
        charge: repulsion.
        gravity: attraction to the home of the layer, which is the centre of the picture unless
            layers have homes.
        cohesion: attraction to the centre of the layer.
        separation: repulsion by other layers.
        falloff, half_fall: an edge longer than falloff pulls less, by its length to the power of
            half_fall / 2. With a half_fall of 2 or more, a vertex moves to where most of its
            neighbours are, instead of to a place between all of them.
    """

    bind: float = 1.0
    charge: float = 0.4
    gravity: float = 0.6
    cohesion: float = 0.3
    separation: float = 4.0
    falloff: float = 0.05
    half_fall: int = 1


@dataclass(frozen=True, eq=False)
class Bodies:
    """Bodies to move: x, y, mass and layer, (n,) each; the ends and weights of edges, (e,).

    Attributes:
        homes: (2, layers), the place to which gravity pulls each layer, from the centre of the
            picture, as shares of its side.
    """

    x: Floats
    y: Floats
    mass: Floats
    layer: Ids
    producer: Ids
    consumer: Ids
    weight: Floats
    homes: Floats


def relax(
    bodies: Bodies,
    steps: int,
    grid: int,
    caps: tuple[float, float],
    strengths: Strengths,
    on_step: OnStep,
    own: int = 192,
    every: int = 3,
) -> None:
    """Move bodies in place, step by step. The cap on a step goes from the first to the last cap.

    Args:
        grid: points per side of the grid for repulsion.
        own: points per side of the grids that separate layers, which are renewed every few steps.
    """
    field = None
    territory = _Territory.of(bodies, own)
    kernel = _Kernel(grid)
    for k in range(steps):
        on_step(f"step {k + 1} of {steps}")
        if strengths.separation and k % every == 0:
            territory.renew(bodies)
        cap = caps[0] * (caps[1] / caps[0]) ** (k / max(1, steps - 1))
        if field is None or k % REPELLED == 0:
            field = _Field.of(bodies, kernel)
        _move(bodies, field, territory, strengths, np.float32(cap))


def _move(
    bodies: Bodies,
    field: _Field,
    territory: _Territory,
    strengths: Strengths,
    cap: np.float32,
) -> None:
    """One step of all bodies."""
    x, y = bodies.x, bodies.y
    frame = _Frame.around(x, y)
    sums = np.zeros((SLICES, len(x), 3), np.float32)
    falloff = np.float32(strengths.falloff)

    def pulled(part: int, first: int, last: int) -> None:
        ends = bodies.producer, bodies.consumer
        pull(*ends, bodies.weight, first, last, x, y, falloff, strengths.half_fall, sums[part])

    in_slices(pulled, len(bodies.producer), few=FEW)
    middle = np.array([[frame.left + frame.side / 2], [frame.top + frame.side / 2]], np.float32)
    homes = (middle + bodies.homes * np.float32(frame.side)).astype(np.float32)
    centres = territory.centres(bodies)
    side = len(territory.crowd)

    def moved(_: int, first: int, last: int) -> None:
        step(
            first,
            last,
            x,
            y,
            sums,
            np.float32(strengths.bind),
            field.push,
            field.left,
            field.top,
            field.inv,
            np.float32(strengths.charge),
            np.float32(strengths.gravity),
            homes,
            bodies.layer,
            centres,
            np.float32(strengths.cohesion),
            territory.crowd,
            territory.own,
            np.float32((side - 2) / frame.side),
            np.float32(strengths.separation * frame.side / side),
            np.float32(0.5),
            cap,
        )

    in_slices(moved, len(x), few=FEW)


@dataclass(frozen=True, eq=False)
class _Field:
    """The repulsion at the points of a grid: push (2, M, M).

    Attributes:
        inv: cells per unit of length.
    """

    push: Floats
    left: np.float32
    top: np.float32
    inv: np.float32

    @staticmethod
    def of(bodies: Bodies, kernel: _Kernel) -> _Field:
        """The repulsion by bodies in their current places."""
        frame = _Frame.around(bodies.x, bodies.y)
        left, top = np.float32(frame.left), np.float32(frame.top)
        inv = np.float32((kernel.grid - 2) / frame.side)
        density = np.zeros((kernel.grid, kernel.grid), np.float32)
        deposit(bodies.x, bodies.y, bodies.mass, left, top, inv, density)
        return _Field(kernel.push(density / density.sum(), 1 / float(inv)), left, top, inv)


@dataclass(frozen=True, eq=False)
class _Territory:
    """The density of bodies near a place: about 1 in an evenly filled picture.

    Attributes:
        crowd: of all layers, (K, K).
        own: of each layer, (layers, K, K).
        masses: (layers,).
    """

    crowd: Floats
    own: Floats
    masses: NDArray[np.float64]

    @staticmethod
    def of(bodies: Bodies, side: int) -> _Territory:
        """An empty territory for bodies, before it is renewed."""
        layers = int(bodies.layer.max()) + 1
        return _Territory(
            np.zeros((side, side), np.float32),
            np.zeros((layers, side, side), np.float32),
            np.maximum(np.bincount(bodies.layer, bodies.mass, layers), 1e-9),
        )

    def renew(self, bodies: Bodies) -> None:
        """Compute the density from the current places of the bodies."""
        side = len(self.crowd)
        frame = _Frame.around(bodies.x, bodies.y)
        self.own[:] = 0
        deposit_layers(
            bodies.x,
            bodies.y,
            bodies.mass,
            bodies.layer,
            np.float32(frame.left),
            np.float32(frame.top),
            np.float32((side - 2) / frame.side),
            self.own,
        )
        scale = np.float32(0.6 * side * side / float(self.masses.sum()))

        def spread(_: int, first: int, last: int) -> None:
            for k in range(first, last):
                blur(self.own[k], 1.5)
                self.own[k] *= scale

        in_slices(spread, len(self.own), few=FEW * 8 // side)
        self.own.sum(axis=0, out=self.crowd)

    def centres(self, bodies: Bodies) -> Floats:
        """The centre of each layer: (2, layers)."""
        count = len(self.masses)
        sums = [np.bincount(bodies.layer, bodies.mass * at, count) for at in (bodies.x, bodies.y)]
        return (np.stack(sums) / self.masses).astype(np.float32)


@dataclass(frozen=True)
class _Frame:
    """A square around all bodies."""

    left: float
    top: float
    side: float

    @staticmethod
    def around(x: Floats, y: Floats) -> _Frame:
        x0, x1, y0, y1 = float(x.min()), float(x.max()), float(y.min()), float(y.max())
        side = max(x1 - x0, y1 - y0) * 1.02 + 1e-6
        return _Frame((x0 + x1 - side) / 2, (y0 + y1 - side) / 2, side)


class _Kernel:
    """The field of a charge, d / |d| ** 2, on a grid of twice the size to prevent wrapping."""

    def __init__(self, grid: int) -> None:
        self.grid = grid
        self.spacing = 0.0
        self.fields: tuple[NDArray[np.complex64], ...] = ()

    def push(self, density: Floats, spacing: float) -> Floats:
        """The repulsion at every grid point: (2, M, M)."""
        size = self.grid
        # The frame changes a little at every step. A kernel that is off by a tenth is good enough.
        if not self.fields or abs(spacing / self.spacing - 1) > 0.1:
            at = np.fft.fftfreq(2 * size, 1 / (2 * size)).astype(np.float32) * np.float32(spacing)
            square = at * at + (at * at)[:, None] + np.float32(spacing * spacing)
            across = (at / square).astype(np.float32)
            down = (at[:, None] / square).astype(np.float32)
            self.fields = (_spectrum(across), _spectrum(down))
            self.spacing = spacing
        waves = _spectrum(density, 2 * size)
        return np.stack([_back(waves * field, size) for field in self.fields])


def _spectrum(values: Floats, size: int | None = None) -> NDArray[np.complex64]:
    """The transform of values, (size, size // 2 + 1), filled up with zeros to size x size."""
    size = size or len(values)
    # Rows first: rows that hold only zeros are never transformed.
    rows = fft.rfft(values, size, axis=1, workers=_workers(size))
    return cast(
        NDArray[np.complex64], fft.fft(rows, size, axis=0, overwrite_x=True, workers=_workers(size))
    )


def _back(waves: NDArray[np.complex64], size: int) -> Floats:
    """The first (size, size) values of a transform. Overwrites it."""
    workers = _workers(len(waves))
    rows = cast(NDArray[np.complex64], fft.ifft(waves, axis=0, overwrite_x=True, workers=workers))[
        :size
    ]
    values = cast(Floats, fft.irfft(rows, len(waves), axis=1, workers=workers))
    return values[:, :size]


def _workers(size: int) -> int:
    """The number of threads of a transform. A small transform ends before a thread has started."""
    return SLICES if size > 256 else 1
