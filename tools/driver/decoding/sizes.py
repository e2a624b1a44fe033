"""The sizes with which a decoder is compiled, by what its inputs declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.support.errors import InputError
from ...importers.bounds import GivenSize, parts_of
from .roles import BRANCH, IDS, MASKS, TOTALS, is_cache, only

if TYPE_CHECKING:
    from ...importers.front_end import OpenShapes


class Sizes:
    """The free sizes of a decoder, as options of compile_model.

    A cache whose number of tokens is free grows: a run takes as many rows as exist, up to a bound.
    One of a known number of tokens is written in place.

    Attributes:
        ids: the name of the input of token ids.
        rest: options that do not depend on the number of tokens.
        takes_several: whether the model takes several tokens at once.
    """

    def __init__(self, shapes: OpenShapes, place: str, options: Mapping[str, Any]) -> None:
        self._shapes, self._place = shapes, place
        self.rest = {k: v for k, v in options.items() if k not in ("dims", "values")}
        self._dims: dict[str, GivenSize] = dict(options.get("dims") or {})
        self._values = dict(options.get("values") or {})
        self.ids = only(shapes, IDS, place, "input of token ids")
        keep = options.get("keep") or {}
        self._caches = [name for name in shapes if name in keep or is_cache(name)]
        new = self._axes(self.ids)[-1:]
        self._new = new[0] if new else None
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
            raise InputError(
                f"{place}: the sizes {', '.join(sorted(growing))} of caches are free; need one "
                "number of tokens, and sizes for the others (--dim)"
            )
        self._grows = next(iter(growing), None)
        self.takes_several = self._new is not None and self._new not in self._dims
        if BRANCH in shapes:
            self._values.setdefault(BRANCH, np.array([True]))

    def _axes(self, name: str) -> list[str | None]:
        """For each axis of an input, the name of its size if it is free: a symbol or INPUT:AXIS."""
        shape = self._shapes.get(name) or ()
        return [
            None if isinstance(n, int) else n or f"{name}:{axis}" for axis, n in enumerate(shape)
        ]

    def given(self, new: int, cache: int) -> dict[str, Any]:
        """The options dims and values.

        Args:
            new: the most tokens that a run takes.
            cache: how many tokens the cache holds.
        """
        dims: dict[str, GivenSize] = dict(self._dims)
        if self._new is not None:
            dims.setdefault(self._new, new if new == 1 else (1, new))
        if self._grows is not None:
            # A run begins behind a multiple of the most tokens that a run takes. A size without
            # bounds would not grow.
            dims[self._grows] = (0, max(1, (cache - 1) // new * new))
        for name in MASKS:
            for symbol in self._axes(name):
                if symbol is not None and symbol not in dims and len(parts_of(symbol)) == 1:
                    dims[symbol] = (1, cache)
        values = {name: np.array(cache) for name in TOTALS if name in self._shapes}
        return {"dims": dims, "values": {**values, **self._values}}
