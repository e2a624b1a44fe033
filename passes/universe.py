"""abele's passes and dialects for `xdsl-opt`, which finds them as a plug-in of xDSL.

Only `abele-NAME` is sure to be abele's pass there: a bare NAME is xDSL's pass where xDSL has one of
that name, such as `canonicalize`. Loading the plug-in changes nothing in xDSL (see ir/xdsl).
"""

from __future__ import annotations

from functools import partial

from ..dialects.levels import DIALECTS, load_dialect
from ..ir.pass_manager import load_pass
from ..ir.upstream import Universe
from .names import xdsl_opt_passes

_PASSES = xdsl_opt_passes()

UNIVERSE = Universe(
    all_dialects={name: partial(load_dialect, name) for name in DIALECTS},
    all_passes={name: partial(load_pass, name, _PASSES) for name in _PASSES},
)
