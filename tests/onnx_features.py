"""A model with one of everything that a file of ONNX can hold."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

value = helper.make_tensor_value_info
array = numpy_helper.from_array


def _weights() -> list[onnx.TensorProto]:
    """Tensors of several element types, in several fields of their messages."""
    return [
        array(np.float32(3), "hi"),
        array(np.array(["a", "é"], object), "texts"),
        helper.make_tensor("b16", T.BFLOAT16, [2], [1.0, 2.0]),
        helper.make_tensor("i4", T.INT4, [3], [1, -2, 3]),
        helper.make_tensor("listed", T.FLOAT, [2], [1.0, float("nan")]),
        helper.make_tensor("c64", T.COMPLEX64, [1], [1 + 2j]),
        helper.make_tensor("u64", T.UINT64, [1], [2**63 + 1]),
        helper.make_tensor("f8", T.FLOAT8E4M3FN, [1], [1.0]),
        helper.make_tensor("truth", T.BOOL, [2], [True, False]),
        helper.make_tensor("empty", T.FLOAT, [0], []),
    ]


def _nodes() -> list[onnx.NodeProto]:
    called = helper.make_node("Twice", ["x"], ["g"], "n1", domain="my.domain", alpha=0.5)
    called.attribute[0].doc_string = "about alpha"
    unset = helper.make_node("Softmax", ["h"], ["soft"])
    unset.attribute.add(name="axis", type=onnx.AttributeProto.INT)
    then = helper.make_graph(
        [helper.make_node("Add", ["h", "h"], ["z1"])], "then", [], [value("z1", T.FLOAT, None)]
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["w2"], ["z2"])],
        "else",
        [],
        [value("z2", T.FLOAT, None)],
        [array(np.ones(3, np.float32), "w2")],
    )
    return [
        called,
        helper.make_node("FastGelu", ["g", ""], ["h"], domain="com.microsoft", k=[1, 2]),
        helper.make_node("Clip", ["h", "", "hi"], ["y"], 'a "name"/é\n', doc_string="why"),
        helper.make_node("Relu", ["h"], ["unused"], domain="ai.onnx"),
        unset,
        helper.make_node("If", ["c"], ["r"], "if", then_branch=then, else_branch=other),
    ]


def _function() -> onnx.FunctionProto:
    nodes = [helper.make_node("Elu", ["a"], ["t"]), helper.make_node("Mul", ["t", "t"], ["b"])]
    nodes[0].attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_function("my.domain", "Twice", ["a"], ["b"], nodes, opsets, ["alpha"])


def everything() -> onnx.ModelProto:
    """The model. It is no model that anything runs."""
    inputs = [value("x", T.FLOAT, ["batch size", None, 3]), value("c", T.BOOL, [])]
    inputs[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    tensor = helper.make_tensor_type_proto
    inputs += [
        helper.make_tensor_sequence_value_info("seq", T.FLOAT, ["N"]),
        onnx.ValueInfoProto(
            name="map", type=helper.make_map_type_proto(T.INT64, tensor(T.FLOAT, [1]))
        ),
        onnx.ValueInfoProto(
            name="opt", type=helper.make_optional_type_proto(tensor(T.STRING, ["K"]))
        ),
        onnx.ValueInfoProto(name="untyped"),
        # A weight that is an input too is the input's default.
        value("hi", T.FLOAT, []),
    ]
    graph = helper.make_graph(
        _nodes(),
        "graph é",
        inputs,
        [value("y", T.FLOAT, ["batch size", None, 3])],
        _weights(),
        doc_string="about the graph",
        value_info=[value("g", T.FLOAT, None), value("nowhere", T.FLOAT, [1])],
    )
    sparse = array(np.array([1.0, 2.0], np.float32), "sparse")
    graph.sparse_initializer.append(helper.make_sparse_tensor(sparse, array(np.array([1, 3])), [8]))
    note = graph.quantization_annotation.add(tensor_name="hi")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    opsets = [("", 17), ("my.domain", 3), ("com.microsoft", 1)]
    model = helper.make_model(
        graph,
        functions=[_function()],
        opset_imports=[helper.make_opsetid(*each) for each in opsets],
        producer_name="abele's tests",
    )
    helper.set_model_props(model, {"k": "v", "é": ""})
    training = model.training_info.add()
    step = [helper.make_node("Identity", ["hi"], ["hi2"])]
    training.algorithm.CopyFrom(helper.make_graph(step, "step", [], [value("hi2", T.FLOAT, [])]))
    training.update_binding.add(key="hi", value="hi2")
    return model
