"""The sizes with which a decoder is compiled, by what its inputs declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...importers.bounds import GivenSize, parts_of, size_or_bounds
from .roles import BRANCH, IDS, MASKS, TOTALS, NotADecoderError, is_cache, only

if TYPE_CHECKING:
    from ...importers.front_end import OpenShapes


class Sizes:
    """The free sizes of a decoder, as options of compile_model.

    A cache whose number of tokens is free grows: a run takes as many rows as exist, up to a bound.
    One of a known number of tokens is written in place.

    Attributes:
        ids: the name of the input of token ids.
        rest: options that do not depend on the number of tokens.
    """

    def __init__(self, shapes: OpenShapes, place: str, options: Mapping[str, Any]) -> None:
        self._shapes, self._place = shapes, place
        self.rest = {k: v for k, v in options.items() if k not in ("dims", "values")}
        self._dims: dict[str, GivenSize] = dict(options.get("dims") or {})
        self._values = dict(options.get("values") or {})
        self.ids = only(shapes, IDS, place, "input of token ids")
        keep: Mapping[str, str] = options.get("keep") or {}
        self._caches = [name for name in shapes if name in keep or is_cache(name)]
        new = self._axes(self.ids)[-1:]
        self._new = new[0] if new else None
        count = 1 if self._new is None else size_or_bounds(self._dims.get(self._new, 1))
        if count != 1:
            raise NotADecoderError(
                f"{place}: --dim {self._new}={count}; the loop over tokens takes one at a time; "
                "leave it out, and give the most tokens of a prompt that one run reads (--at-once)"
            )
        for name in (self.ids, *self._caches):
            for symbol in self._axes(name)[:1]:
                if symbol is not None and symbol != self._new:
                    self._dims.setdefault(symbol, 1)
        growing = {
            symbol
            for name in self._caches
            for symbol in self._axes(name)
            if symbol is not None and symbol not in self._dims
        }
        if len(growing) > 1:
            raise NotADecoderError(
                f"{place}: the sizes {', '.join(sorted(growing))} of caches are free; need one "
                "number of tokens, and sizes for the others (--dim)"
            )
        self._free = next(iter(growing), None)
        if BRANCH in shapes:
            self._values.setdefault(BRANCH, np.array([True]))

    def _axes(self, name: str) -> list[str | None]:
        """For each axis of an input, the name of its size if it is free: a symbol or INPUT:AXIS."""
        shape = self._shapes.get(name) or ()
        return [
            None if isinstance(n, int) else n or f"{name}:{axis}" for axis, n in enumerate(shape)
        ]

    @property
    def ways(self) -> list[tuple[bool, bool]]:
        """The ways to try, the fastest first: whether several tokens are read at once, and whether
        a cache whose number of tokens is free grows."""
        several = self._new is not None and self._new not in self._dims
        ways = [(True, True), (True, False), (False, True), (False, False)]
        return [
            (many, grows)
            for many, grows in ways
            if (several or not many) and (self._free is not None or grows)
        ]

    def given(self, new: int, context: int, *, grows: bool) -> dict[str, Any]:
        """The options dims and values.

        Args:
            new: the most tokens that a run takes.
            context: how many tokens the cache holds.
        """
        dims: dict[str, GivenSize] = dict(self._dims)
        if self._new is not None:
            dims.setdefault(self._new, new if new == 1 else (1, new))
        grows = grows and self._free is not None
        if self._free is not None:
            # A run begins behind a multiple of the most tokens that a run takes. A size without
            # bounds would not grow.
            most = max(1, (context - 1) // new * new)
            dims[self._free] = (0, most) if grows else context
        for name in MASKS:
            for symbol in self._axes(name):
                if symbol is not None and symbol not in dims and len(parts_of(symbol)) == 1:
                    dims[symbol] = (1, context) if grows else context
        values: dict[str, Any] = {}
        if not grows and TOTALS[0] in self._shapes:
            values[TOTALS[0]] = np.array(context, np.int32)
        return {"dims": dims, "values": {**values, **self._values}}
