"""The values that a key of a sweep takes: one, a list, or a range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log
from typing import Any, TypeAlias, cast

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion

Values: TypeAlias = Sequence[Any]
"""The values of a key, in order. Those of a long range are not listed anywhere."""

FROM, TO, STEP, FACTOR, COUNT = "from", "to", "step", "factor", "count"
"""The keys of a range."""

SLACK = 1e-9
"""The share of a step by which the last value of a range may miss its end. Decimal fractions have
no exact floats."""


@dataclass(frozen=True)
class _Computed(Sequence[Any]):
    """Values that are computed when they are asked for."""

    length: int
    value: Callable[[int], Any]

    def __len__(self) -> int:
        """How many there are."""
        return self.length

    def __getitem__(self, index: Any) -> Any:
        """The value at an index from 0 on."""
        if not 0 <= index < self.length:
            raise IndexError(index)
        return self.value(index)


def values_of(given: object, where: str, *, is_list: Callable[[object], bool]) -> Values:
    """The values that a key is given. Raises InputError for an empty list or range.

    Args:
        where: the place of the key, for messages.
        is_list: whether a list is one value of the key, and not several values.
    """
    if isinstance(given, Mapping):
        return _range(cast("Mapping[str, object]", given), where)
    if not isinstance(given, list) or is_list(cast("object", given)):
        return (cast("object", given),)
    listed = cast("list[object]", given)
    if not listed:
        raise InputError(f"{where}: an empty list; need at least one value")
    return tuple(listed)


def length(values: Values) -> int:
    """How many values there are, also if Python's len does not count so far."""
    if isinstance(values, range):
        return max(
            0, (values.stop - values.start + values.step - _sign(values.step)) // values.step
        )
    return values.length if isinstance(values, _Computed) else len(values)


def _sign(number: int) -> int:
    return 1 if number > 0 else -1


def _range(given: Mapping[str, object], where: str) -> Values:
    """The values of a range. Raises InputError."""
    known = (FROM, TO, STEP, FACTOR, COUNT)
    for key, value in given.items():
        if key not in known:
            raise InputError(f"{where}: a range has no key {key!r}{suggestion(key, known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise InputError(f"{where}: {key} is {value!r}; need a number")
    how = [key for key in (STEP, FACTOR, COUNT) if key in given]
    if FROM not in given or TO not in given or len(how) != 1:
        raise InputError(
            f"{where}: need from, to, and one of step, factor or count, such as "
            "{from = 64, to = 1472, step = 64}"
        )
    first, last, by = (cast("float", given[key]) for key in (FROM, TO, how[0]))
    values = _BY[how[0]](first, last, by, where)
    if not length(values):
        raise InputError(f"{where}: an empty range from {first} to {last}")
    return values


def _steps(first: float, last: float, step: float, where: str) -> Values:
    if not step:
        raise InputError(f"{where}: step is 0; need another number")
    if all(isinstance(each, int) for each in (first, last, step)):
        # Python's range counts integers of any size.
        return range(int(first), int(last) + (1 if step > 0 else -1), int(step))
    count = floor((last - first) / step + SLACK) + 1
    return _Computed(max(count, 0), lambda k: first + k * step)


def _factors(first: float, last: float, factor: float, where: str) -> Values:
    if factor <= 1 or first <= 0:
        raise InputError(f"{where}: need a factor above 1, and values above 0")
    count = floor(log(last / first) / log(factor) + SLACK) + 1 if last >= first else 0
    return _Computed(count, lambda k: first * factor**k)


def _counted(first: float, last: float, count: float, where: str) -> Values:
    if not isinstance(count, int) or count < 2:
        raise InputError(f"{where}: count is {count}; need a whole number from 2 on")
    if isinstance(first, int) and isinstance(last, int):
        return _Computed(count, lambda k: first + round(k * (last - first) / (count - 1)))
    return _Computed(count, lambda k: first + k * (last - first) / (count - 1))


_BY: Mapping[str, Callable[[float, float, float, str], Values]] = {
    STEP: _steps,
    FACTOR: _factors,
    COUNT: _counted,
}
