from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.provenance import file_names, line_of, origin, place
from abele.ir.support.errors import InputError
from abele.tools.importers.onnx.origins import MOST_SCOPES, STACK, node_origins, source_texts
from abele.tools.importers.onnx.reader import import_onnx

EXPORTED = Path(__file__).parent / "exported"
SCOPES = "pkg.torch.onnx.name_scopes"
NAMESPACE = "namespace"
CALL = 'File "/home/me/net.py", line 7, in forward\n    return x.relu()\n'


def exported(name: str) -> onnx.ModelProto:
    return onnx.load(EXPORTED / f"{name}.onnx")


def node(name: str = "", operator: str = "Relu", **properties: str | bytes) -> onnx.NodeProto:
    made = helper.make_node(operator, ["x"], ["y"], name=name)
    for key, text in properties.items():
        made.metadata_props.add(key=key)
        set_text(made.metadata_props[-1], text)
    return made


def set_text(entry: onnx.StringStringEntryProto, text: str | bytes) -> None:
    if isinstance(text, str):
        entry.value = text
    else:
        # Python refuses such a text, but files have it.
        size, rest = len(text), b""
        while size > 127:
            rest, size = rest + bytes([size & 127 | 128]), size >> 7
        entry.MergeFromString(b"\x12" + rest + bytes([size]) + text)


def model(*nodes: onnx.NodeProto, producer: str = "pytorch") -> onnx.ModelProto:
    made: list[onnx.NodeProto] = []
    for index, each in enumerate(nodes):
        each = onnx.NodeProto.FromString(each.SerializeToString())
        each.input[0], each.output[0] = f"v{index}", f"v{index + 1}"
        made.append(each)
    x, y = (helper.make_tensor_value_info(f"v{k}", TensorProto.FLOAT, [2]) for k in (0, len(nodes)))
    graph = helper.make_graph(made, "g", [x], [y])
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, producer_name=producer, opset_imports=opsets, ir_version=9)


def names(*nodes: onnx.NodeProto, producer: str = "pytorch") -> Sequence[str]:
    return [each.name for each in node_origins(model(*nodes, producer=producer))]


def test_nodes_of_pytorch_are_called_after_their_modules():
    found = {each.in_file: each for each in node_origins(exported("dynamo"))}
    assert found["node_MatMul_6"].name == "blocks.0.attn.qkv.MatMul"
    assert found["node_linear"].name == "blocks.0.attn.qkv.Add"
    assert found["node_gelu_1"].name == "blocks.1.mlp.1"
    assert found["node_layer_norm_1"].name == "blocks.0.norm.LayerNormalization_1"
    assert found["node_linear_9"].name == "heads.odd_key"
    assert found["node_relu"].name == "Relu"
    assert str(found["node_MatMul_6"].line) == "export.py:29"
    assert not any(each.name.startswith("node_") for each in found.values())


def test_both_exporters_give_most_nodes_the_same_names():
    new = {each.name for each in node_origins(exported("dynamo"))}
    old = {each.name for each in node_origins(exported("torchscript"))}
    shared = {"patch", "blocks.0.attn.qkv.MatMul", "blocks.1.mlp.1", "blocks.1.Add_1", "Relu"}
    assert shared <= new & old
    assert len(new & old) > 0.8 * len(new)


def test_the_exporters_texts_of_lines_are_known():
    texts = source_texts(exported("dynamo"))
    assert texts["export.py:29"].startswith("q, k, v = self.qkv(x).view(")
    assert source_texts(exported("torchscript")) == {}


def test_a_location_holds_the_name_the_name_in_the_file_and_the_line():
    module = import_onnx(exported("dynamo"), AbeleContext())
    product = next(op for op in module.walk() if origin(op) == "blocks.0.attn.qkv.MatMul")
    assert file_names(product) == ("node_MatMul_6",)
    assert line_of(product) == "export.py:29"
    assert place(product) == "blocks.0.attn.qkv.MatMul (export.py:29)"
    inner = [op for op in module.walk() if "blocks.0.norm.LayerNormalization/" in str(origin(op))]
    assert inner
    assert all(line_of(op) == "export.py:44" for op in inner)


@pytest.mark.parametrize(
    ("scopes", "name"),
    [
        ("['', 'a', 'a.b', 'relu']", "a.b"),
        ("['', \"a's\", 'relu']", "a_s"),
        ("['', 'relu']", "Relu"),
        ("['relu']", "Relu"),
        ("['', 'a', '', 'relu']", "a"),
        ("[]", "own"),
        ("", "own"),
        ("__import__('os').system('true')", "own"),
        ("['', 'a', 'relu'", "own"),
        ("[" * 5000, "own"),
        ("['', 'a\\x00', 'relu']", "own"),
        ("['', '" + "a" * MOST_SCOPES + "', 'relu']", "own"),
        ("['', '" + "a" * 201 + "', 'relu']", "own"),
        (b"['', '\xff', 'relu']", "own"),
    ],
)
def test_a_list_of_scopes_names_the_innermost_module(scopes: str | bytes, name: str):
    assert names(node("own", **{SCOPES: scopes})) == [name]


def test_the_namespace_counts_where_there_is_no_list():
    text = ": net.Net/blocks.0: net.Block/blocks.0.act: torch.nn.ReLU/relu: aten.relu.default"
    assert names(node("own", **{NAMESPACE: text})) == ["blocks.0.act"]
    both = {NAMESPACE: text, SCOPES: "['', 'other', 'relu']"}
    assert names(node("own", **both)) == ["other"]
    assert names(node("own", **{NAMESPACE: "no scopes"})) == ["own"]


def test_paths_of_torchscript_become_those_of_modules():
    given = ["/layer1/layer1.0/conv1/Relu", "/layer1/layer1.0/Relu", "/head/Relu", "Relu_7", "/"]
    expected = ["layer1.0.conv1", "layer1.0.Relu", "head", "Relu_7", "/"]
    assert names(*map(node, given)) == expected
    assert names(*map(node, given), producer="tf2onnx") == given


def test_nodes_without_metadata_keep_their_names():
    every = node_origins(model(node("conv1"), node(""), node("conv1"), producer="keras"))
    assert [each.name for each in every] == ["conv1", "v2", "conv1_1"]
    assert [each.source for each in every] == [None] * 3


def test_names_stay_unique():
    scopes = {SCOPES: "['', 'act', 'relu']"}
    assert names(node("act"), node("b", **scopes), node("c", **scopes)) == [
        "act",
        "act.Relu",
        "act.Relu_1",
    ]
    assert names(node("act"), node("b", **scopes)) == ["act", "act_1"]


def test_an_error_shows_the_module_the_line_and_the_name_in_the_file():
    scopes = {SCOPES: "['', 'act', 'relu']", STACK: CALL}
    made = model(node("node_7", **scopes))
    made.graph.node[0].input.append("nowhere")
    with pytest.raises(InputError, match=r"node 'act' \(Relu, net\.py:7, 'node_7' in the file\)"):
        import_onnx(made, AbeleContext())
    unknown = model(node("node_7", "Rellu", **scopes))
    with pytest.raises(InputError, match=r"node 'act' \(net\.py:7, 'node_7' in the file\): oper"):
        import_onnx(unknown, AbeleContext())


def test_nodes_of_a_function_body_have_the_line_of_its_call():
    made = model(node("node_7", "Mish", **{SCOPES: "['', 'act', 'mish']", STACK: CALL}))
    module = import_onnx(made, AbeleContext())
    ops = [op for op in module.walk() if isinstance(op, nn.PureTensorOp)]
    assert len(ops) > 1
    for op in ops:
        assert line_of(op) == "net.py:7"
        assert str(origin(op)).partition("/")[0] == "act"
        assert file_names(op)[0].partition("/")[0] == "node_7"


def test_megabytes_of_properties_are_ignored():
    long = "x" * 1_000_000
    made = node("own", **{SCOPES: f"['', '{long}', 'relu']", NAMESPACE: long, STACK: long})
    found = node_origins(model(made))[0]
    assert (found.name, found.line) == ("own", None)
