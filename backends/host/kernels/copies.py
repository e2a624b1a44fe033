# pyright: basic
"""The kernel that copies one array into another. Needs numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .hardware import OPTIONS, compiled
from .tables import (
    COPY_CODE,
    COPY_HEAD,
    COPY_KIND,
    COPY_RANK,
    COPY_REPLICA,
    COPY_RUN,
    COPY_SOURCE,
    COPY_TARGET,
    WORDS,
)
from .vectors import (
    I8,
    I16,
    I32,
    I64,
    FirstLanes,
    call_at,
    code_address,
    copy_bytes,
    intrinsic,
    read_long,
    write8,
)


def _box(mover):
    """An intrinsic that copies runs along three dimensions.

    Args:
        mover: builds the copy of the run at (target, source), given a builder and the run's length.
    """

    @intrinsic
    def copy_box(context, target, source, run, n0, n1, n2, s0, s1, s2, t0, t1, t2):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            target, source, run, *rest = arguments
            sizes, steps, strides = rest[:3], rest[3:6], rest[6:]
            move = mover(builder, run)

            def walk(d, target, source):
                if d == 3:
                    move(target, source)
                    return
                with cgutils.for_range(builder, sizes[d]) as counter:
                    i = counter.index
                    walk(
                        d + 1,
                        builder.add(target, builder.mul(i, strides[d])),
                        builder.add(source, builder.mul(i, steps[d])),
                    )

            walk(0, target, source)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 12), generate

    return copy_box


def _elements(kind):
    """A mover of runs of one element of a type, at any address."""

    def mover(builder, run):
        del run
        pointer = ir.PointerType(kind)

        def move(target, source):
            found = builder.load(builder.inttoptr(source, pointer), align=1)
            builder.store(found, builder.inttoptr(target, pointer), align=1)

        return move

    return mover


def _words(builder, run):
    """A mover of runs of at most LANES words: one masked vector each."""
    some = FirstLanes(builder, run)
    return lambda target, source: some.store(target, some.load(I32, source))


copy_words_box = _box(_words)
copy_box1, copy_box2, copy_box4, copy_box8 = (_box(_elements(kind)) for kind in (I8, I16, I32, I64))


@compiled("void(int64, int64, int64, int64, int64)", **OPTIONS)
def copy_runs(table, first, last, source, target):
    """Copy all runs along the dimensions from first to last.

    The last three of these are separate loops. The indices of the other dimensions are kept in the
    last columns of the table, and are zero before and after.
    """
    rank, run = read_long(table + COPY_RANK * 8), read_long(table + COPY_RUN * 8)
    kind = read_long(table + COPY_KIND * 8)
    sizes = table + COPY_HEAD * 8
    steps, strides, indices = sizes + rank * 8, sizes + rank * 16, sizes + rank * 24
    n0, n1, n2, s0, s1, s2, t0, t1, t2 = 1, 1, 1, 0, 0, 0, 0, 0, 0
    d = last - 1
    if d >= first:
        n2, s2, t2 = read_long(sizes + d * 8), read_long(steps + d * 8), read_long(strides + d * 8)
        d -= 1
    if d >= first:
        n1, s1, t1 = read_long(sizes + d * 8), read_long(steps + d * 8), read_long(strides + d * 8)
        d -= 1
    if d >= first:
        n0, s0, t0 = read_long(sizes + d * 8), read_long(steps + d * 8), read_long(strides + d * 8)
        d -= 1
    slowest = d
    outer = 1
    for d in range(first, slowest + 1):
        outer *= read_long(sizes + d * 8)
    for _ in range(outer):
        if kind == WORDS:
            copy_words_box(target, source, run // 4, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        elif kind == 4:
            copy_box4(target, source, run, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        elif kind == 8:
            copy_box8(target, source, run, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        elif kind == 2:
            copy_box2(target, source, run, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        elif kind == 1:
            copy_box1(target, source, run, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        else:
            for i in range(n0):
                for j in range(n1):
                    for k in range(n2):
                        end = target + i * t0 + j * t1 + k * t2
                        copy_bytes(end, source + i * s0 + j * s1 + k * s2, run)
        d = slowest
        while d >= first:
            index = read_long(indices + d * 8) + 1
            source += read_long(steps + d * 8)
            target += read_long(strides + d * 8)
            if index < read_long(sizes + d * 8):
                write8(indices + d * 8, index)
                break
            source -= read_long(steps + d * 8) * index
            target -= read_long(strides + d * 8) * index
            write8(indices + d * 8, 0)
            d -= 1


COPY_RUNS = code_address(copy_runs)


@compiled("void(int64, int64, int64)", **OPTIONS)
def _copy(table, copy_runs, scratch):
    """Copy one array into another of its shape.

    Args:
        copy_runs: the address of that kernel's code.
        scratch: memory for one block.
    """
    rank, run = read_long(table + COPY_RANK * 8), read_long(table + COPY_RUN * 8)
    replica = read_long(table + COPY_REPLICA * 8)
    source, target = read_long(table + COPY_SOURCE * 8), read_long(table + COPY_TARGET * 8)
    if replica < 0:
        call_at(copy_runs, (table, 0, rank, source, target))
        return
    sizes = table + COPY_HEAD * 8
    steps, strides, indices = sizes + rank * 8, sizes + rank * 16, sizes + rank * 24
    inner = replica
    while inner < rank and read_long(steps + inner * 8) == 0:
        inner += 1
    blocks, replicas, length = 1, 1, run
    for d in range(replica):
        blocks *= read_long(sizes + d * 8)
    for d in range(replica, inner):
        replicas *= read_long(sizes + d * 8)
    for d in range(inner, rank):
        length *= read_long(sizes + d * 8)
    for _ in range(blocks):
        block = source
        if inner < rank:
            # The block is assembled once; scratch has the strides of the target.
            block = scratch
            call_at(copy_runs, (table, inner, rank, source, scratch))
        for _ in range(replicas):
            copy_bytes(target, block, length)
            d = inner - 1
            while d >= replica:
                index = read_long(indices + d * 8) + 1
                target += read_long(strides + d * 8)
                if index < read_long(sizes + d * 8):
                    write8(indices + d * 8, index)
                    break
                target -= read_long(strides + d * 8) * index
                write8(indices + d * 8, 0)
                d -= 1
        d = replica - 1
        while d >= 0:
            index = read_long(indices + d * 8) + 1
            source += read_long(steps + d * 8)
            target += read_long(strides + d * 8)
            if index < read_long(sizes + d * 8):
                write8(indices + d * 8, index)
                break
            source -= read_long(steps + d * 8) * index
            target -= read_long(strides + d * 8) * index
            write8(indices + d * 8, 0)
            d -= 1


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def copy(tables, begin, end, room):
    """Copy some of the pieces of an array.

    Args:
        tables: one after another, as described in `tables`.
    """
    size = (COPY_HEAD + 4 * read_long(tables + COPY_RANK * 8)) * 8
    for i in range(begin, end):
        table = tables + i * size
        _copy(table, read_long(table + COPY_CODE * 8), room)


COPY = code_address(copy)
