from collections.abc import Sequence

import onnx
import pytest
from onnx import TensorProto, helper, parser

from abele.ir.context import AbeleContext
from abele.tools.importers import UnsupportedError, import_onnx, model_uses
from abele.tools.importers.uses import Use


def model(nodes: Sequence[onnx.NodeProto], size: int | str = 3) -> onnx.ModelProto:
    """A model of the input x and the output of the last node."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size])],
        [helper.make_empty_tensor_value_info(nodes[-1].output[0])],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def node(operator: str, operand: str, result: str, domain: str = "", **attributes):
    return helper.make_node(operator, [operand], [result], result, domain=domain, **attributes)


MANY = [
    node("Odd", "x", "a"),
    node("Strange", "a", "b", "own"),
    node("Relu", "b", "c"),
    node("Odd", "c", "d"),
]


def uses(proto: onnx.ModelProto, **options) -> dict[str, Use]:
    found, _ = model_uses(proto, AbeleContext(), **options)
    return {use.operator: use for use in found}


# What refuses a model


def test_all_unsupported_operators_are_named_at_once_with_counts():
    message = (
        r"2 operators are not supported: Odd \(2 nodes, the first is 'a'\), Strange of domain own "
        r"\(node 'b'\); --list-ops shows all operators; --load a .py with @onnx_operator to add one"
    )
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(model(MANY), AbeleContext())


def test_a_single_unsupported_operator_keeps_its_own_message():
    with pytest.raises(UnsupportedError, match=r"node 'a': operator Odd of .*@onnx_operator"):
        import_onnx(model([MANY[0], node("Relu", "a", "b")]), AbeleContext())


def test_more_operators_than_a_message_shows_are_counted():
    nodes = [node(f"Odd{i}", f"v{i}" if i else "x", f"v{i + 1}") for i in range(20)]
    with pytest.raises(UnsupportedError, match=r"20 operators .* 'v12'\), and 8 others;"):
        import_onnx(model(nodes), AbeleContext())


# The list


def test_each_operator_says_where_its_meaning_comes_from():
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20, "own" : 1]>'
        "model (float[3] x) => (float[3] y) { a = own.Twice (x) b = Relu (a) c = Odd (b)"
        " y = Relu (c) }"
        '<domain: "own", opset_import: ["" : 20]> Twice (a) => (b) { b = Add (a, a) }'
    )
    found = uses(proto)
    assert {name: (use.how, len(use.nodes)) for name, use in found.items()} == {
        "own.Twice": ("a function of the model", 1),
        "Relu": ("abele", 2),
        "Odd": ("", 1),
        "Add": ("abele", 1),
    }
    assert {name for name, use in found.items() if use.supported != "yes"} == {"Odd"}


def test_a_form_that_is_not_supported_has_its_reason():
    nodes = [node("LpNormalization", "x", "a", p=3), node("LpNormalization", "x", "b")]
    use = uses(model(nodes))["LpNormalization"]
    assert use.supported == "1"
    assert dict(use.reasons) == {"p 3; need 1 or 2": 1}


def test_nodes_below_a_refused_one_are_checked_if_its_type_is_known():
    """Nothing is known of the result of an operator that ONNX does not have."""
    below = node("LpNormalization", "a", "b", p=3)
    refused = node("ImageDecoder", "x", "a")
    assert uses(model([node("Odd", "x", "a"), below]))["LpNormalization"].supported == "yes"
    typed = model([refused, below])
    typed.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 2]))
    assert uses(typed)["LpNormalization"].supported == "no"


def test_operators_of_graphs_in_nodes_are_listed():
    inner = helper.make_graph(
        [helper.make_node("Odd", ["x"], ["y"])],
        "body",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    )
    condition = node("Sign", "x", "c")
    found = uses(model([condition, node("If", "c", "d", then_branch=inner, else_branch=inner)]))
    assert found["Odd"].nodes == ["d/y", "d/y"]
    assert found["Odd"].supported == "no"


def test_a_model_with_unknown_sizes_is_checked_by_name():
    found, problem = model_uses(model(MANY, "N"), AbeleContext())
    assert [use.operator for use in found if use.reasons] == ["Odd", "own.Strange"]
    assert problem.endswith("or add --dim N=1")
    _, nothing = model_uses(model(MANY, "N"), AbeleContext(), {"N": 3})
    assert nothing == ""
