"""The vertices that may have made each element of a content, found once per content.

They are found by moving the numbers of vertices as copies move elements. So the time grows with the
elements that copies move, however many paths lead through the copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

import numpy as np
from xdsl.ir import Operation

from ...dialects.steps import Arrival, Vertices
from ...dialects.variable import Variable
from ...ir.geometry.blocks import moved_piece
from ...ir.geometry.overlap import without_fill
from ...ir.support.arrays import Integers
from .contents import NO_LOOPS, Around, Content, Either, Loops, Made, Moved, Producers, Without
from .memory import check_memory
from .parts import vertex_parts

NOBODY = -1
"""Fills the rows of elements that have fewer owners than others."""

LOOPS_FROM = 40
"""The lowest bit of the number of an owner's set of loops. The bits below are its vertex."""

VERTEX = (1 << LOOPS_FROM) - 1
"""The bits of an owner that number its vertex."""

ANY_LOOP: Loops = frozenset({-1})
"""Stands for any non-empty set of loops."""

OWNER_BYTES = 24
"""Bytes per owner while owners are moved: before, after, and sorted."""


@dataclass
class Owners:
    """Finds the owners of elements: the vertices that may have made them, and the loops since.

    Attributes:
        variables: of the program, by name.
        first: the number of the first vertex of each producer; a producer that is not a vertex set
            counts as one vertex.
        count: of numbers given out.
        loops: sets of loops, by number.
    """

    variables: Mapping[str, Variable]
    first: dict[Operation, int] = field(default_factory=dict[Operation, int])
    count: int = 0
    loops: dict[Loops, int] = field(default_factory=lambda: {NO_LOOPS: 0})

    def of(self, wanted: Iterable[Content]) -> Iterator[tuple[Content, Integers]]:
        """The owners of the elements of each wanted content: (owners of an element, elements) each.

        They are kept only until no other content needs them. Raises InputError if memory is too
        small for them.
        """
        wanted = set(wanted)
        order = _parts_first(wanted)
        uses = Counter(part for content in order for part in set(content.parts))
        known: dict[Content, Integers] = {}
        for content in order:
            known[content] = found = _distinct(self._owners(content, known))
            if content in wanted:
                yield content, found
            uses.subtract(set(content.parts))
            for each in (content, *content.parts):
                if not uses[each]:
                    known.pop(each, None)

    def producers(self, owners: Integers) -> Iterator[tuple[Operation, slice]]:
        """The producers of sorted owners that no loop has carried, each with its range of
        owners."""
        operations, edges = list(self.first), [*self.first.values(), self.count]
        places = np.searchsorted(owners, edges).tolist()
        for operation, (start, stop) in zip(operations, pairwise(places), strict=True):
            if start < stop:
                yield operation, slice(start, stop)

    def read(self, owners: Integers, elements: Integers) -> Integers:
        """The owners of some elements, with all non-empty sets of loops as one: (owners,
        elements)."""
        _check(len(owners) * len(elements))
        owners = owners[:, elements]
        if len(self.loops) == 1:
            return owners
        return _distinct(self._with_loops(owners, lambda loops: ANY_LOOP if loops else loops))

    def _owners(self, content: Content, known: Mapping[Content, Integers]) -> Integers:
        """The owners of a content whose parts' owners are known. An owner may be listed twice."""
        parts = [known[part] for part in content.parts]
        match content:
            case Made():
                return self._made(content)
            case Moved():
                return _moved(content, parts)
            case Either():
                _check(sum(each.size for each in parts))
                return np.concatenate(parts)
            case Around():
                loop = frozenset({content.loop})
                if content.carried:
                    return self._with_loops(parts[0], loop.union)
                return self._with_loops(parts[0], lambda loops: loops - loop)
            case Without():
                return self._without(parts[0], content.producers)
            case _:
                raise AssertionError(content)

    def _made(self, content: Made) -> Integers:
        producer = content.producer
        if not isinstance(producer, Vertices):
            size = prod(self._variable(producer).tensor.get_shape())
            _check(size)
            first = self._number(producer, 1)
            return np.full((1, size), first)
        space = producer.space.data
        parts = vertex_parts(space, producer.plan.data)
        counts = [len(begin) for begin, _ in parts]
        first = self._number(producer, prod(counts))
        weights = [prod(counts[d + 1 :]) for d in range(len(counts))]
        access = space.results[content.result]
        # Vertices that differ only along dimensions without a result axis own the same element.
        others = [d for d in range(len(counts)) if d not in access.dims()]
        owners = np.full(1, first, np.int64)
        for d in others:
            owners = np.add.outer(owners, np.arange(counts[d]) * weights[d]).ravel()
        _check(len(owners) * prod(access.shape))
        made = np.full((len(owners), *access.shape), NOBODY, np.int64)
        region: list[slice] = []
        for axis in access.axes:
            if not axis.terms:
                owners = owners[..., None]
                region.append(slice(axis.offset, axis.offset + 1))
                continue
            ((d, _),) = axis.terms
            begin, end = parts[d]
            owners = np.add.outer(owners, np.repeat(np.arange(counts[d]), end - begin) * weights[d])
            region.append(slice(axis.offset, axis.offset + space.sizes[d]))
        made[(slice(None), *region)] = owners
        return made.reshape(len(made), -1)

    def _variable(self, source: Operation) -> Variable:
        """The variable that a host input writes, or that holds a first value itself."""
        if isinstance(source, Arrival):
            return self.variables[source.writes.string_value()]
        assert isinstance(source, Variable)
        return source

    def _number(self, producer: Operation, vertices: int) -> int:
        """The number of a producer's first vertex."""
        if producer not in self.first:
            self.first[producer] = self.count
            self.count += vertices
        return self.first[producer]

    def _with_loops(self, owners: Integers, change: Callable[[Loops], Loops]) -> Integers:
        """The owners with their sets of loops changed."""
        had, place = np.unique(owners >> LOOPS_FROM, return_inverse=True)
        numbered: list[int] = had.tolist()
        sets = list(self.loops)
        has = [change(sets[number]) if number >= 0 else NO_LOOPS for number in numbered]
        numbers = [self.loops.setdefault(each, len(self.loops)) for each in has]
        loops = np.array(numbers, np.int64)[place.reshape(owners.shape)] << LOOPS_FROM
        return np.where(owners == NOBODY, NOBODY, loops | (owners & VERTEX))

    def _without(self, owners: Integers, producers: Producers) -> Integers:
        """The owners without the vertices of some producers."""
        firsts = np.array([*self.first.values()], np.int64)
        number = np.searchsorted(firsts, owners & VERTEX, "right") - 1
        dropped = np.array([each in producers for each in self.first])
        return np.where((owners == NOBODY) | dropped[number], NOBODY, owners)


def _parts_first(wanted: Iterable[Content]) -> list[Content]:
    """Some contents and all their parts, each after its own parts."""
    found: set[Content] = set()
    todo = list(wanted)
    while todo:
        content = todo.pop()
        if content not in found:
            found.add(content)
            todo.extend(content.parts)
    return sorted(found, key=lambda each: each.number)


def _moved(content: Moved, parts: Sequence[Integers]) -> Integers:
    """The owners after a copy, part by part."""
    shape = content.spaces[0].results[0].shape
    most = max(len(part) for part in parts)
    _check(most * prod(shape))
    owners = np.full((most, *shape), NOBODY, np.int64)
    if not owners.size:
        return owners.reshape(most, 0)
    further: list[Integers] = []
    for part, space in zip(parts, content.spaces, strict=True):
        for k, row in enumerate(part):
            piece, region = moved_piece(row, without_fill(space))
            here = owners[(k, *region)]
            if (here == NOBODY).all():
                here[...] = piece
            else:
                # Another part, or the padding of this one, has written there already.
                more = np.full(shape, NOBODY, np.int64)
                more[region] = piece
                further.append(more)
    if further:
        _check((most + len(further)) * prod(shape))
        owners = np.concatenate([owners, *(each[None] for each in further)])
    return owners.reshape(len(owners), -1)


def _distinct(owners: Integers) -> Integers:
    """The distinct owners of each element, in as few rows as possible."""
    if len(owners) == 1:
        return owners
    owners = np.sort(owners, axis=0)
    owners[1:][owners[1:] == owners[:-1]] = NOBODY
    owners = np.sort(owners, axis=0)[::-1]
    rows = max(int((owners != NOBODY).any(axis=1).sum()), 1)
    return np.ascontiguousarray(owners[:rows])


def _check(owners: int) -> None:
    check_memory(owners * OWNER_BYTES, f"{owners:,} elements that reach operands on many ways")
