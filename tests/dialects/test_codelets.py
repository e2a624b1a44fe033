"""Signatures of codelets: maps from text, sizes from shapes, and element types."""

from collections.abc import Mapping, Sequence

import pytest
from xdsl.dialects.builtin import f16, f32, i1, i32
from xdsl.ir import Attribute

from abele.dialects.codelets import Signature
from abele.dialects.nn.codelet import dims_of_text, maps_of_text
from abele.ir.upstream import VerifyException


def signature(
    space: str,
    reads: Mapping[str, str],
    writes: Mapping[str, str],
    parameters: Mapping[str, float] | None = None,
    types: Mapping[str, str] | None = None,
) -> Signature:
    every, read, written = maps_of_text(dims_of_text(space), reads, writes)
    given = parameters or {}
    return Signature("some.codelet", every, read, written, types or {}, given, frozenset(given))


STENCIL = {"t": "y + d - 1 edge, x"}
SIZES = [
    ("n", {"x": "n"}, {"out": "n"}, [(5,)], (5,)),
    ("y, x, d = 3 whole", STENCIL, {"out": "y, x"}, [(4, 6)], (4, 6, 3)),
    ("y, d = 3 whole", {"t": "y + d"}, {"out": "y"}, [(8,)], (6, 3)),
    ("y, d = 3 whole", {"t": "2 * y + d"}, {"out": "y"}, [(8,)], (3, 3)),
    ("y, d = 3 whole", {"t": "2 * y + d - 1 fill"}, {"out": "y"}, [(7,)], (4, 3)),
    ("y", {"t": "y floordiv 2"}, {"out": "y"}, [(3,)], (6,)),
    ("b", {"a": "b, :, :"}, {"out": "b, :, :"}, [(2, 3, 4)], (2, 3, 4)),
    ("b, i whole, j = i whole", {"a": "b, i, j"}, {"out": "b"}, [(2, 3, 3)], (2, 3, 3)),
]


@pytest.mark.parametrize(("space", "reads", "writes", "shapes", "sizes"), SIZES)
def test_shapes_decide_the_sizes_of_dimensions(
    space: str,
    reads: Mapping[str, str],
    writes: Mapping[str, str],
    shapes: Sequence[tuple[int, ...]],
    sizes: tuple[int, ...],
):
    known = signature(space, reads, writes)
    assert known.space(shapes, ()).sizes == sizes


def test_a_parameter_decides_the_size_of_the_dimension_that_it_names():
    known = signature("r, k = k whole", {"x": "r, :"}, {"out": "r, k"}, {"k": 2})
    assert known.space([(4, 9)], (3,)).results[0].shape == (4, 3)


@pytest.mark.parametrize(
    ("space", "reads", "writes", "shapes", "message"),
    [
        ("n", {"x": "n", "y": "n"}, {"out": "n"}, [(5,), (4,)], "axis 0 of y has 4 elements"),
        ("n", {"x": "n"}, {"out": "n"}, [(5, 1)], "x has 2 axes; some.codelet reads 1"),
        ("y, d = 3 whole", {"t": "y + d"}, {"out": "y"}, [(1,)], "for its first cell"),
        ("n", {"x": "n, :"}, {"out": "n"}, [(5, 0)], "x1 is 0; need 1 or more"),
        ("n, k whole", {"x": "n"}, {"out": "n, k"}, [(5,)], "nothing decides the size of k"),
        ("b, i whole, j = i whole", {"a": "b, i, j"}, {"out": "b"}, [(2, 3, 4)], "j is 4; need 3"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    space: str,
    reads: Mapping[str, str],
    writes: Mapping[str, str],
    shapes: Sequence[tuple[int, ...]],
    message: str,
):
    known = signature(space, reads, writes)
    with pytest.raises(VerifyException, match=message):
        known.space(shapes, ())


@pytest.mark.parametrize(
    ("types", "operands", "results"),
    [
        ({}, [f16, f16], [f16]),
        ({"out": "i32"}, [f32, f32], [i32]),
        ({"x": "i1", "out": "y"}, [i1, f16], [f16]),
        ({"x": "numbers", "y": "i32"}, [f32, i32], [f32]),
    ],
)
def test_results_have_the_types_that_the_signature_says(
    types: Mapping[str, str], operands: Sequence[Attribute], results: Sequence[Attribute]
):
    known = signature("n", {"x": "n", "y": "n"}, {"out": "n"}, types=types)
    assert known.result_elements(operands) == tuple(results)


@pytest.mark.parametrize(
    ("types", "operands", "message"),
    [
        ({}, [f16, f32], "y has elements f32; need f16, as reads before it"),
        ({}, [f32, i32], "y has elements i32; need floats"),
        ({"y": "integers"}, [f32, i1], "y has elements i1; need integers"),
        ({"y": "i32"}, [f32, f32], "y has elements f32; need i32"),
    ],
)
def test_operands_of_other_types_are_refused(
    types: Mapping[str, str], operands: Sequence[Attribute], message: str
):
    known = signature("n", {"x": "n", "y": "n"}, {"out": "n"}, types=types)
    with pytest.raises(VerifyException, match=message):
        known.result_elements(operands)


def test_a_cell_reads_whole_dimensions_in_the_order_of_the_map():
    known = signature("b, i whole, j whole", {"a": "j, b, i"}, {"out": "b, i"})
    assert known.whole_of(known.reads["a"]) == (2, 1)
    assert known.cell_dims == (0,)
