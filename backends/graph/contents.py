"""The possible contents of variables as a graph: each is described once, however many paths reach
it.

In a chain of concatenations of slices, the number of paths doubles with each link. So a content
refers to its parts, and the paths are listed only where they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation

from ...ir.geometry.space import Space

Loops = frozenset[int]
Producers = frozenset[Operation]
NO_LOOPS: Loops = frozenset()
NO_PRODUCERS: Producers = frozenset()

MANY = 1 << 30
"""The limit up to which paths, or moves along them, are counted."""


@dataclass(frozen=True)
class ValuePath:
    """One way in which a value reaches a variable.

    Attributes:
        producer: the vertex set, host input or variable that the value comes from.
        moves: of the copies that it passed through, in order.
        rounds: the numbers of the loops that carried it around.
        result: the index of the vertex set's result.
    """

    producer: Operation
    moves: tuple[Space, ...] = ()
    rounds: Loops = NO_LOOPS
    result: int = 0


@dataclass(frozen=True)
class Extent:
    """The number of paths behind a content.

    Attributes:
        paths: from the content to producers.
        moves: along all paths together.
        joined: whether an element may come from several places.
        loops: the loops that carried a part of it around.
    """

    paths: int = 1
    moves: int = 0
    joined: bool = False
    loops: Loops = NO_LOOPS

    @staticmethod
    def of(parts: Sequence[Content], spaces: Sequence[Space] = ()) -> Extent:
        """The extent of several contents together.

        Args:
            spaces: of a copy that moves them.
        """
        extents = [part.extent for part in parts]
        paths = sum(each.paths for each in extents)
        moves = sum(each.moves for each in extents) + (paths if spaces else 0)
        joined = not spaces or any(each.joined for each in extents)
        loops = NO_LOOPS.union(*(each.loops for each in extents))
        return Extent(min(paths, MANY), min(moves, MANY), joined, loops)


@dataclass(frozen=True, eq=False)
class Content:
    """A possible content of a variable. Equal contents are one object.

    Attributes:
        number: contents are numbered in the order in which they are made, so parts come first.
        parts: the contents that it is made of.
    """

    number: int
    parts: tuple[Content, ...]
    extent: Extent


@dataclass(frozen=True, eq=False)
class Made(Content):
    """A result of a vertex set, a host input, or the initial value of a variable."""

    producer: Operation
    result: int


@dataclass(frozen=True, eq=False)
class Moved(Content):
    """The result of a copy: one move per part, each of which writes its own elements."""

    spaces: tuple[Space, ...]


@dataclass(frozen=True, eq=False)
class Either(Content):
    """One of several contents: from either branch, or from any iteration of a loop."""


@dataclass(frozen=True, eq=False)
class Around(Content):
    """A content that a loop has carried around, or that has left the loop.

    Attributes:
        loop: the loop's number.
        carried: true if the loop has carried it around, false if it has left.
    """

    loop: int
    carried: bool


@dataclass(frozen=True, eq=False)
class Without(Content):
    """A content without the values that some producers made."""

    producers: Producers


@dataclass(frozen=True)
class Path:
    """A path from a content to one of its parts: without copies, or with the moves of copies.

    Attributes:
        added: the loops that carried the value around on the way.
        left: the loops that it has left, which no longer count.
        without: the producers whose values do not count.
    """

    end: Content
    moves: tuple[Space, ...] = ()
    added: Loops = NO_LOOPS
    left: Loops = NO_LOOPS
    without: Producers = NO_PRODUCERS

    def to(self, part: Content) -> Path:
        """The path extended from its end to a part of the content there."""
        end, added, left, without = self.end, self.added, self.left, self.without
        match end:
            case Around(carried=True) if end.loop not in left:
                added |= {end.loop}
            case Around(carried=False):
                left |= {end.loop}
            case Without():
                without |= end.producers
            case _:
                pass
        return Path(part, self.moves, added, left, without)

    def moved_by(self, space: Space, part: Content) -> Path:
        """The path extended through a copy. Moves are listed from the producer on."""
        return Path(part, (space, *self.moves), self.added, self.left, self.without)

    @property
    def exists(self) -> bool:
        """Whether a value can come along the path."""
        return not (isinstance(self.end, Made) and self.end.producer in self.without)


@dataclass
class Contents:
    """Makes contents, and finds their producers."""

    _known: dict[tuple[object, ...], Content] = field(
        default_factory=dict[tuple[object, ...], Content]
    )
    _origins: dict[Content, frozenset[tuple[Operation, Loops]]] = field(
        default_factory=dict[Content, frozenset[tuple[Operation, Loops]]]
    )

    def made(self, producer: Operation, result: int = 0) -> Content:
        """The content that a vertex set, a host input or a variable's initial value makes."""
        return self._one((producer, result), lambda n: Made(n, (), Extent(), producer, result))

    def moved(self, parts: Sequence[Content | None], spaces: Sequence[Space]) -> Content | None:
        """The content that a copy makes of its parts; parts without content are left out. None
        without any.
        """
        some = [(part, space) for part, space in zip(parts, spaces, strict=True) if part]
        if not some:
            return None
        of, by = tuple(part for part, _ in some), tuple(space for _, space in some)
        return self._one((of, by), lambda n: Moved(n, of, Extent.of(of, by), by))

    def either(self, parts: Iterable[Content | None]) -> Content | None:
        """One of several contents; None if none of them has any content."""
        some = dict.fromkeys(part for part in parts if part)
        of = tuple(sorted(some, key=lambda each: each.number))
        if len(of) < 2:
            return of[0] if of else None
        return self._one((of,), lambda n: Either(n, of, Extent.of(of)))

    def carried(self, part: Content, loop: int) -> Content:
        """The content after a loop has carried it around."""
        extent = replace(part.extent, loops=part.extent.loops | {loop})
        return self._one((part, loop, True), lambda n: Around(n, (part,), extent, loop, True))

    def left(self, part: Content, loop: int) -> Content:
        """The content after a loop; that the loop carried it around is forgotten."""
        if loop not in part.extent.loops:
            return part
        extent = replace(part.extent, loops=part.extent.loops - {loop})
        return self._one((part, loop, False), lambda n: Around(n, (part,), extent, loop, False))

    def without(self, part: Content, producers: Producers) -> Content:
        """The content without the values of some producers."""
        if not producers:
            return part
        return self._one((part, producers), lambda n: Without(n, (part,), part.extent, producers))

    def _one(self, key: tuple[object, ...], make: Callable[[int], Content]) -> Content:
        """The only content with this key, which is made on the first call."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make(len(self._known))
        return found

    def origins(self, content: Content) -> frozenset[tuple[Operation, Loops]]:
        """The producers whose values a content may hold, each with the loops that carried them."""
        todo = [content]
        while todo:
            each = todo[-1]
            waiting = [part for part in each.parts if part not in self._origins]
            if each in self._origins or not waiting:
                todo.pop()
                self._origins.setdefault(each, self._origins_of(each))
            else:
                todo.extend(waiting)
        return self._origins[content]

    def _origins_of(self, content: Content) -> frozenset[tuple[Operation, Loops]]:
        """The origins of a content whose parts' origins are known."""
        found = [self._origins[part] for part in content.parts]
        match content:
            case Made():
                return frozenset({(content.producer, NO_LOOPS)})
            case Around():
                (own,), loop = found, {content.loop}
                if content.carried:
                    return frozenset((producer, rounds | loop) for producer, rounds in own)
                return frozenset((producer, rounds - loop) for producer, rounds in own)
            case Without():
                (own,) = found
                return frozenset(each for each in own if each[0] not in content.producers)
            case _:
                return found[0].union(*found[1:]) if len(set(found)) > 1 else found[0]

    def choices(self, content: Content | None) -> list[Path]:
        """The paths without moves from a content to the alternatives that it may be, up to the last
        copies.
        """
        found: dict[Path, None] = {}
        todo = [Path(content)] if content else []
        while todo:
            path = todo.pop()
            if path.end.parts and not isinstance(path.end, Moved):
                todo.extend(path.to(part) for part in reversed(path.end.parts))
            elif path.exists:
                # Forget loops that carried no part of it around, because they make no difference.
                left = path.left & path.end.extent.loops
                without = path.without if path.end.parts else NO_PRODUCERS
                found[Path(path.end, (), path.added, left, without)] = None
        return list(found)

    def along(self, path: Path) -> Content:
        """The content that comes along a path without moves."""
        content = self.without(path.end, path.without)
        for loop in sorted(path.left):
            content = self.left(content, loop)
        for loop in sorted(path.added):
            content = self.carried(content, loop)
        return content


def ways_of(content: Content) -> Iterator[ValuePath]:
    """The ways in which values reach a content, one for each path. There may be very many."""
    todo = [Path(content)]
    while todo:
        path = todo.pop()
        match path.end:
            case Made() if path.exists:
                yield ValuePath(path.end.producer, path.moves, path.added, path.end.result)
            case Moved():
                each = zip(path.end.spaces, path.end.parts, strict=True)
                todo.extend(path.moved_by(space, part) for space, part in reversed([*each]))
            case _:
                todo.extend(path.to(part) for part in reversed(path.end.parts))
