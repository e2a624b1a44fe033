"""Loops over vertices and edges, compiled by numba. Import this module only if numba is installed.

Positions are float32, in units of the layout or in pixels. A grid is M x M, row by row. Every
kernel runs without the interpreter's lock, and the compiled code is kept between runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ....backends.host import kernel_cache

Floats = NDArray[np.float32]
Scalar: TypeAlias = np.float32
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function, compiled at its first call."""
    return cast(Function, kernel_cache.compiled(nogil=True, fastmath=True)(function))


@compiled
def _corner(x: Scalar, y: Scalar, left: Scalar, top: Scalar, inv: Scalar, last: int):
    """The cell of a place, and the place's offset in it: ix, iy, ux, uy. Places outside the grid
    belong to the last cell on that side."""
    fx = (x - left) * inv
    fy = (y - top) * inv
    ix = min(max(int(fx), 0), last)
    iy = min(max(int(fy), 0), last)
    return ix, iy, fx - ix, fy - iy


@compiled
def deposit(x: Floats, y: Floats, m: Floats, left: Scalar, top: Scalar, inv: Scalar, grid: Floats):
    """Add masses to the four grid points around each place: m (n,), grid (M, M)."""
    last = grid.shape[0] - 2
    for i in range(x.size):
        ix, iy, ux, uy = _corner(x[i], y[i], left, top, inv, last)
        grid[iy, ix] += m[i] * (1 - ux) * (1 - uy)
        grid[iy, ix + 1] += m[i] * ux * (1 - uy)
        grid[iy + 1, ix] += m[i] * (1 - ux) * uy
        grid[iy + 1, ix + 1] += m[i] * ux * uy


@compiled
def deposit_layers(
    x: Floats,
    y: Floats,
    m: Floats,
    layer: NDArray[np.int32],
    left: Scalar,
    top: Scalar,
    inv: Scalar,
    grids: Floats,
):
    """Like `deposit`, with each vertex on the grid of its layer: grids (layers, M, M)."""
    last = grids.shape[1] - 2
    for i in range(x.size):
        ix, iy, ux, uy = _corner(x[i], y[i], left, top, inv, last)
        k = layer[i]
        grids[k, iy, ix] += m[i] * (1 - ux) * (1 - uy)
        grids[k, iy, ix + 1] += m[i] * ux * (1 - uy)
        grids[k, iy + 1, ix] += m[i] * (1 - ux) * uy
        grids[k, iy + 1, ix + 1] += m[i] * ux * uy


@compiled
def pull(
    producer: NDArray[np.int32],
    consumer: NDArray[np.int32],
    weight: Floats,
    first: int,
    last: int,
    x: Floats,
    y: Floats,
    falloff: Scalar,
    half_fall: int,
    sums: Floats,
):
    """Add up the directions to the other ends of edges [first, last): sums (n, 3) of w dx, w dy, w.

    The weight of an edge decreases with its length, w / (1 + length / falloff) ** (half_fall / 2),
    so that edges that must be long do not compress those that can be short. A power of a square
    root takes less than half the time of any other power.
    """
    inv = np.float32(1) / falloff
    for e in range(first, last):
        a = np.uint32(producer[e])
        b = np.uint32(consumer[e])
        dx = x[b] - x[a]
        dy = y[b] - y[a]
        root = np.float32(1) / np.sqrt(np.float32(1) + np.sqrt(dx * dx + dy * dy) * inv)
        w = weight[e] * root
        for _ in range(1, half_fall):
            w *= root
        sums[a, 0] += w * dx
        sums[a, 1] += w * dy
        sums[a, 2] += w
        sums[b, 0] -= w * dx
        sums[b, 1] -= w * dy
        sums[b, 2] += w


@compiled
def step(
    first: int,
    last: int,
    x: Floats,
    y: Floats,
    sums: Floats,
    bind: Scalar,
    push: Floats,
    left: Scalar,
    top: Scalar,
    inv: Scalar,
    charge: Scalar,
    gravity: Scalar,
    homes: Floats,
    layer: NDArray[np.int32],
    centres: Floats,
    cohesion: Scalar,
    total: Floats,
    own: Floats,
    inv_own: Scalar,
    separation: Scalar,
    eta: Scalar,
    cap: Scalar,
):
    """Move vertices [first, last) by the forces on them, by at most cap.

    Args:
        sums: (slices, n, 3), of attraction, which is multiplied by bind.
        push: (2, M, M), the repulsion.
        homes: (2, layers), the place to which gravity pulls each layer.
        centres: (2, layers). total (K, K), own (layers, K, K): the density of vertices near a
            place, of all layers and of each. Their difference is the density of other layers, and
            its slope, times separation, repels a vertex.
    """
    edge = push.shape[1] - 2
    rim = own.shape[1] - 2
    for i in range(first, last):
        ix, iy, ux, uy = _corner(x[i], y[i], left, top, inv, edge)
        a = (1 - ux) * (1 - uy)
        b = ux * (1 - uy)
        c = (1 - ux) * uy
        d = ux * uy
        rx = (
            push[0, iy, ix] * a
            + push[0, iy, ix + 1] * b
            + push[0, iy + 1, ix] * c
            + push[0, iy + 1, ix + 1] * d
        )
        ry = (
            push[1, iy, ix] * a
            + push[1, iy, ix + 1] * b
            + push[1, iy + 1, ix] * c
            + push[1, iy + 1, ix + 1] * d
        )
        sx = np.float32(0)
        sy = np.float32(0)
        weight = np.float32(1e-6)
        for s in range(sums.shape[0]):
            sx += sums[s, i, 0]
            sy += sums[s, i, 1]
            weight += sums[s, i, 2]
        k = layer[i]
        vx = bind * sx / weight + charge * rx - gravity * (x[i] - homes[0, k])
        vy = bind * sy / weight + charge * ry - gravity * (y[i] - homes[1, k])
        vx += cohesion * (centres[0, k] - x[i])
        vy += cohesion * (centres[1, k] - y[i])
        ix, iy, ux, uy = _corner(x[i], y[i], left, top, inv_own, rim)
        p = total[iy, ix] - own[k, iy, ix]
        q = total[iy, ix + 1] - own[k, iy, ix + 1]
        r = total[iy + 1, ix] - own[k, iy + 1, ix]
        t = total[iy + 1, ix + 1] - own[k, iy + 1, ix + 1]
        vx -= separation * ((q - p) * (1 - uy) + (t - r) * uy)
        vy -= separation * ((r - p) * (1 - ux) + (t - q) * ux)
        vx *= eta
        vy *= eta
        length = np.sqrt(vx * vx + vy * vy)
        if length > cap:
            vx *= cap / length
            vy *= cap / length
        x[i] += vx
        y[i] += vy


@compiled
def fibres(
    producer: NDArray[np.int32],
    consumer: NDArray[np.int32],
    first: int,
    last: int,
    x: Floats,
    y: Floats,
    ink: NDArray[np.uint16],
    palette: Floats,
    directions: Floats,
    samples: int,
    spacing: Scalar,
    bend: Scalar,
    swell: Scalar,
    seed: int,
    picture: Floats,
) -> int:
    """Draw edges [first, last) as curves from producer to consumer. Returns the number of drawn
    edges.

    A curve is a parabola whose top is bend / 2 of its length off the chord. It is sampled every
    `spacing` pixels, at most `samples` times, at a random place within each interval, so that sums
    of many edges are smooth. All samples of a curve together weigh (1 + length) ** swell.

    Args:
        x, y: pixels.
        ink: (n,), the palette's row of each vertex.
        palette: (inks, 3), linear light; an edge goes from its producer's colour to its consumer's.
        directions: (angles, 3), colours by the direction of an edge; used instead of the palette if
            it has rows.
        picture: (height, width, 4), three colours times weight, and weight.
    """
    height = picture.shape[0]
    width = picture.shape[1]
    angles = directions.shape[0]
    state = np.uint64(88172645463325252) + np.uint64(seed) * np.uint64(7919)
    drawn = 0
    for e in range(first, last):
        a = np.uint32(producer[e])
        b = np.uint32(consumer[e])
        xa = x[a]
        ya = y[a]
        xb = x[b]
        yb = y[b]
        dx = xb - xa
        dy = yb - ya
        length = np.sqrt(dx * dx + dy * dy)
        count = min(samples, int(length / spacing) + 1)
        share = np.float32(1) / np.float32(count)
        weight = np.float32((length + 1) ** swell * share)
        top_x = np.float32(0.5) * (xa + xb) - bend * dy
        top_y = np.float32(0.5) * (ya + yb) + bend * dx
        if angles:
            turn = int((np.arctan2(dy, dx) / np.float32(2 * np.pi) + np.float32(0.5)) * angles)
            turn %= angles
            r0 = r1 = directions[turn, 0]
            g0 = g1 = directions[turn, 1]
            b0 = b1 = directions[turn, 2]
        else:
            here = ink[a]
            there = ink[b]
            r0 = palette[here, 0]
            g0 = palette[here, 1]
            b0 = palette[here, 2]
            r1 = palette[there, 0]
            g1 = palette[there, 1]
            b1 = palette[there, 2]
        r0, g0, b0 = weight * r0, weight * g0, weight * b0
        r1, g1, b1 = weight * r1 - r0, weight * g1 - g0, weight * b1 - b0
        # The curve is a polynomial: x = xa + u * (along_x + u * off_x).
        along_x = 2 * (top_x - xa)
        along_y = 2 * (top_y - ya)
        off_x = xa - 2 * top_x + xb
        off_y = ya - 2 * top_y + yb
        seen = 0
        for q in range(count):
            # Marsaglia's xorshift.
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            chance = np.float32(np.int32(state >> np.uint64(40))) * np.float32(5.9604645e-08)
            u = (np.float32(q) + chance) * share
            right = xa + u * (along_x + u * off_x)
            down = ya + u * (along_y + u * off_y)
            if right < 0 or down < 0 or right >= width or down >= height:
                continue
            seen = 1
            ix = np.uint32(right)
            iy = np.uint32(down)
            picture[iy, ix, 0] += r0 + u * r1
            picture[iy, ix, 1] += g0 + u * g1
            picture[iy, ix, 2] += b0 + u * b1
            picture[iy, ix, 3] += weight
        drawn += seen
    return drawn


@compiled
def dots(x: Floats, y: Floats, ink: NDArray[np.uint16], palette: Floats, picture: Floats) -> int:
    """Draw vertices as points of weight 1, in pixels. Returns the number of points inside the
    picture.
    """
    drawn = 0
    for i in range(x.size):
        ix = int(np.floor(x[i]))
        iy = int(np.floor(y[i]))
        if ix < 0 or iy < 0 or ix >= picture.shape[1] or iy >= picture.shape[0]:
            continue
        drawn += 1
        picture[iy, ix, 0] += palette[ink[i], 0]
        picture[iy, ix, 1] += palette[ink[i], 1]
        picture[iy, ix, 2] += palette[ink[i], 2]
        picture[iy, ix, 3] += 1
    return drawn


@compiled
def claim(
    x: Floats,
    y: Floats,
    of: NDArray[np.int32],
    left: Scalar,
    top: Scalar,
    inv: Scalar,
    owner: NDArray[np.int32],
):
    """Find the layer that owns each grid cell: -1 none, -2 several.

    Args:
        owner: (M, M) int32, filled with -1.
    """
    last = owner.shape[0] - 1
    for i in range(x.size):
        ix, iy, _, _ = _corner(x[i], y[i], left, top, inv, last)
        if owner[iy, ix] == -1:
            owner[iy, ix] = of[i]
        elif owner[iy, ix] != of[i]:
            owner[iy, ix] = -2


@compiled
def deposit_cells(
    ids: NDArray[np.int32],
    x: Floats,
    y: Floats,
    left: Scalar,
    top: Scalar,
    inv: Scalar,
    grid: Floats,
):
    """Count the vertices with these ids in each cell: grid (M, M)."""
    last = grid.shape[0] - 1
    for i in ids:
        ix, iy, _, _ = _corner(x[int(i)], y[int(i)], left, top, inv, last)
        grid[iy, ix] += 1


@compiled
def settle(
    x: Floats,
    y: Floats,
    of: NDArray[np.int32],
    left: Scalar,
    top: Scalar,
    inv: Scalar,
    owner: NDArray[np.int32],
    ways: NDArray[np.int32],
) -> int:
    """Move vertices to cells of their own layer, in place. Returns the number that found no cell.

    Args:
        owner: (M, M), the layer that owns each cell; -1 for none. A layer owns a free cell as soon
            as one of its vertices moves there.
        ways: (2, n), offsets to the right and down, in the order in which they are tried.
    """
    last = owner.shape[0] - 1
    side = np.float32(1) / inv
    left_over = 0
    for i in range(x.size):
        ix, iy, _, _ = _corner(x[i], y[i], left, top, inv, last)
        if owner[iy, ix] == of[i]:
            continue
        left_over += 1
        for k in range(ways.shape[1]):
            jx = ix + ways[0, k]
            jy = iy + ways[1, k]
            if jx < 0 or jy < 0 or jx > last or jy > last:
                continue
            if owner[jy, jx] == of[i] or owner[jy, jx] == -1:
                owner[jy, jx] = of[i]
                x[i] += ways[0, k] * side
                y[i] += ways[1, k] * side
                left_over -= 1
                break
    return left_over


@compiled
def add_others(
    ids: NDArray[np.int32],
    others: NDArray[np.int32],
    first: int,
    sums: NDArray[np.int64],
    counts: NDArray[np.int32],
):
    """Add up, for each vertex of ids, the indices of its neighbours, from first: (edges,)."""
    for e in range(ids.size):
        sums[ids[e]] += others[e] - first
        counts[ids[e]] += 1


@compiled
def blur_rows(values: Floats, weights: Floats, channels: int, first: int, last: int):
    """Blur rows [first, last) along themselves, in place, with zeros beyond their ends.

    A row is blurred in pieces that stay in the processor's cache.

    Args:
        values: (rows, columns * channels).
        weights: (radius + 1,), of the middle and of the neighbours on one side.
    """
    width = values.shape[1]
    edge = (weights.size - 1) * channels
    held = np.zeros(width + 2 * edge, np.float32)
    for row in range(first, last):
        held[edge : edge + width] = values[row]
        for left in range(0, width, 1024):
            count = min(1024, width - left)
            result = values[row, left : left + count]
            middle = held[edge + left : edge + left + count]
            for j in range(count):
                result[j] = weights[0] * middle[j]
            for k in range(1, weights.size):
                weight = weights[k]
                apart = k * channels
                before = held[edge + left - apart : edge + left - apart + count]
                after = held[edge + left + apart : edge + left + apart + count]
                for j in range(count):
                    result[j] += weight * (before[j] + after[j])


@compiled
def blur_columns(values: Floats, weights: Floats, first: int, last: int):
    """Blur columns [first, last) along themselves, in place, with zeros beyond their ends.

    Few columns are blurred at a time, so that the rows that are added up stay in the processor's
    cache.

    Args:
        values: (rows, columns).
        weights: as of `blur_rows`.
    """
    rows = values.shape[0]
    edge = weights.size - 1
    most = min(256, last - first)
    held = np.zeros((rows + 2 * edge, most), np.float32)
    for left in range(first, last, most):
        count = min(most, last - left)
        held[edge : edge + rows, :count] = values[:, left : left + count]
        for row in range(rows):
            result = values[row, left : left + count]
            middle = held[edge + row, :count]
            for j in range(count):
                result[j] = weights[0] * middle[j]
            for k in range(1, weights.size):
                weight = weights[k]
                before = held[edge + row - k, :count]
                after = held[edge + row + k, :count]
                for j in range(count):
                    result[j] += weight * (before[j] + after[j])


@compiled
def develop(
    light: Floats, full: Scalar, knee: Scalar, power: Scalar, saturation: Scalar, picture: Floats
):
    """Convert the light of a sheet to that of a screen: (rows, columns, 4) to (rows, columns, 3).

    Brightness is the logarithm of the weight, and the hue is that of the mean colour. Light above
    about three quarters of the scale turns white.
    """
    scale = np.float32(1) / np.log1p(knee)
    for row in range(light.shape[0]):
        for column in range(light.shape[1]):
            weight = light[row, column, 3]
            if weight <= 0:
                picture[row, column] = 0
                continue
            level = min(np.log1p(knee / full * weight) * scale, np.float32(1.15))
            hot = min(max((level - np.float32(0.72)) / np.float32(0.33), np.float32(0)), 1)
            hot = hot * hot * np.float32(0.85)
            shown = level**power
            r = light[row, column, 0]
            g = light[row, column, 1]
            b = light[row, column, 2]
            most = max(r, g, b, np.float32(1e-9))
            grey = (r + g + b) / (3 * most)
            for channel in range(3):
                hue = grey + (light[row, column, channel] / most - grey) * saturation
                hue = max(hue, np.float32(0))
                picture[row, column, channel] = (hue * (1 - hot) + hot) * shown
