"""The names of passes in `abele opt` and in `xdsl-opt`, where abele's and xDSL's meet.

| name         | in `abele opt`                    | in `xdsl-opt`        |
|--------------|-----------------------------------|----------------------|
| `NAME`       | abele's or a user's, else xDSL's  | xDSL's, else abele's |
| `abele-NAME` | abele's                           | abele's              |
| `xdsl-NAME`  | xDSL's                            | no such pass         |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from xdsl.transforms import get_all_passes

from ..ir.pass_manager import ABELE, XDSL, PassEntry, load_pass
from ..ir.upstream import ModulePass
from .pipelines import PASSES

XDSL_PASSES: Mapping[str, PassEntry] = dict(get_all_passes())
"""xDSL's passes by name, imported on first use."""


def renamed(name: str, own_name: str, registry: Mapping[str, PassEntry]) -> type[ModulePass]:
    """The pass own_name of a registry, as a class whose name is another one."""
    own = load_pass(own_name, registry)
    return type(own.__name__, (own,), {"name": name, "__doc__": own.__doc__})


def opt_passes(passes: Mapping[str, PassEntry]) -> dict[str, PassEntry]:
    """The names that `abele opt` knows. passes: abele's and users' passes."""
    # A pass of xDSL's says its full name in messages and reproducers: the bare one may be abele's.
    full: dict[str, PassEntry] = {
        XDSL + name: partial(renamed, XDSL + name, name, XDSL_PASSES) for name in XDSL_PASSES
    }
    own = {ABELE + name: PASSES[name] for name in PASSES}
    return {**XDSL_PASSES, **full, **own, **passes}


def xdsl_opt_passes() -> dict[str, PassEntry]:
    """The names that abele adds to those of `xdsl-opt`, where two of one name are an error."""
    full = {ABELE + name: partial(renamed, ABELE + name, name, PASSES) for name in PASSES}
    return {**full, **{name: entry for name, entry in PASSES.items() if name not in XDSL_PASSES}}
