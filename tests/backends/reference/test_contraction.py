import numpy as np
from some_tensors import small_integers

from abele.backends.reference import (
    evaluate_structure,
    structure_value,
)
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space


def test_a_dimension_named_twice_reads_a_diagonal():
    matrix = small_integers(4, (5, 5))
    space = Space(
        (Dim("i", 5, "reduction"),),
        (AccessMap((AxisMap(5, ((0, 1),)), AxisMap(5, ((0, 1),)))),),
        (AccessMap(()),),
    )
    trace = structure_value(Structure(space, Body("identity", "sum")), [matrix], matrix.dtype, ())
    assert trace == np.trace(matrix)


def test_dimensions_of_one_operand_alone_are_summed_and_of_none_counted():
    a, b = small_integers(5, (3, 4)), small_integers(6, (2,))
    space = Space(
        (Dim("i", 3), Dim("j", 4, "reduction"), Dim("k", 2, "reduction"), Dim("l", 5, "reduction")),
        (
            AccessMap((AxisMap(3, ((0, 1),)), AxisMap(4, ((1, 1),)))),
            AccessMap((AxisMap(2, ((2, 1),)),)),
        ),
        (AccessMap((AxisMap(3, ((0, 1),)),)),),
    )
    got = structure_value(Structure(space, Body("mul", "sum")), [a, b], a.dtype, (3,))
    np.testing.assert_array_equal(got, 5 * a.sum(1) * b.sum())


def test_a_product_is_repeated_along_dimensions_that_no_operand_has():
    a, b = small_integers(5, (4,)), small_integers(6, (4,))
    space = Space(
        (Dim("i", 3), Dim("j", 2), Dim("k", 4, "reduction")),
        (AccessMap((AxisMap(4, ((2, 1),)),)),) * 2,
        (AccessMap((AxisMap(3, ((0, 1),)), AxisMap(2, ((1, 1),)))),),
    )
    got, _ = evaluate_structure(Structure(space, Body("mul", "sum")), [a, b], a.dtype, (3, 2))
    np.testing.assert_array_equal(got, np.full((3, 2), a @ b))
