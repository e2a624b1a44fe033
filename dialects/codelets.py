"""The signatures of users' codelets: which cells they have, and what a cell reads and writes.

A codelet is a function of arrays with a leading axis of cells. How it is computed and priced is in
backends/codelets/users.py, which has one record for the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, i1
from xdsl.ir import Attribute, Operation

from ..ir.geometry.space import AccessMap, AxisMap, Dim, Space
from ..ir.support.user_entries import add_entry
from ..ir.upstream import VerifyException
from .dtypes import ELEMENTS, STORED

Shape = tuple[int, ...]

CLASSES = ("floats", "integers", "numbers")
"""The classes of element types that a read may allow, instead of one type."""

BY_NAME: Mapping[str, Attribute] = {str(each): each for each in ELEMENTS if each not in STORED}
"""The element types that a codelet may name."""


@dataclass(frozen=True)
class CellDim:
    """A dimension of a codelet's space.

    Attributes:
        size: a number, the name of the parameter or of the dimension whose size it has, or "" if
            the shapes of operands decide it.
        whole: whether a cell sees all points along it, so that no plan cuts it.
    """

    name: str
    size: int | str = ""
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Signature:
    """What a codelet reads and writes, without how it is computed.

    The axes of the maps have no sizes: an operation of the codelet has them.

    Attributes:
        name: "FILE.FUNCTION", the name of its operation.
        reads, writes: the access map of each operand and result, over the dimensions.
        types: for some reads and writes, a class of element types or one type by name; a write may
            name a read, whose type it has. Reads without an entry are floats. Reads of a class
            share one type. Writes without an entry have the type of the first read.
        parameters: the constants that it takes, with their defaults. Those that are in
            `whole_parameters` are integers.
        needs: a condition on dimensions and parameters, named by its arguments; None for none.
    """

    name: str
    dims: tuple[CellDim, ...]
    reads: Mapping[str, AccessMap]
    writes: Mapping[str, AccessMap]
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])
    whole_parameters: frozenset[str] = frozenset()
    needs: Callable[..., object] | None = None
    needs_names: tuple[str, ...] = ()

    def whole_of(self, access: AccessMap) -> tuple[int, ...]:
        """The whole dimensions of a map, in the order in which its axes name them.

        They are the axes of a cell's array.
        """
        named = (d for axis in access.axes for d, _ in axis.terms if self.dims[d].whole)
        return tuple(dict.fromkeys(named))

    @property
    def cell_dims(self) -> tuple[int, ...]:
        """The dimensions along which cells lie."""
        return tuple(d for d, dim in enumerate(self.dims) if not dim.whole)

    def named(self, parameters: Sequence[float]) -> dict[str, float]:
        """Parameters by name, as numbers of the kind that the codelet takes."""
        pairs = zip(self.parameters, parameters, strict=True)
        return {k: int(v) if k in self.whole_parameters else float(v) for k, v in pairs}

    def space(self, shapes: Sequence[Shape], parameters: Sequence[float]) -> Space:
        """The space of an operation with operands of these shapes.

        Raises VerifyException if the shapes do not fit the maps.
        """
        for (name, access), shape in zip(self.reads.items(), shapes, strict=True):
            if len(access.axes) != len(shape):
                raise VerifyException(
                    f"{name} has {len(shape)} axes; {self.name} reads {len(access.axes)}"
                )
        sizes = self.sizes(shapes, parameters)
        dims = tuple(
            Dim(each.name, n, "whole" if each.whole else "parallel")
            for each, n in zip(self.dims, sizes, strict=True)
        )
        reads = tuple(
            _sized(access, shape, dims)
            for access, shape in zip(self.reads.values(), shapes, strict=True)
        )
        writes = tuple(
            _sized(access, tuple(sizes[axis.terms[0][0]] for axis in access.axes), dims)
            for access in self.writes.values()
        )
        try:
            return Space(dims, reads, writes)
        except ValueError as error:
            raise VerifyException(str(error)) from None

    def sizes(self, shapes: Sequence[Shape], parameters: Sequence[float]) -> Shape:
        """The size of each dimension. Raises VerifyException for shapes that do not fit."""
        given = self.named(parameters)
        number = {each.name: d for d, each in enumerate(self.dims)}
        found: dict[int, int] = {}
        for d, dim in enumerate(self.dims):
            if isinstance(dim.size, int):
                found[d] = dim.size
            elif dim.size in given:
                found[d] = int(given[dim.size])
        axes = [
            (f"axis {i} of {name}", axis, n)
            for (name, access), shape in zip(self.reads.items(), shapes, strict=True)
            for i, (axis, n) in enumerate(zip(access.axes, shape, strict=True))
        ]
        for what, axis, n in axes:
            if _is_plain(axis):
                d = axis.terms[0][0]
                if found.setdefault(d, n) != n:
                    raise VerifyException(
                        f"{what} has {n} elements; {self.name} needs {found[d]}, the size of "
                        f"{self.dims[d].name}"
                    )
        before = -1
        while len(found) > before:
            before = len(found)
            for d, dim in enumerate(self.dims):
                if d not in found and number.get(str(dim.size), d) in found:
                    found[d] = found[number[str(dim.size)]]
            for what, axis, n in axes:
                unknown = [(d, a) for d, a in axis.terms if d not in found]
                if len(unknown) == 1 and unknown[0][1] > 0:
                    found[unknown[0][0]] = self._solved(what, axis, n, unknown[0], found)
        for d, dim in enumerate(self.dims):
            if d not in found:
                raise VerifyException(
                    f"nothing decides the size of {dim.name}; need {dim.name} = NUMBER in its space"
                )
            same = number.get(str(dim.size))
            if same is not None and found[same] != found[d]:
                raise VerifyException(
                    f"{dim.name} is {found[d]}; need {found[same]}, the size of {dim.size}"
                )
            if found[d] < int(dim.whole):
                raise VerifyException(f"{dim.name} is {found[d]}; need {int(dim.whole)} or more")
        made = tuple(found[d] for d in range(len(self.dims)))
        self.check_needs(made, given)
        return made

    def check_needs(self, sizes: Sequence[int], given: Mapping[str, float]) -> None:
        """Raise VerifyException unless sizes and parameters meet the condition.

        Args:
            given: the parameters, by name.
        """
        if self.needs is None:
            return
        known = {dim.name: n for dim, n in zip(self.dims, sizes, strict=True)} | dict(given)
        try:
            met = bool(self.needs(*(known[name] for name in self.needs_names)))
        except Exception as error:
            # A user's function may raise anything.
            raise VerifyException(f"its `needs`: {type(error).__name__}: {error}") from error
        if not met:
            listed = ", ".join(f"{name} = {known[name]}" for name in self.needs_names)
            raise VerifyException(f"{self.name} does not take {listed}; see its `needs`")

    def _solved(
        self,
        what: str,
        axis: AxisMap,
        n: int,
        unknown: tuple[int, int],
        found: Mapping[int, int],
    ) -> int:
        """The size of the only dimension of an axis that is not known yet.

        With a rule for what is outside, there is a cell for each element that a step begins at.
        Without, cells stay inside.
        """
        d, a = unknown
        elements = n * axis.divisor
        if axis.outside != "none":
            return -(-elements // a)
        rest = sum(c * (found[e] - 1) for e, c in axis.terms if e != d and c > 0)
        size = (elements - 1 - axis.offset - rest) // a + 1
        if size < 0:
            raise VerifyException(
                f"{what} has {n} elements; {self.name} reaches {axis.offset + rest + 1} for its "
                "first cell"
            )
        return size

    def may_be_float(self, name: str) -> bool:
        """Whether the elements of a read or write may be floats."""
        wanted = self.types.get(name, "floats" if name in self.reads else next(iter(self.reads)))
        if wanted in self.reads:
            return self.may_be_float(wanted)
        return wanted != "integers" if wanted in CLASSES else isinstance(BY_NAME[wanted], AnyFloat)

    def result_elements(self, operands: Sequence[Attribute]) -> tuple[Attribute, ...]:
        """The element types of the results. Raises VerifyException for operands of wrong types."""
        known = dict(zip(self.reads, operands, strict=True))
        shared: dict[str, Attribute] = {}
        for name, element in known.items():
            wanted = self.types.get(name, "floats")
            if wanted not in CLASSES:
                if str(element) != wanted:
                    raise VerifyException(f"{name} has elements {element}; need {wanted}")
                continue
            if not is_of_class(element, wanted):
                raise VerifyException(f"{name} has elements {element}; need {wanted} to compute in")
            if shared.setdefault(wanted, element) != element:
                raise VerifyException(
                    f"{name} has elements {element}; need {shared[wanted]}, as reads before it"
                )
        first = next(iter(known.values()))
        known |= BY_NAME
        return tuple(known.get(self.types.get(w, ""), first) for w in self.writes)


def is_of_class(element: Attribute, wanted: str) -> bool:
    """Whether an element type belongs to a class of types that codelets compute in."""
    if element in STORED or element == i1:
        return False
    if isinstance(element, IntegerType):
        return wanted != "floats" and cast(IntegerType, element).width.data >= 8
    return wanted != "integers"


def _is_plain(axis: AxisMap) -> bool:
    """Whether an axis is one dimension from its first point to its last."""
    one = len(axis.terms) == 1 and axis.terms[0][1] == 1
    return one and not axis.offset and axis.divisor == 1


def _sized(access: AccessMap, shape: Shape, dims: Sequence[Dim]) -> AccessMap:
    """A map with the sizes of a tensor's axes, in its simplest form."""
    sizes = tuple(dim.size for dim in dims)
    axes: list[AxisMap] = []
    for axis, n in zip(access.axes, shape, strict=True):
        terms = tuple((d, a) for d, a in axis.terms if sizes[d] != 1)
        made = replace(axis, size=n, terms=terms)
        if made.outside != "none" and 0 not in sizes and made.is_plain(sizes):
            made = replace(made, outside="none")
        axes.append(made)
    return AccessMap(tuple(axes), access.fill)


SIGNATURES: dict[str, Signature] = {}
"""The codelets that are loaded, by name."""

OPERATIONS: dict[str, type[Operation]] = {}
"""The class of operations of each codelet that is loaded, by name."""


def register_signature(signature: Signature, op: type[Operation], owner: str) -> None:
    """Make a codelet known, so that bodies may name it. Raises InputError if its name is taken."""
    add_entry(SIGNATURES, "codelet", signature.name, signature, owner)
    add_entry(OPERATIONS, "operation of codelet", signature.name, op, owner)


def is_codelet(name: str) -> bool:
    """Whether a name is that of a user's codelet, loaded or not: only those have a dot."""
    return "." in name


def signature_of(name: str) -> Signature:
    """The signature of a codelet. Raises ValueError if it is not loaded."""
    found = SIGNATURES.get(name)
    if found is None:
        loaded = f"; loaded: {', '.join(sorted(SIGNATURES))}" if SIGNATURES else ""
        raise ValueError(f"codelet {name!r} is not loaded; --load the file that defines it{loaded}")
    return found


def operation_of(name: str) -> type[Operation]:
    """The class of operations of a codelet. Raises ValueError if it is not loaded."""
    signature_of(name)
    return OPERATIONS[name]
