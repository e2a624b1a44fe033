import pytest

from abele.dialects.along import Along
from abele.dialects.structured import Body, Stage, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space, identity_map


def test_a_body_knows_how_many_operands_its_chain_adds():
    body = Body("mul", "sum", (), (Stage("add"), Stage("relu"), Stage("sub", at=1)))
    dims, access = (Dim("x", 3),), identity_map((0,), (3,))
    structure = Structure(Space(dims, (access,) * 4, (access,)), body)
    assert (structure.own_operands, structure.arity) == (2, 4)


def test_the_index_of_a_relation_is_an_operand_before_those_of_the_chain():
    rows, indices = (Dim("j", 3), Dim("row", 8, "reduction")), identity_map((0,), (3,))
    table, relation = identity_map((1,), (8,)), Relation(AxisMap(8, ((1, 1),)), 1)
    body = Body("identity", "pick", then=(Stage("add"),))
    space = Space(rows, (table, indices, indices), (indices,), (relation,))
    structure = Structure(space, body)
    assert (structure.own_operands, structure.arity) == (2, 3)
    assert structure.unchained.space.operands == (table, indices)


def test_without_its_chain_a_structure_has_its_own_operands_only():
    dims, access = (Dim("x", 3),), identity_map((0,), (3,))
    plain = Structure(Space(dims, (access,), (access,)), Body("exp"))
    chain = Structure(Space(dims, (access,) * 2, (access,)), Body("exp", then=(Stage("add"),)))
    assert chain.unchained == plain
    assert plain.unchained is plain


IN_PLACE = {
    "each its own element": ([("x", 4, "parallel")], [0], Body("exp"), True),
    "partials, merged into the first": (
        [("x", 4, "parallel"), ("k", 3, "reduction")],
        [1, 0],
        Body("identity", "sum"),
        True,
    ),
    "partials that lie behind each other element by element": (
        [("x", 4, "parallel"), ("k", 3, "reduction")],
        [0, 1],
        Body("identity", "sum"),
        False,
    ),
    "one element merged several times": (
        [("x", 4, "parallel"), ("k", 3, "reduction")],
        [0],
        Body("identity", "sum"),
        False,
    ),
    "partials of which each tile has all dimensions but one": (
        [("x", 4, "parallel"), ("k", 3, "reduction"), ("l", 2, "reduction")],
        [1, 0],
        Body("identity", "max"),
        False,
    ),
    "elements in order": ([("x", 4, "whole")], [0], Body("identity", along=Along("sort")), True),
    "where elements in order were": (
        [("x", 4, "whole")],
        [0],
        Body("identity", along=Along("sort_indices")),
        False,
    ),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_result_may_overwrite_elements_that_only_its_own_point_reads(name: str):
    dims, axes, body, may = IN_PLACE[name]
    sizes = [size for _, size, _ in dims]
    space = Space(
        tuple(Dim(*each) for each in dims),
        (identity_map(tuple(axes), tuple(sizes[d] for d in axes)),),
        (identity_map((0,), (4,)),),
    )
    assert Structure(space, body).reads_in_place(0) == may


def test_no_result_may_overwrite_elements_that_another_point_reads():
    dims, access = (Dim("x", 4),), identity_map((0,), (4,))
    turned = AccessMap((AxisMap(4, ((0, -1),), 3),))
    space = Space(dims, (access, turned, access, turned), (access,))
    found = Structure(space, Body("add", then=(Stage("mul"), Stage("add"))))
    assert [found.reads_in_place(i) for i in range(4)] == [True, False, True, False]


def test_a_sum_of_products_is_written_over_no_operand_of_its_own_or_its_chain():
    dims, access = (Dim("x", 4), Dim("k", 3, "reduction")), identity_map((0,), (4,))
    matrix = identity_map((1, 0), (3, 4))
    space = Space(dims, (matrix, matrix, access), (access,))
    found = Structure(space, Body("mul", "sum", then=(Stage("add"),)))
    assert not any(found.reads_in_place(i) for i in range(3))
    space = Space(dims, (matrix, access), (access,))
    found = Structure(space, Body("identity", "sum", then=(Stage("add"),)))
    assert all(found.reads_in_place(i) for i in range(2))
