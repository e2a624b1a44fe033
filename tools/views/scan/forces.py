"""Forces on vertices, and the steps that they make.

As in ForceAtlas2 (Jacomy et al., PLoS ONE 9(6), 2014): vertices drive each other off as charges
do, by 1/d in the plane, and edges pull. Repulsion is solved on a grid: masses are laid on its
points, convolved with the kernel by FFT, and read off where the vertices are. A vertex goes to
the mean of those that it is joined to, however many they are, near ones before far ones, so
that it joins most of them instead of hanging between all. Gravity closes the whole into a round
cell. Two forces are about layers: a vertex is drawn to the middle of its layer, and driven off by
the vertices of others nearby, so that layers form lobes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from .blur import blurred
from .kernels import deposit, deposit_layers, pull, step
from .progress import Tell
from .threads import FEW, SLICES, in_slices

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Strengths:
    """How strong the forces are.

    bind: the pull of edges. charge: repulsion. gravity: to the middle. cohesion: to the middle of
    the layer. apart: away from other layers. near: the length from which on an edge pulls less,
    by its fall-th power. From 1 on, a vertex goes to where most of those are that it is joined
    to, instead of to a place between all.
    """

    bind: float = 1.0
    charge: float = 0.4
    gravity: float = 0.6
    cohesion: float = 0.3
    apart: float = 4.0
    near: float = 0.05
    fall: float = 0.6


@dataclass(frozen=True, eq=False)
class Bodies:
    """What is moved: x, y, mass and layer, (n,) each; and edges, their ends and weights, (e,)."""

    x: Floats
    y: Floats
    mass: Floats
    layer: Ids
    producer: Ids
    consumer: Ids
    weight: Floats


def relax(
    bodies: Bodies,
    steps: int,
    grid: int,
    caps: tuple[float, float],
    strengths: Strengths,
    tell: Tell,
    own: int = 192,
    every: int = 3,
) -> None:
    """Move bodies, in place, step by step; each by at most the cap, from the first to the last.

    grid: points a side for the repulsion. own: for what drives layers apart, renewed every so
    many steps.
    """
    territory = _Territory.of(bodies, own)
    kernel = _Kernel(grid)
    for k in range(steps):
        tell(f"step {k + 1} of {steps}")
        if strengths.apart and k % every == 0:
            territory.renew(bodies)
        cap = caps[0] * (caps[1] / caps[0]) ** (k / max(1, steps - 1))
        _move(bodies, kernel, territory, strengths, np.float32(cap))


def _move(
    bodies: Bodies,
    kernel: _Kernel,
    territory: _Territory,
    strengths: Strengths,
    cap: np.float32,
) -> None:
    """One step of all bodies."""
    x, y = bodies.x, bodies.y
    frame = _Frame.around(x, y)
    left, top = np.float32(frame.left), np.float32(frame.top)
    inv = np.float32((kernel.grid - 2) / frame.side)
    density = np.zeros((kernel.grid, kernel.grid), np.float32)
    deposit(x, y, bodies.mass, left, top, inv, density)
    push = kernel.push(density / density.sum(), 1 / float(inv))
    sums = np.zeros((SLICES, 3, len(x)), np.float32)
    near, fall = np.float32(strengths.near), np.float32(strengths.fall)

    def pulled(part: int, first: int, last: int) -> None:
        ends = bodies.producer, bodies.consumer
        pull(*ends, bodies.weight, first, last, x, y, near, fall, sums[part])

    in_slices(pulled, len(bodies.producer), few=FEW)
    middle = np.array([frame.left + frame.side / 2, frame.top + frame.side / 2], np.float32)
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
            push,
            left,
            top,
            inv,
            np.float32(strengths.charge),
            np.float32(strengths.gravity),
            middle,
            bodies.layer,
            centres,
            np.float32(strengths.cohesion),
            territory.crowd,
            territory.own,
            np.float32((side - 2) / frame.side),
            np.float32(strengths.apart * frame.side / side),
            np.float32(0.5),
            cap,
        )

    in_slices(moved, len(x), few=FEW)


@dataclass(frozen=True, eq=False)
class _Territory:
    """How many bodies there are near a place, about one in an evenly filled picture.

    crowd: of all layers, (K, K). own: of each, (layers, K, K). masses: (layers,).
    """

    crowd: Floats
    own: Floats
    masses: NDArray[np.float64]

    @staticmethod
    def of(bodies: Bodies, side: int) -> _Territory:
        """That of bodies, before it is looked at: empty."""
        layers = int(bodies.layer.max()) + 1
        return _Territory(
            np.zeros((side, side), np.float32),
            np.zeros((layers, side, side), np.float32),
            np.maximum(np.bincount(bodies.layer, bodies.mass, layers), 1e-9),
        )

    def renew(self, bodies: Bodies) -> None:
        """Look where bodies are now."""
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
                self.own[k] = blurred(self.own[k], 1.5) * scale

        in_slices(spread, len(self.own), few=FEW * 8 // side)
        self.own.sum(axis=0, out=self.crowd)

    def centres(self, bodies: Bodies) -> Floats:
        """The middle of each layer: (2, layers)."""
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
    """The field of a charge, d / |d| ** 2, on a grid twice as large, so that it does not wrap."""

    def __init__(self, grid: int) -> None:
        self.grid = grid
        self.spacing = 0.0
        self.fields: tuple[NDArray[np.complex64], ...] = ()

    def push(self, density: Floats, spacing: float) -> Floats:
        """The repulsion at every grid point: (2, M, M)."""
        size = self.grid
        # The frame changes a little at every step; a kernel that is off by a tenth will do.
        if not self.fields or abs(spacing / self.spacing - 1) > 0.1:
            at = np.fft.fftfreq(2 * size, 1 / (2 * size)).astype(np.float32) * np.float32(spacing)
            square = at * at + (at * at)[:, None] + np.float32(spacing * spacing)
            across = (at / square).astype(np.float32)
            down = (at[:, None] / square).astype(np.float32)
            self.fields = (_spectrum(across), _spectrum(down))
            self.spacing = spacing
        waves = _spectrum(density, 2 * size)
        return np.stack([_back(waves * field)[:size, :size] for field in self.fields])


def _spectrum(values: Floats, size: int | None = None) -> NDArray[np.complex64]:
    shape = None if size is None else (size, size)
    workers = _workers(size or len(values))
    return cast(NDArray[np.complex64], fft.rfft2(values, s=shape, workers=workers))


def _back(waves: NDArray[np.complex64]) -> Floats:
    return cast(Floats, fft.irfft2(waves, workers=_workers(len(waves))))


def _workers(size: int) -> int:
    """Threads of a transform: small ones are over before a thread has started."""
    return SLICES if size > 256 else 1
