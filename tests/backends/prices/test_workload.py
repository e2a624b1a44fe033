from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from abele.backends.prices.workload import Workload, number_dtype, partials_dtype, roles
from abele.backends.target import resolve_target
from abele.dialects.structured import Body, Narrow, Stage, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

MK2 = resolve_target("mk2")
F16, F32, F64, I32, BOOL = map(np.dtype, ("float16", "float32", "float64", "int32", "bool"))


def convolution() -> Structure:
    """One image of 8 channels, 10 long; 16 output channels, a window of 3."""
    dims = (Dim("n", 1), Dim("co", 16), Dim("x", 8), Dim("ci", 8, "reduction"))
    dims = (*dims, Dim("kx", 3, "reduction"))
    image = AccessMap((AxisMap(1, ((0, 1),)), AxisMap(8, ((3, 1),)), AxisMap(10, ((2, 1), (4, 1)))))
    weight = identity_map((1, 3, 4), (16, 8, 3))
    return Structure(
        Space(dims, (image, weight), (identity_map((0, 1, 2), (1, 16, 8)),)), Body("mul", "sum")
    )


def rectified(n: int) -> Structure:
    access = identity_map((0,), (n,))
    return Structure(Space((Dim("i", n),), (access,), (access,)), Body("relu"))


def test_the_roles_of_a_convolution_are_those_of_its_names():
    found = roles(convolution())
    assert found is not None
    assert (found.field, found.out_channels, found.in_channels) == ((0, 2), (1,), (3,))
    assert (found.kernel, found.groups) == ((4,), ())
    assert Workload(convolution(), F16, F16, MK2).roles == found
    assert roles(rectified(4)) is None


def test_a_select_is_priced_by_the_dtype_of_the_values_it_selects():
    assert number_dtype([BOOL, F16, F16]) == F16
    assert number_dtype([BOOL]) == BOOL
    assert Workload.of(rectified(4), (BOOL, F16, F32), MK2) == Workload(rectified(4), F16, F32, MK2)


@pytest.mark.parametrize(("result", "partials"), [(F16, F32), (F32, F32), (F64, F64), (I32, I32)])
def test_narrow_floats_add_up_in_32_bits_unless_the_body_allows_narrow_sums(
    result: np.dtype, partials: np.dtype
):
    work = Workload(convolution(), F16, result, MK2)
    assert work.partials == partials_dtype(result) == partials
    narrow = replace(convolution(), body=Body("mul", "sum", narrow=Narrow()))
    assert Workload(narrow, F16, result, MK2).partials == F16
    assert Workload(narrow, result, result, MK2).partials == result


def test_the_chain_can_be_left_out():
    chained = replace(convolution(), body=Body("mul", "sum", then=(Stage("relu"),)))
    assert Workload(chained, F32, F32, MK2).unchained == Workload(convolution(), F32, F32, MK2)
