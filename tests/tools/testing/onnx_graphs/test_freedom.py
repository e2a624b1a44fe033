"""Each entry of the table of open behaviour has its source in the installed standard."""

import re

import numpy as np
import onnx
import pytest
from onnx import helper

from abele.tools.testing.onnx_graphs.freedom import FREEDOMS, Freedom, OpenNode, freedom


def texts(operator: str, before: int = 0) -> dict[int, str]:
    """All that each version of an operator says, by the version."""
    found = {}
    for each in onnx.defs.get_all_schemas_with_history():
        if (
            each.name == operator
            and each.domain == ""
            and not (before and each.since_version >= before)
        ):
            parts = [*each.attributes.values(), *each.inputs, *each.outputs]
            found[each.since_version] = "\n".join((each.doc, *(p.description for p in parts)))
    return found


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("`", ""))


@pytest.mark.parametrize("each", FREEDOMS, ids=lambda each: each.what)
def test_the_standard_says_so_or_is_silent(each: Freedom):
    assert bool(each.quote) != bool(each.silent)
    for operator in each.operators:
        said = texts(operator, each.before)
        assert said, operator
        if each.quote:
            assert any(plain(each.quote) in plain(text) for text in said.values()), operator
        else:
            talkative = [version for version, text in said.items() if re.search(each.silent, text)]
            assert talkative == [], operator


def open_node(operator: str, operands, results=(None,), opset=21, **attributes) -> OpenNode:
    names = [f"x{i}" for i in range(len(operands))]
    node = helper.make_node(operator, names, ["y"], **attributes)
    return OpenNode(node, opset, [np.asarray(a) for a in operands], list(results))


FLOATS = np.array([1.0, 2.0], np.float32)
NAN = np.array([1.0, np.nan], np.float32)


@pytest.mark.parametrize(
    ("node", "is_open"),
    [
        (open_node("Cast", [np.array([3e9])], [np.zeros(1, np.int32)]), True),
        (open_node("Cast", [np.array([3.0])], [np.zeros(1, np.int32)]), False),
        (open_node("Div", [np.array([1]), np.array([0])]), True),
        (open_node("Div", [np.array([1]), np.array([2])]), False),
        (open_node("Div", [FLOATS, np.array([0.0, 1.0], np.float32)]), True),
        (open_node("TopK", [FLOATS, np.array([1])], sorted=0), True),
        (open_node("TopK", [FLOATS, np.array([1])]), False),
        (open_node("TopK", [NAN, np.array([1])]), True),
        (open_node("Add", [NAN, NAN]), False),
        (open_node("Mul", [np.array([1 << 20], np.int32)] * 2, [np.zeros(1, np.int32)]), True),
        (open_node("Mul", [np.array([1 << 10], np.int32)] * 2, [np.zeros(1, np.int32)]), False),
        (open_node("ReduceMean", [np.zeros((0, 2), np.float32)]), True),
        (open_node("ReduceMean", [np.ones((1, 2), np.float32)]), False),
        (open_node("ScatterND", [FLOATS, np.array([[0], [0]]), FLOATS]), True),
        (open_node("ScatterND", [FLOATS, np.array([[0], [1]]), FLOATS]), False),
        (open_node("BitShift", [np.array([1], np.uint8), np.array([8], np.uint8)]), True),
        (open_node("BitShift", [np.array([1], np.uint8)] * 2), False),
        (open_node("Exp", [np.array([20.0], np.float16)], [np.array([np.inf], np.float16)]), True),
    ],
    ids=lambda each: each.node.op_type if isinstance(each, OpenNode) else str(each),
)
def test_a_node_is_open_by_its_values(node: OpenNode, is_open: bool):
    assert bool(freedom(node)) == is_open
