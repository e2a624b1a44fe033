"""Each task's battery passes with its kernels, and fails with kernels that are wrong."""

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from abele.backends.host.battery.batteries import battery_of, proved
from abele.backends.host.battery.comparing import Differs, compare, room
from abele.backends.host.load import kernels
from abele.backends.host.tasks import NEEDS

pytest.importorskip("numba")

Code = Callable[..., Any]

LONGS = ctypes.c_int64
CODE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *[LONGS] * 4)
"""A kernel that does some parts of a call, as numba calls it: result, error, table, begin, end and
room."""
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *[LONGS] * 3)
"""The kernel of functions: number, first and second operand."""


@pytest.mark.each_form
@pytest.mark.parametrize("task", NEEDS)
def test_kernels_pass_their_battery(task: str):
    begun: list[str] = []
    proof = proved(task, begun.append)
    assert proof.problem == ""
    assert begun == list(battery_of(task))
    assert proof.cases > 50


def without_the_last_part(address: int) -> Code:
    """A kernel that leaves out the last part of each call."""
    code = CODE(address)
    return CODE(lambda *given: code(*given[:4], given[4] - 1, given[5]))


def without_a_function(address: int) -> Code:
    """A kernel of functions that leaves its operand as it is."""
    del address
    return FUNCTION(lambda *given: 0)


def without_the_end(do_all: Code) -> Code:
    """The kernel that does all units of a call, without the last part of them."""

    def do(call: int, room: int) -> int:
        code, table, first, end = (LONGS * 4).from_address(call)
        shorter = (LONGS * 4)(code, table, first, end - 1)
        return do_all(ctypes.addressof(shorter), room)

    return do


def without_a_finding(kernel: Code) -> Code:
    """A kernel that finds nothing."""
    del kernel
    return lambda *given: 0


PLANTED = {
    "sharing": ("do_all", without_the_end),
    "products": ("PRODUCTS", without_the_last_part),
    "chains": ("CHAIN", without_the_last_part),
    "functions": ("CODE", without_a_function),
    "copies": ("COPY", without_the_last_part),
    "routes": ("ROUTE", without_the_last_part),
    "lookups": ("LOOK_UP", without_the_last_part),
    "bounds": ("largest_ratio", without_a_finding),
    "equality": ("differ", without_a_finding),
}
"""By task, which of its kernels is replaced, and by what."""


@pytest.mark.parametrize("task", NEEDS)
def test_a_wrong_kernel_is_found_and_its_case_is_named(task: str, monkeypatch: pytest.MonkeyPatch):
    name, wrong = PLANTED[task]
    module = kernels(task)
    planted = wrong(getattr(module, name))
    is_code = isinstance(getattr(module, name), int)
    address = ctypes.cast(planted, ctypes.c_void_p).value if is_code else planted
    monkeypatch.setattr(module, name, address)
    assert re.match(r"[\w ]+: .+: .*(differ|NumPy|units)", proved(task).problem)


def test_bytes_beside_a_result_are_seen():
    actual, expected = (room((3, 5), np.float32, (28, 4)) for _ in range(2))
    compare("equal", actual, expected)
    beside = np.lib.stride_tricks.as_strided(actual, (3, 7), (28, 4))
    beside[1, 6] = 0
    with pytest.raises(Differs, match="outside the result"):
        compare("a gap", actual, expected)


def test_any_nan_will_do_where_there_is_one_and_no_other_bit_may_differ():
    actual, expected = (room((4,), np.float32) for _ in range(2))
    actual[:], expected[:] = (np.nan, 1, 0, 2), (-np.nan, 1, 0, 2)
    compare("two NaN", actual, expected)
    actual[2] = -0.0
    with pytest.raises(Differs, match=r"1 of 4 elements differ, the first at \[2\]: -0.0"):
        compare("zeros", actual, expected)
