"""The free sizes of an exported program: symbols, and expressions of them such as 2*s77.

Each axis of an input has a size, a symbol, or an expression. A user may give the symbol, or the
size of the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ..binding import InputSignature, Sizes, input_sizes
from ..bounds import Bounds, GivenSize, checked_size, parts_of
from ..errors import UnsupportedError
from .expressions import only_symbol, solved, spelled, symbols_of, value_of
from .schema import Program, Size, Tensor

LEAST_BY_DEFAULT = 2
"""torch gives every free size this least value, unless the user gives another: it treats the sizes
0 and 1 apart. Programs compute the same for them."""


def axis_of(size: Size, place: str) -> int | str:
    """The size of an axis, or the name of a free one: its symbol, or its expression.

    Raises InputError for what is neither.

    Args:
        place: the model's name in messages.
    """
    if isinstance(size, int):
        if size < 0:
            raise _damaged(place, f"a size of {size}")
        return size
    try:
        return spelled(size) if symbols_of(size) else value_of(size, {})
    except (ValueError, KeyError) as error:
        raise _damaged(place, f"size {size[:60]!r}: {error}") from None


def _damaged(place: str, what: str) -> InputError:
    return InputError(f"{place}: damaged program: {what}")


@dataclass(frozen=True)
class FreeSizes:
    """The free sizes of the inputs of a program.

    Attributes:
        place: the model's name in messages.
        expressions: those that are no single symbols, by their spelling.
        inner: the symbols that are no size of an axis, but part of an expression.
        ranges: the least and the greatest value of each symbol and expression.
    """

    place: str
    expressions: Mapping[str, str]
    inner: frozenset[str]
    ranges: Mapping[str, tuple[int | None, int | None]]

    @classmethod
    def of(cls, program: Program, place: str) -> FreeSizes:
        """The free sizes of a program."""
        sizes = [
            size
            for each in program.inputs
            if each.kind == "user_input" and isinstance(each.argument, Tensor)
            for size in program.graph.tensors[each.argument.name].sizes
            if isinstance(size, str) and symbols_of(size)
        ]
        found = {spelled(size): size for size in sizes if only_symbol(size) is None}
        alone = {only_symbol(size) for size in sizes}
        inner = {name for text in found.values() for name in symbols_of(text)} - alone
        return cls(place, found, frozenset(inner), program.ranges)

    def sizes(
        self,
        inputs: Sequence[InputSignature],
        dims: Mapping[str, GivenSize],
        values: Mapping[str, Array],
    ) -> Sizes:
        """The sizes of the inputs, as far as they are given, and those that follow from them.

        Raises InputError for sizes that contradict each other, or that the program was not exported
        for. The arguments are those of `input_sizes`.
        """
        given = {
            name: checked_size(f"{self.place}: --dim {name}", size) for name, size in dims.items()
        }
        own = {name: size for name, size in given.items() if name not in self.inner}
        sizes = input_sizes(self.place, inputs, own, values)
        inner = {name: given[name] for name in self.inner & given.keys()}
        bounds = {n: b for n, b in {**sizes.symbols, **inner}.items() if isinstance(b, Bounds)}
        symbols = sizes.fixed | {n: size for n, size in inner.items() if isinstance(size, int)}
        for each in sizes.inputs:
            for axis, name in sizes.names(each):
                size = sizes.size(each, axis)
                if isinstance(size, int):
                    symbols.setdefault(name, size)
        self._fill(symbols)
        for name, size in symbols.items():
            self._check(name, Bounds(size, size), size)
        for name, size in bounds.items():
            self._check(name, size, size)
        self._refuse_products(bounds, symbols)
        sizes.symbols.update(symbols)
        sizes.symbols.update(bounds)
        return sizes

    def _refuse_products(self, bounds: Mapping[str, Bounds], symbols: Mapping[str, int]) -> None:
        """Raise UnsupportedError for bounds of a symbol in an expression that is no sum."""
        for name, text in self.expressions.items():
            found = [each for each in symbols_of(text) if each in bounds]
            if not found or name in bounds or name in symbols:
                continue
            parts = parts_of(name)
            if not all(part.isdigit() or part in bounds or part in symbols for part in parts):
                raise UnsupportedError(
                    f"{self.place}: --dim {found[0]}={bounds[found[0]]}: the size {name} of an "
                    f"axis has no bounds; add --dim {name}=LEAST..MOST"
                )

    def _fill(self, symbols: dict[str, int]) -> None:
        """Add the sizes that follow from others."""
        for _ in self.expressions:
            for name, text in self.expressions.items():
                read = symbols_of(text)
                if all(each in symbols for each in read):
                    self._compute(name, text, symbols)
                elif name in symbols and len(read) == 1:
                    value = solved(text, symbols[name])
                    if value is None:
                        raise self._bad(name, symbols[name], f"no {read[0]} gives it")
                    symbols[read[0]] = value

    def _compute(self, name: str, text: str, symbols: dict[str, int]) -> None:
        try:
            size = value_of(text, symbols)
        except ValueError as error:
            raise _damaged(self.place, str(error)) from None
        given = symbols.setdefault(name, size)
        if given != size:
            why = ", ".join(f"{each}={symbols[each]}" for each in symbols_of(text))
            raise self._bad(name, given, f"it is {size} for {why}")

    def _check(self, name: str, bounds: Bounds, given: int | Bounds) -> None:
        low, high = self.ranges.get(name, (None, None))
        least = 0 if low is None or low <= LEAST_BY_DEFAULT else low
        if bounds.least < least or (high is not None and bounds.most > high):
            most = "any size" if high is None else high
            raise self._bad(name, given, f"the model was exported for {least} to {most}")

    def _bad(self, name: str, size: int | Bounds, why: str) -> InputError:
        return InputError(f"{self.place}: --dim {name}={size}; {why}")
