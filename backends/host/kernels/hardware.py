# pyright: basic
"""The form of kernels in this process, and the decorator that compiles them. Needs numba."""

from __future__ import annotations

from typing import Any, cast

import numba

from ..switch import FORMS, choice
from .tables import LANES

FORM = choice().form or FORMS["narrow"]
"""The form that this process compiles. It is chosen once: another form needs another process."""

OPTIONS = {"error_model": "numpy", "boundscheck": False, "nogil": True}
"""Options of every kernel. They release Python's lock, and `Threads` makes one call at a time."""

ROWS, VECTORS = FORM.rows, FORM.vectors
"""The tile of results that stays in registers: its rows, and the vectors of each row."""

COLUMNS = VECTORS * LANES


def compiled(signature, **options):
    """Numba's decorator `njit`, for a kernel of one signature, which is compiled at once."""

    def decorate(function):
        dispatcher = cast(Any, numba.njit(**options)(function))
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher

    return decorate
