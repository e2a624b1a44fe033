"""abele's passes and dialects as xdsl-opt finds them: xDSL's plug-in, loaded name by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from ..dialects.levels import DIALECTS, load_dialect
from ..ir.pass_manager import load_pass
from ..ir.upstream import ModulePass
from .pipelines import PASSES

TAKEN = frozenset(get_all_passes())
"""Names of xDSL's own passes, which a plug-in may not use."""


def _renamed(name: str) -> type[ModulePass]:
    """A pass under a name that xDSL has not: abele-NAME."""
    own = load_pass(name, PASSES)
    return type(own.__name__, (own,), {"name": f"abele-{name}", "__doc__": own.__doc__})


def _passes() -> dict[str, Callable[[], type[ModulePass]]]:
    found: dict[str, Callable[[], type[ModulePass]]] = {}
    for name in PASSES:
        if name in TAKEN:
            found[f"abele-{name}"] = partial(_renamed, name)
        else:
            found[name] = partial(load_pass, name, PASSES)
    return found


UNIVERSE = Universe(
    all_dialects={name: partial(load_dialect, name) for name in DIALECTS}, all_passes=_passes()
)
