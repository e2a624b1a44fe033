"""Operators as mathematics, small and large, for the planner's tests."""

import itertools
from dataclasses import replace
from math import prod

import hypothesis.strategies as st
import numpy as np

from abele.backends.target import Target
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Stage, Structure
from abele.ir.geometry.layout import linear_layout
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map
from abele.passes.planner.problem import Problem
from abele.passes.planner.question import Question
from abele.passes.plans.padding import can_pad

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)


def matmul(m: int, k: int, n: int) -> Structure:
    dims = (Dim("m", m), Dim("n", n), Dim("k", k, "reduction"))
    left, right = identity_map((0, 2), (m, k)), identity_map((2, 1), (k, n))
    return Structure(
        Space(dims, (left, right), (identity_map((0, 1), (m, n)),)), Body("mul", "sum")
    )


def _slide(size: int, at: int, kernel: int, stride: int, pad: int) -> AxisMap:
    return AxisMap(size, ((at, stride), (kernel, 1)), -pad, outside="fill")


def conv(c: int, size: int, o: int, k: int, stride: int = 1, pad: int = 0) -> Structure:
    """A square convolution of one image."""
    out = (size + 2 * pad - k) // stride + 1
    dims = (
        Dim("o", o),
        Dim("y", out),
        Dim("x", out),
        Dim("c", c, "reduction"),
        Dim("ky", k, "reduction"),
        Dim("kx", k, "reduction"),
    )
    image = AccessMap(
        (
            AxisMap(c, ((3, 1),)),
            _slide(size, 1, 4, stride, pad),
            _slide(size, 2, 5, stride, pad),
        )
    )
    weight = identity_map((0, 3, 4, 5), (o, c, k, k))
    result = identity_map((0, 1, 2), (o, out, out))
    return Structure(Space(dims, (image, weight), (result,)), Body("mul", "sum"))


def total(outputs: int, depth: int) -> Structure:
    """The sum of each row of a matrix."""
    dims = (Dim("n", outputs), Dim("k", depth, "reduction"))
    read, written = identity_map((0, 1), (outputs, depth)), identity_map((0,), (outputs,))
    return Structure(Space(dims, (read,), (written,)), Body("identity", "sum"))


def pool(c: int, size: int, k: int, stride: int) -> Structure:
    """A square max pool of one image."""
    out = (size - k) // stride + 1
    dims = (
        Dim("c", c),
        Dim("y", out),
        Dim("x", out),
        Dim("ky", k, "reduction"),
        Dim("kx", k, "reduction"),
    )
    axes = (AxisMap(c, ((0, 1),)), *(_slide(size, d, d + 2, stride, 0) for d in (1, 2)))
    result = identity_map((0, 1, 2), (c, out, out))
    return Structure(
        Space(dims, (AccessMap(axes, float("-inf")),), (result,)), Body("identity", "max")
    )


def add(*shape: int) -> Structure:
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
    access = identity_map(tuple(range(len(shape))), shape)
    return Structure(Space(dims, (access, access), (access,)), Body("add"))


def problem(
    structure: Structure, dtype: np.dtype = F32, resident: tuple[bool, ...] = ()
) -> Problem:
    """Its operands all moving, unless said otherwise."""
    count = len(structure.space.operands)
    return Problem(structure, (dtype,) * count, dtype, resident or (False,) * count)


def chained(structure: Structure, *extras: bool) -> Structure:
    """The operator, an addition for each extra, and a relu; an extra is as the result, or one
    element for each index of its first axis."""
    space = structure.space
    (result,) = space.results
    narrow = AccessMap((result.axes[0], *(AxisMap(1) for _ in result.axes[1:])))
    maps = tuple(result if whole else narrow for whole in extras)
    then = (*(Stage("add") for _ in extras), Stage("relu"))
    return Structure(
        replace(space, operands=space.operands + maps), replace(structure.body, then=then)
    )


@st.composite
def structures(draw: st.DrawFn) -> Structure:
    """A small operator of any kind, perhaps with a chain."""
    structure = draw(plain_structures())
    return structure if draw(st.booleans()) else chained(structure, *draw(EXTRAS))


EXTRAS = st.lists(st.booleans(), max_size=2)


@st.composite
def plain_structures(draw: st.DrawFn) -> Structure:
    """A small operator of any kind."""

    def size(most: int) -> int:
        return draw(st.integers(1, most))

    match draw(st.sampled_from(("matmul", "conv", "pool", "add"))):
        case "matmul":
            return matmul(size(9), size(20), size(9))
        case "conv":
            k = size(3)
            return conv(size(5), k + size(6) - 1, size(5), k, size(2), draw(st.integers(0, k - 1)))
        case "pool":
            k = size(3)
            return pool(size(6), k + size(8) - 1, k, size(3))
        case _:
            return add(size(7), size(9))


def question_of(asked: Problem, target: Target, bound: int | None = None) -> Question:
    """The question of an operator whose operands lie in linear order, without resident ones.

    bound: all usable memory of a tile, unless given.
    """
    have = tuple(
        None if stays else linear_layout(access.shape, dtype.itemsize, target.tiles)
        for access, dtype, stays in zip(
            asked.structure.space.operands, asked.operand_dtypes, asked.resident, strict=True
        )
    )
    return Question(asked, have, target, target.usable_bytes_per_tile if bound is None else bound)


def every_split(structure: Structure, tiles: int) -> list[Plan]:
    """All legal splits, by definition."""
    counts = []
    for d, dim in enumerate(structure.space.dims):
        free = dim.kind == "parallel" or can_pad(structure, d)
        counts.append(
            [
                k
                for k in range(1, min(dim.size, tiles) + 1)
                if (free and (k - 1) * -(-dim.size // k) < dim.size) or dim.size % k == 0
            ]
        )
    return [Plan(parts) for parts in itertools.product(*counts) if prod(parts) <= tiles]
