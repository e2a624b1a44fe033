"""Codelets that users write: a function of arrays of cells, its price and its error bound.

A codelet computes in float32 where its operands are narrower floats, and its results are rounded
once. In float64 it is its own reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite, prod
from typing import Any, Literal, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects.codelets import Signature, register_signature
from ...dialects.nn.codelet import CodeletOp, properties_of
from ...ir.support.errors import InputError
from ...ir.support.number_kinds import is_floating
from ...ir.support.user_entries import add_entry
from .calls import SCRATCH_BYTES, Array, Call, Scratch, chunks
from .cells import Cells
from .conversion import compute_dtype, convert_into


@dataclass(frozen=True)
class Ulps:
    """An error bound in units in the last place.

    Attributes:
        count: how many units.
        of: whose last place: that of each element of the result, or that of the largest number that
            the cell reads or writes.
    """

    count: float
    of: Literal["result", "largest"] = "result"

    def error(self, reads: Sequence[Array], write: Array, roundoff: float) -> Array:
        """The bound for each element of a result.

        Args:
            reads: arrays of float64 or integers, with a leading axis of cells.
            write: the result, with a leading axis of cells.
            roundoff: of the type that the codelet computes in; a unit is twice as much.
        """
        size = np.abs(write.astype(np.float64))
        if self.of == "largest":
            largest = [_largest(np.abs(each.astype(np.float64))) for each in (*reads, write)]
            cells = np.maximum.reduce(largest)
            size = np.broadcast_to(cells.reshape(-1, *[1] * (write.ndim - 1)), write.shape)
        return 2 * self.count * roundoff * size


def _largest(array: Array) -> Array:
    return array.reshape(len(array), -1).max(axis=1, initial=0.0)


def ulps(count: float, of: Literal["result", "largest"] = "result") -> Ulps:
    """An error bound of some units in the last place of float32.

    Raises InputError for a negative number, or another `of`.

    Args:
        of: "result", or "largest" for the largest number that the cell reads or writes: a sum in
            which terms cancel has an error relative to its terms.
    """
    if not (isfinite(count) and count >= 0):
        raise InputError(f"ulps({count}); need a number from 0 on")
    if of not in ("result", "largest"):
        raise InputError(f"ulps of {of!r}; need 'result' or 'largest'")
    return Ulps(float(count), of)


@dataclass(frozen=True, eq=False)
class UsersCodelet:
    """A codelet that a user has written.

    Call it on values of nn to build its operation, or call its `function` on arrays.

    Attributes:
        function: takes one array per read, with a leading axis of cells, and the parameters by
            name. Returns the result, or a tuple of results.
        cycles: the cycles in which one worker computes some cells, from their number and from the
            dimensions and parameters that it names.
        cycles_names: those names.
        bound: the largest error in float32, before rounding to a narrower type.
        sensitivity: how far a result moves at most if everything that its cell reads moves by one;
            None if that is not known.
        gradient: a codelet, or a function as those of passes/gradients; None without one.
        numba: a function for numba that writes the same bytes into its last arguments; None without
            one.
        samples: for some reads, a function (random generator, shape) that draws values for checks.
        op: the class of its operations.
        file, line: where it is defined.
        digest: of the file, in hexadecimal.
    """

    signature: Signature
    function: Callable[..., Any]
    cycles: Callable[..., float]
    cycles_names: tuple[str, ...]
    bound: Ulps
    op: type[CodeletOp]
    file: str
    line: int
    digest: str = ""
    sensitivity: float | None = None
    gradient: object = None
    numba: Callable[..., Any] | None = None
    samples: Mapping[str, Callable[..., Any]] = field(
        default_factory=dict[str, "Callable[..., Any]"]
    )
    _prices: dict[tuple[Any, ...], float] = field(default_factory=dict[tuple[Any, ...], float])

    @property
    def name(self) -> str:
        """The name of its operation."""
        return self.signature.name

    @property
    def place(self) -> str:
        """Where it is defined, for messages."""
        return f"{self.file}:{self.line}"

    def __call__(self, *operands: SSAValue, **parameters: float) -> Operation:
        """Build its operation. Parameters that are left out have their defaults.

        Raises InputError for a wrong number of operands or wrong parameters, and VerifyException
        for operands of wrong types.
        """
        if len(operands) != len(self.signature.reads):
            raise InputError(
                f"codelet {self.name}: {len(operands)} operands; need "
                f"{', '.join(self.signature.reads)}"
            )
        try:
            properties = properties_of(self.signature, parameters)
        except ValueError as error:
            raise InputError(f"codelet {error}") from None
        build = cast("Callable[..., Operation]", self.op)
        return build(*operands, properties=properties)

    # Computing

    def apply(self, arrays: Sequence[Array], parameters: Sequence[float]) -> tuple[Array, ...]:
        """The results of the function, each with a leading axis of cells.

        Raises InputError if the function fails, or returns arrays of wrong shapes or kinds.

        Args:
            arrays: one per read; the function must not write to them.
        """
        for each in arrays:
            each.flags.writeable = False
        given = self.signature.named(parameters)
        try:
            with np.errstate(all="ignore"):
                found = self.function(*arrays, **given)
        except Exception as error:
            raise self.error(f"{type(error).__name__}: {error}") from error
        return self.checked(found, arrays)

    def checked(self, found: Any, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """What the function has returned for some arrays, as one array per result.

        Raises InputError if it is anything else.
        """
        made = cast("tuple[Any, ...]", found if isinstance(found, tuple) else (found,))
        names = list(self.signature.writes)
        if len(made) != len(names):
            raise self.error(f"{len(made)} results; need {', '.join(names)}")
        shapes = self.result_shapes([each.shape for each in arrays])
        results: list[Array] = []
        for name, value, shape in zip(names, made, shapes, strict=True):
            if not isinstance(value, np.ndarray | np.generic):
                raise self.error(f"{name} is a {type(value).__name__}; need an array")
            array = np.asarray(cast("Array", value))
            wrong = [n for n, m in zip(array.shape, shape, strict=False) if m not in (n, -1)]
            if array.ndim != len(shape) or wrong:
                need = ["cells", *("?" if n < 0 else str(n) for n in shape[1:])]
                raise self.error(
                    f"{name} has the shape {list(array.shape)}; need [{', '.join(need)}] for "
                    f"{shape[0]} cells"
                )
            if array.dtype.kind not in "fiub":
                raise self.error(f"{name} has elements of {array.dtype}; need numbers")
            results.append(array)
        return tuple(results)

    def result_shapes(self, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The shapes of the results for arrays of these shapes; -1 for a size that is not known."""
        signature = self.signature
        sizes: dict[int, int] = {}
        for access, shape in zip(signature.reads.values(), shapes, strict=True):
            sizes |= dict(zip(signature.whole_of(access), shape[1:], strict=True))
        return [
            (shapes[0][0], *(sizes.get(d, -1) for d in signature.whole_of(access)))
            for access in signature.writes.values()
        ]

    def error(self, reason: str) -> InputError:
        """An error about this codelet, with its place."""
        return InputError(f"{self.place}: codelet {self.name!r}: {reason}")

    # Price

    def price(self, cells: int, sizes: Mapping[str, int], parameters: Sequence[float]) -> float:
        """The cycles in which one worker computes some cells.

        Raises InputError unless they are finite and positive.

        Args:
            sizes: of the whole dimensions, by name.
        """
        known = {**sizes, **self.signature.named(parameters)}
        given = tuple(known[name] for name in self.cycles_names)
        found = self._prices.get((cells, *given))
        if found is None:
            found = self._priced(cells, given)
            self._prices[(cells, *given)] = found
        return found

    def _priced(self, cells: int, given: tuple[float, ...]) -> float:
        try:
            found = float(self.cycles(cells, *given))
        except Exception as error:
            raise self.error(f"cycles of {cells} cells: {type(error).__name__}: {error}") from error
        if not isfinite(found) or found <= 0:
            raise self.error(f"cycles of {cells} cells are {found}; need a positive number")
        return found


USERS_CODELETS: dict[str, UsersCodelet] = {}
"""The codelets that are loaded, by name."""


def register_users_codelet(codelet: UsersCodelet, owner: str) -> None:
    """Register a user's codelet. Raises InputError if its name is taken."""
    register_signature(codelet.signature, codelet.op, owner)
    add_entry(USERS_CODELETS, "numerics of codelet", codelet.name, codelet, owner)


def users_codelet_of(name: str) -> UsersCodelet:
    """A loaded codelet. Raises ValueError if there is none of that name."""
    found = USERS_CODELETS.get(name)
    if found is None:
        raise ValueError(f"codelet {name!r} is not loaded; --load the file that defines it")
    return found


# Vertices


@lru_cache(maxsize=4096)
def _places(order: tuple[int, ...], cells: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of views along which cells lie: those of parts, then the dimensions of cells."""
    rank = len(order)
    return (*range(rank), *(rank + i for i, d in enumerate(order) if d in cells))


def arranged(array: Array, leading: Sequence[int], wholes: Sequence[int]) -> Array:
    """A view with some axes first, then others; of all further axes, the first element."""
    kept = {*leading, *wholes}
    index = tuple(slice(None) if i in kept else 0 for i in range(array.ndim))
    left = sorted(kept)
    return array[index].transpose([left.index(i) for i in (*leading, *wholes)])


Computing = Callable[[UsersCodelet, Sequence[Array], Sequence[float], Sequence[Any]], "Results"]
"""Computes a codelet on arrays with a leading axis of cells, with its parameters, for results of
some dtypes."""

Results = Sequence[Array]


def users_codelet(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a user's codelet, on cells piece by piece."""
    del scratch
    return users_calls(cells, _by_numpy)


def _by_numpy(
    known: UsersCodelet, arrays: Sequence[Array], parameters: Sequence[float], _: Sequence[Any]
) -> Results:
    return known.apply(arrays, parameters)


def users_calls(cells: Cells, computing: Computing) -> list[Call]:
    """The calls that compute a user's codelet in one of its forms, on cells piece by piece."""
    along = cells.body.along
    assert along is not None
    known = users_codelet_of(along.name)
    signature = known.signature
    leading = _places(cells.order, signature.cell_dims)
    rank = len(cells.order)
    views = [
        arranged(array, leading, [rank + cells.order.index(d) for d in signature.whole_of(access)])
        for array, access in zip(
            (*cells.operands, *cells.results),
            (*signature.reads.values(), *signature.writes.values()),
            strict=True,
        )
    ]
    shape = views[-1].shape[: len(leading)]
    size = sum(prod(view.shape[len(leading) :]) * max(view.itemsize, 4) for view in views)
    calls: list[Call] = []
    count = len(cells.operands)
    for index in chunks(shape, max(SCRATCH_BYTES // max(size, 1), 1)):
        # An ellipsis for all cells also stands for the axes that follow.
        pieces = [view[(*(i for i in index if i is not ...), ...)] for view in views]
        arguments = known, computing, along.parameters, len(leading), pieces[:count], pieces[count:]
        calls.append((_run, arguments))
    return calls


def _run(
    known: UsersCodelet,
    computing: Computing,
    parameters: tuple[float, ...],
    leading: int,
    operands: Sequence[Array],
    results: Sequence[Array],
) -> None:
    arrays = [stacked(each, leading, machine_dtype(each.dtype)) for each in operands]
    found = computing(known, arrays, parameters, [each.dtype for each in results])
    for made, result in zip(found, results, strict=True):
        convert_into(made.reshape(result.shape), result)


def stacked(array: Array, leading: int, dtype: np.dtype[Any]) -> Array:
    """A contiguous copy of a dtype, whose leading axes are one axis of cells."""
    made = np.empty(array.shape, dtype)
    convert_into(array, made)
    return made.reshape(prod(array.shape[:leading]), *array.shape[leading:])


def machine_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which a codelet gets an operand: float32 for narrower floats."""
    return compute_dtype(dtype) if is_floating(dtype) else dtype
