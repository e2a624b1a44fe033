"""Einsum computes what NumPy does, for every form of an equation."""

import numpy as np
import pytest
from onnx import helper

from abele.ir.errors import InputError
from abele.tools.onnx_backend import AbeleBackend


def einsum(equation: str, *operands: np.ndarray) -> np.ndarray:
    names = [f"x{i}" for i in range(len(operands))]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, operands, strict=True)
    ]
    kind = helper.np_dtype_to_tensor_dtype(operands[0].dtype)
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    result = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([node], "g", infos, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (found,) = AbeleBackend.run_model(model, list(operands))
    return found


def some(*shape: int) -> np.ndarray:
    size = int(np.prod(shape))
    return (np.arange(size, dtype=np.int32) * 7 % 11 - 5).reshape(shape).astype(np.float32)


FORMS = {
    "ij->ji": [(2, 3)],
    "ij": [(2, 3)],
    "ba": [(2, 3)],
    "ij->": [(2, 3)],
    "ii->i": [(4, 4)],
    "ii": [(4, 4)],
    "iji->ij": [(3, 2, 3)],
    "iii->i": [(3, 3, 3)],
    "...ii->...i": [(2, 3, 3)],
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "bij,bjk->kbi": [(2, 3, 4), (2, 4, 5)],
    "i,j->ij": [(2,), (3,)],
    "ij,ij->ij": [(2, 3), (2, 3)],
    "ij,ij->": [(2, 3), (2, 3)],
    "ijx,jy->i": [(2, 3, 4), (3, 5)],
    "...ij,...jk->...ik": [(5, 1, 2, 3), (4, 3, 2)],
    "...i,...i->...": [(4, 3), (3,)],
    "...,...": [(4, 3), (3,)],
    "i...j,jk->...ki": [(2, 5, 3), (3, 4)],
    "bnqd,bnkd->bnqk": [(2, 2, 3, 4), (2, 2, 5, 4)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)],
    "a,b,c->cab": [(2,), (3,), (2,)],
    ",ij->ij": [(), (2, 3)],
    "ij,ik,il->jkl": [(3, 2), (3, 2), (3, 2)],
}


@pytest.mark.parametrize("equation", FORMS)
def test_an_equation_means_what_it_means_in_numpy(equation: str):
    operands = [some(*shape) for shape in FORMS[equation]]
    need = np.einsum(equation, *operands)
    found = einsum(equation, *operands)
    assert found.shape == need.shape
    np.testing.assert_array_equal(found, need)


def test_a_diagonal_does_not_read_what_lies_beside_it():
    x = np.full((3, 3), np.nan, np.float32)
    np.fill_diagonal(x, [1, 2, 3])
    assert einsum("ii->i", x).tolist() == [1, 2, 3]


def test_integers_are_exact():
    a, b = np.full((2, 3), 2**30 + 1, np.int32), np.ones((3, 2), np.int32)
    assert einsum("ij,jk->ik", a, b).tolist() == np.einsum("ij,jk->ik", a, b).tolist()


WRONG = {
    "ij,jk->ik": ([(2, 3)], "has 2 terms; the node has 1 operands"),
    "ijk->i": ([(2, 3)], "has a term 'ijk' for an operand of rank 2"),
    "i->i": ([(2, 3)], "has a term 'i' for an operand of rank 2"),
    "ij->ik": ([(2, 3)], "has a result 'ik'; need letters of operands, each once"),
    "ij->ii": ([(2, 3)], "has a result 'ii'"),
    "ij,jk->i": ([(2, 3), (4, 5)], "gives 'j' the sizes 3 and 4"),
    "...j->j": ([(2, 3)], "need an ellipsis, which operands have"),
    "i1->i": ([(2, 3)], "has a term 'i1'; need letters"),
}


@pytest.mark.parametrize("equation", WRONG)
def test_a_wrong_equation_is_refused(equation: str):
    shapes, message = WRONG[equation]
    with pytest.raises(InputError) as caught:
        lenient(equation, shapes)
    assert message in str(caught.value)


def lenient(equation: str, shapes: list[tuple[int, ...]]) -> None:
    """Import without ONNX's own checks, which refuse some of these in other words."""
    from abele.ir.context import AbeleContext
    from abele.tools.importers.building import Known
    from abele.tools.importers.onnx.node import GraphScope, Node
    from abele.tools.importers.onnx.ops_einsum import EINSUMS

    graph = GraphScope(context=AbeleContext(), place="model", folder=None, opsets={"ai.onnx": 17})
    names = [f"x{i}" for i in range(len(shapes))]
    for name, shape in zip(names, shapes, strict=True):
        graph.values[name] = Known.of(name, some(*shape))
    proto = helper.make_node("Einsum", names, ["y"], name="n", equation=equation)
    EINSUMS["Einsum"](Node(proto, "n", graph))
