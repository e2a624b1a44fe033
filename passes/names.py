"""The names of passes in abele's pipelines and in `xdsl-opt`, where abele's and xDSL's meet.

| name         | in abele                          | in `xdsl-opt`        |
|--------------|-----------------------------------|----------------------|
| `NAME`       | abele's or a user's, else xDSL's  | xDSL's, else abele's |
| `abele-NAME` | abele's                           | abele's              |
| `xdsl-NAME`  | xDSL's                            | no such pass         |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from ..ir.pass_manager import ABELE, XDSL, PassEntry, load_pass
from ..ir.upstream import ModulePass, get_all_passes
from .pipelines import PASSES

XDSL_PASSES: Mapping[str, PassEntry] = dict(get_all_passes())
"""xDSL's passes by name, imported on first use."""


def renamed(name: str, own_name: str, registry: Mapping[str, PassEntry]) -> type[ModulePass]:
    """The pass `own_name` of a registry, as a class with another name."""
    own = load_pass(own_name, registry)
    return type(own.__name__, (own,), {"name": name, "__doc__": own.__doc__})


@cache
def _xdsl_pass(name: str) -> type[ModulePass]:
    """A pass of xDSL, with its full name in messages because abele may have the bare name."""
    return renamed(XDSL + name, name, XDSL_PASSES)


def pipeline_passes(passes: Mapping[str, PassEntry] = PASSES) -> dict[str, PassEntry]:
    """The passes that a pipeline may name.

    Args:
        passes: abele's and users' passes.
    """
    full = {XDSL + name: partial(_xdsl_pass, name) for name in XDSL_PASSES}
    own = {ABELE + name: PASSES[name] for name in PASSES}
    return {**XDSL_PASSES, **full, **own, **passes}


def xdsl_opt_passes() -> dict[str, PassEntry]:
    """The names that abele adds to `xdsl-opt`, without names that xDSL has, which would be an
    error.
    """
    full = {ABELE + name: partial(renamed, ABELE + name, name, PASSES) for name in PASSES}
    return {**full, **{name: entry for name, entry in PASSES.items() if name not in XDSL_PASSES}}
