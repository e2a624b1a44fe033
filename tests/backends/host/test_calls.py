"""Every address in the tables of a call is noted, whichever kernel the call is of."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from abele.backends.codelets.calls import address, owner
from abele.backends.host import routes
from abele.backends.host.battery.batteries import proved
from abele.backends.host.calls import KernelCall
from abele.backends.host.write_bound_program import code_names

pytest.importorskip("numba")

CODES = {
    "chains": {"CHAIN", "MERGE"},
    "copies": {"COPY"},
    "lookups": {"LOOK_UP", "REPLACE_ROWS"},
    "products": {"PRODUCTS", "PACK_ALL_ROWS", "PACK_ALL_COLUMNS"},
    "routes": {"ROUTE"},
}
"""By task, the kernels that calls are of."""


ENOUGH = 20
"""Calls of each kernel that are looked at, at least."""


class Enough(BaseException):
    """There are enough calls of each kernel."""


def tables_in(kept: object) -> Iterator[np.ndarray]:
    """The tables of integers that something holds."""
    if isinstance(kept, np.ndarray):
        if owner(kept).dtype == np.int64:
            yield owner(kept)
    elif isinstance(kept, Mapping):
        yield from tables_in(list(kept.values()))
    elif isinstance(kept, tuple | list):
        for each in kept:
            yield from tables_in(each)
    elif is_dataclass(kept):
        yield from tables_in([getattr(kept, each.name) for each in fields(kept)])


def noted(call: KernelCall) -> np.ndarray:
    """The places that hold addresses."""
    found: list[np.ndarray] = []
    for view in call.pointers:
        places = np.array(address(view))
        for count, step in zip(view.shape, view.strides, strict=True):
            places = places[..., None] + np.arange(count) * step
        found.append(places.reshape(-1))
    return np.concatenate(found)


@pytest.mark.parametrize("task", CODES)
def test_what_depends_on_where_memory_lies_is_noted_and_nothing_else(
    task: str, monkeypatch: pytest.MonkeyPatch
):
    """Calls are made twice, and all memory of the first ones still exists when others are made."""
    made: list[KernelCall] = []
    seen = Counter[str]()
    make = KernelCall.__init__

    def recorded(self: KernelCall, *given: Any, **options: Any) -> None:
        make(self, *given, **options)
        made.append(self)
        seen[code_names()[self.arguments[0]]] += 1
        if all(seen[f"{task}.{each}"] >= ENOUGH for each in CODES[task]):
            raise Enough

    monkeypatch.setattr(KernelCall, "__init__", recorded)
    rounds: list[list[KernelCall]] = []
    for _ in range(2):
        # Equal copies share tables.
        monkeypatch.setattr(routes, "_KNOWN", {})
        made = []
        seen.clear()
        with pytest.raises(Enough):
            _ = proved(task)
        rounds.append(made)
    names = code_names()
    assert {*seen} == {f"{task}.{each}" for each in CODES[task]}
    for first, second in zip(*rounds, strict=True):
        places = noted(first)
        for one, other in zip(tables_in(first.memory), tables_in(second.memory), strict=True):
            one, other = one.ravel("K"), other.ravel("K")
            at = (places - address(one)) // 8
            at = at[(at >= 0) & (at < one.size)]
            differs = one != other
            assert {*one[at[~differs[at]]].tolist()} <= {0, *names}
            differs[at] = False
            assert not differs.any(), names[first.arguments[0]]
