import pytest

from abele.ir.text import parse_module, print_module
from abele.ir.upstream import VerifyException
from abele.ir.verify import verify

from ..strategies import context

A = "!partition.tensor<4x6xf32, [4 by 2, 6] (d0, d1) of [4, 6]>"
B = "!partition.tensor<4x6xf32, [6 by 3, 4] (d1, d0) of [4, 6]>"
HALO = "!partition.tensor<4x6xf32, [4, 5 by 2, 2] (d0, d1 + d2) of [4, 6]>"
SPACE = "<[i = 4, j = 6] (i, j) of [4, 6] -> (i, j) of [4, 6]>"
WHOLE = SPACE.replace("j = 6", "j = 6 whole")
UNMERGED = "<[i = 4, j = 6] (i, j) of [4, 6] -> (i) of [4]>"
DIAGONAL = "<[i = 4, j = 6] (i, j) of [4, 6] -> (i + j) of [9]>"
TWICE = "<[i = 4] (i, i) of [4, 6] -> (i, i) of [4, 4]>"
HALF = "#abele.space<[i = 2, j = 6] (i, j) of [4, 6] -> (i, j) of [4, 6]>"
SUMS = "<[i = 4, j = 6 reduction] (i, j) of [4, 6] -> (i) of [4]>"
CHAINED = SUMS.replace(" ->", ", (i, j) of [4, 6] ->")


def module(body: str) -> str:
    return (
        f"func.func private @none() -> {NOTHING}\n"
        f"func.func @main(%x: {A}, %h: {HALO}) {{ {body} func.return }}"
    )


NOTHING = "!partition.tensor<0x6xf32, [] (0) of [0]>"

VALID = [
    f"%0 = func.call @none() : () -> {NOTHING} %1 = partition.relayout(%0) : ({NOTHING}) -> "
    "!partition.tensor<0x6xf32, [6 by 2] (0, d0) of [0, 6]>",
    f"%0 = partition.compute(%x) space {SPACE} body <relu> plan <split [2, 1]> : ({A}) -> {A}",
    f"%0 = partition.compute(%x) space {WHOLE} body <identity along sum reverse exclusive then "
    f"relu> plan <split [2, 1]> : ({A}) -> {A}",
    f"%0 = partition.relayout(%x) : ({A}) -> {B}",
    f"%0 = partition.relayout(%x) : ({A}) -> {HALO}",
    f"%0 = partition.reshape %x : {A} -> {A.replace('4x6x', '24x')}",
]


@pytest.mark.parametrize("body", VALID)
def test_operations_print_parse_and_verify(body: str):
    made = context()
    first = parse_module(module(body), made)
    verify(first)
    text = print_module(first)
    assert print_module(parse_module(text, made)) == text


def compute(
    space: str, plan: str, operand: str = A, result: str = A, body: str = "identity sum"
) -> str:
    name = "%h" if operand == HALO else "%x"
    return (
        f"%0 = partition.compute({name}) space {space} body <{body}> plan <{plan}> : "
        f"({operand}) -> {result}"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (compute(SPACE, "split [1, 2]"), "operand 0: layout .* the split needs"),
        (
            compute(SPACE, "split [9, 1]"),
            r"parallel dimension i: 9 parts of 4 elements; need 1\.\.4",
        ),
        (compute(SUMS, "split [2, 3]"), "reduction dimension j: 3 parts"),
        (compute(SPACE, "split [2]"), "split of 1 dimensions; the space has 2"),
        (compute(SPACE, "split [2, 1] order [0, 0]"), "order .0, 0. does not name dimensions"),
        (compute(SPACE, "split [2, 1] workers [6]"), "workers of 1 dimensions"),
        (compute(UNMERGED, "split [2, 1]"), "parallel dimension j: nothing merges its 6 points"),
        (compute(SUMS, "split [2, 1]", body="relu"), "reduction dimension j: nothing merges"),
        (
            compute(SPACE.replace("[i =", "[z = 0, i ="), "split [1, 2, 1]", body="relu"),
            "parallel dimension z: nothing merges its 0 points",
        ),
        (compute(DIAGONAL, "split [1, 1]"), "result axis 0 of 9 elements: need one dimension"),
        (compute(TWICE, "split [1]"), "two axes of the result are one dimension"),
        (
            compute(SPACE, "split [2, 1]").replace("identity sum", "foo"),
            "scalar function foo; need",
        ),
        (
            compute(SPACE, "split [2, 1]").replace("identity sum", "add"),
            "add of 1 operands and 0 parameters; need 2 and 0",
        ),
        (
            compute(SPACE, "split [2, 1]").replace("identity sum", "relu then sub at 1, exp"),
            "relu then sub at 1, exp of 1 operands and 0 parameters; need 2 and 0",
        ),
        (
            f"%0 = partition.compute(%x, %x) space {CHAINED} body <identity sum then add> "
            f"plan <split [2, 1]> : ({A}, {A}) -> {A}",
            "operand 1, of the chain, depends on j, which is merged",
        ),
        (compute(WHOLE, "split [2, 2]", body="identity along sum"), "whole dimension j: 2 parts"),
        (
            compute(WHOLE, "split [2, 1] workers [1, 2]", body="identity along sum"),
            "whole dimension j: 2 workers; need 1",
        ),
        (
            compute(SPACE, "split [2, 1]", body="identity along sort"),
            "sort along a dimension: 0 whole dimensions",
        ),
        (
            compute(WHOLE, "split [2, 1]", body="relu along max reverse"),
            "max along a dimension of relu; need identity",
        ),
        (
            compute(WHOLE, "split [2, 1]", body="identity along sort_indices then relu"),
            "a chain after sort_indices along a dimension",
        ),
        (f"%0 = partition.relayout(%h) : ({HALO}) -> {A}", "blocks overlap"),
        (f"%0 = partition.reshape %x : {A} -> {B}", "a reshape keeps the layout"),
        (
            f"%0 = partition.relayout(%x) moves [#abele.space<[i = 2, j = 6] (i, j) of [4, 6] -> "
            f"(i, j) of [4, 6]>] : ({A}) -> {A}",
            "moves write 12 of 24 elements",
        ),
        (
            f"%0 = partition.relayout(%x, %x) moves [{HALF}, {HALF}] : ({A}, {A}) -> {A}",
            "moves 0 and 1 write the same elements",
        ),
        (
            f"%0 = partition.relayout(%x) moves [#abele.space<[i = 24] (i) of [24] -> "
            f"(i) of [24]>, #abele.space<[i = 24] (i) of [24] -> (i) of [24]>] : ({A}) -> {A}",
            "2 moves for 1 sources",
        ),
    ],
)
def test_operations_that_do_not_fit_together_are_refused(body: str, message: str):
    broken = parse_module(module(body), context())
    with pytest.raises(VerifyException, match=message):
        verify(broken)


def test_a_chain_needs_floats():
    text = module(compute(SPACE, "split [2, 1]", body="identity then relu"))
    broken = parse_module(text.replace("f32", "i32"), context())
    with pytest.raises(VerifyException, match="chain relu on elements i32; need floats"):
        verify(broken)
