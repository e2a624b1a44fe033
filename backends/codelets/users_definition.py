"""The decorator that makes a function a codelet, and what it reads from the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from ...dialects.codelets import BY_NAME, CLASSES, Signature
from ...dialects.nn.codelet import check_field_names, dims_of_text, maps_of_text, op_class
from ...ir.support.errors import InputError
from .users import Ulps, UsersCodelet


def codelet(
    *,
    space: str,
    reads: Mapping[str, str],
    writes: Mapping[str, str],
    cycles: Callable[..., float],
    bound: object,
    types: Mapping[str, str] | None = None,
    needs: Callable[..., object] | None = None,
    sensitivity: float | None = None,
    gradient: object = None,
    numba: Callable[..., Any] | None = None,
    samples: Mapping[str, Callable[..., Any]] | None = None,
    name: str = "",
) -> Callable[[Callable[..., Any]], UsersCodelet]:
    """Make a function of NumPy arrays an operation of nn.

        @codelet(space="n", reads={"x": "n", "y": "n"}, writes={"out": "n"},
                 cycles=lambda n: 20 + 5 * n, bound=ulps(2))
        def hypot(x, y):
            return np.sqrt(x * x + y * y)

    Raises InputError with the line for what does not fit.

    Args:
        space: the dimensions: "y, x, d = 3 whole". Cells lie along those that are not whole. A size
            may be a number, a parameter or another dimension; else shapes decide it.
        reads: the access map of each operand, in the order of the function's arguments. An axis `:`
            is read whole by each cell.
        writes: the map of each result: single dimensions, with all that are not whole.
        cycles: the cycles in which one worker computes n cells: a function of n, and of whole
            dimensions and parameters that it names.
        bound: the largest error of a result in float32: `ulps(n)`.
        types: element types of reads and writes: "floats", "integers", "numbers", one such as
            "i32", or for a write the name of a read. Reads are floats by default, and a write has
            the type of the first read.
        needs: a condition that dimensions and parameters must meet, a function of those it names.
        sensitivity: how far a result moves at most if everything that its cell reads moves by one.
            Without it, nothing is known about a result whose operands have errors.
        gradient: a codelet of the reads and the gradients of the writes, which writes the gradients
            of the reads that are floats; or a function (emit, op, gradients) that returns them by
            the index of the operand.
        numba: a function that numba compiles. It takes the arrays, then the results to write into,
            then the parameters, and must write the same bytes.
        samples: for some reads, a function (generator, shape) that draws the values with which the
            codelet is checked; normal numbers by default.
        name: "FILE.FUNCTION" by default, without the suffix of the file.
    """

    def made(function: Callable[..., Any]) -> UsersCodelet:
        code = getattr(function, "__code__", None)
        if code is None:
            raise InputError("@codelet of what is no function; need a function")
        file, line = code.co_filename, code.co_firstlineno

        def wrong(reason: object) -> InputError:
            # Loading the file adds the file and the line.
            return InputError(f"codelet {function.__name__!r}: {reason}")

        given = name or f"{_identifier(Path(file).stem)}.{function.__name__}"
        prefix, dot, own = given.partition(".")
        if not dot or not prefix.isidentifier() or not own.isidentifier():
            raise wrong(f"name {given!r}; need two names and a dot, such as heat.step")
        try:
            dims = dims_of_text(space)
            dims, read, written = maps_of_text(dims, reads, writes)
            parameters, whole = _parameters(function, reads)
            dims = tuple(
                replace(dim, size=dim.name) if dim.name in whole and dim.size == "" else dim
                for dim in dims
            )
            check_field_names([*reads, *writes, *parameters])
            _check_types(types or {}, reads, writes)
            sizes = {dim.name for dim in dims} | whole
            for dim in dims:
                if isinstance(dim.size, str) and dim.size and dim.size not in sizes:
                    raise ValueError(
                        f"{dim.name} = {dim.size}; need a number, a dimension or a parameter that "
                        "is an integer"
                    )
            known = {dim.name for dim in dims} | set(parameters)
            wholes = {dim.name for dim in dims if dim.whole} | set(parameters)
            price = _named(cycles, "cycles", wholes, 1)
            conditions = () if needs is None else _named(needs, "needs", known, 0)
        except ValueError as error:
            raise wrong(error) from None
        if not reads or not writes:
            raise wrong("no reads or no writes; need one of each or more")
        if not isinstance(bound, Ulps):
            raise wrong(f"bound {bound!r}; need ulps(NUMBER)")
        if sensitivity is not None and not (isfinite(sensitivity) and sensitivity >= 0):
            raise wrong(f"sensitivity {sensitivity}; need a number from 0 on")
        signature = Signature(
            *(given, dims, read, written, dict(types or {}), parameters, whole, needs, conditions)
        )
        documentation = inspect.cleandoc(function.__doc__ or f"The codelet {given}.")
        return UsersCodelet(
            signature,
            function,
            cycles,
            price,
            bound,
            op_class(signature, documentation),
            file,
            line,
            digest_of(function),
            sensitivity,
            gradient,
            numba,
            samples or {},
        )

    return made


def digest_of(function: Callable[..., Any]) -> str:
    """The digest of the file that defines a function; of its code, if there is no file."""
    code = function.__code__
    try:
        return sha256(Path(code.co_filename).read_bytes()).hexdigest()
    except OSError:
        return sha256(repr((code.co_code, code.co_consts)).encode()).hexdigest()


def _identifier(stem: str) -> str:
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in stem)
    return text if text.isidentifier() else f"_{text}"


def _parameters(
    function: Callable[..., Any], reads: Mapping[str, str]
) -> tuple[dict[str, float], frozenset[str]]:
    """The keyword-only arguments of a function with their defaults, and those that are integers.

    Raises ValueError for one without a default, and unless the other arguments are the reads.
    """
    arguments = inspect.signature(function).parameters.values()
    positional = [each.name for each in arguments if each.kind is each.POSITIONAL_OR_KEYWORD]
    further = [each for each in arguments if each.kind is each.KEYWORD_ONLY]
    if positional != list(reads) or len(positional) + len(further) != len(arguments):
        raise ValueError(
            f"arguments {', '.join(positional) or 'none'}; need those of reads, in order: "
            f"{', '.join(reads)}; parameters follow after a *"
        )
    found: dict[str, float] = {}
    for each in further:
        if each.default is each.empty:
            raise ValueError(f"parameter {each.name} has no default; samples need one")
        if isinstance(each.default, bool) or not isinstance(each.default, int | float):
            raise ValueError(f"parameter {each.name} = {each.default!r}; need an int or a float")
        found[each.name] = each.default
    return found, frozenset(name for name, value in found.items() if isinstance(value, int))


def _check_types(
    types: Mapping[str, str], reads: Mapping[str, str], writes: Mapping[str, str]
) -> None:
    for name, wanted in types.items():
        allowed = [*BY_NAME, *(CLASSES if name in reads else reads)]
        if name not in reads and name not in writes:
            raise ValueError(f"type of {name!r}, which is neither a read nor a write")
        if wanted not in allowed:
            raise ValueError(f"type {wanted!r} of {name}; need one of {', '.join(allowed)}")


def _named(function: Callable[..., Any], what: str, known: set[str], first: int) -> tuple[str, ...]:
    """The names of a function's arguments after the first ones. Raises ValueError for others."""
    if not callable(function):
        raise ValueError(f"{what} {function!r}; need a function")
    names = tuple(inspect.signature(function).parameters)
    unknown = [name for name in names[first:] if name not in known]
    if len(names) < first or unknown:
        listed = ", ".join(sorted(known)) or "nothing else"
        takes = "the number of cells, then " * first
        raise ValueError(
            f"{what} takes {', '.join(names) or 'nothing'}; need {takes}some of: {listed}"
        )
    return names[first:]
