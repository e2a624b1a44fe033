"""Users' codelets on the host: by their functions for numba, where they have one."""

from __future__ import annotations

from ..codelets.calls import Call, Scratch
from ..codelets.cells import Cells
from ..codelets.users import users_calls, users_codelet, users_codelet_of
from ..codelets.users_twin import by_twin, has_numba
from .switch import is_wanted


def host_users_codelet(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a user's codelet: compiled if kernels are used and it has a form."""
    along = cells.body.along
    assert along is not None
    known = users_codelet_of(along.name)
    if known.numba is None or not is_wanted() or not has_numba():
        return users_codelet(cells, scratch)
    return users_calls(cells, by_twin)
