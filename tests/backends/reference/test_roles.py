import numpy as np
import pytest
from some_structures import pointwise, vector_product
from some_tensors import small_integers

from abele.backends.reference import (
    evaluate_structure,
    structure_value,
)
from abele.dialects.structured import Body, Stage, Structure


def test_operands_that_do_not_fit_the_space_are_refused():
    a, b = small_integers(1, (3, 8)), small_integers(2, (7,))
    with pytest.raises(ValueError, match=r"operand 1: shape \(7,\); the space needs \(8,\)"):
        structure_value(vector_product(8), [a, b], a.dtype, (3,))
    space = vector_product(8).space
    with pytest.raises(ValueError, match="mul: nothing merges dimensions k"):
        structure_value(Structure(space, Body("mul")), [a, a[0]], a.dtype, (3,))


def test_a_chain_on_whole_numbers_is_refused():
    with pytest.raises(ValueError, match="a chain on elements of int32; need floats"):
        evaluate_structure(
            pointwise((Stage("relu"),)), [np.arange(4, dtype=np.int32)], np.dtype(np.int32), (4,)
        )


def test_a_chain_without_its_operands_says_how_many_it_takes():
    with pytest.raises(ValueError, match="the function, its relations and its chain take 2"):
        evaluate_structure(
            pointwise((Stage("add"),)), [np.zeros(4, np.float32)], np.dtype(np.float32), (4,)
        )
