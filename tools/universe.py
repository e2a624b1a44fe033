"""abele's passes and dialects as xdsl-opt finds them: xDSL's plug-in, loaded name by name."""

from __future__ import annotations

from functools import partial

from xdsl.universe import Universe

from ..dialects.levels import DIALECTS, load_dialect
from ..ir.pass_manager import load_pass
from ..passes.pipelines import PASSES

UNIVERSE = Universe(
    all_dialects={name: partial(load_dialect, name) for name in DIALECTS},
    all_passes={name: partial(load_pass, name, PASSES) for name in PASSES},
)
