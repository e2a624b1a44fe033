"""The names of files beside a model, read without onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from abele.tools.importers.onnx.external_files import ENTRY, FIELDS, MODEL, TENSOR, external_files

FOLDER = Path(__file__).parent


def tensor(name: str, file: str = "") -> TensorProto:
    made = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2])
    if not file:
        made.raw_data = b"location" * 1
        return made
    made.data_location = TensorProto.EXTERNAL
    for key, value in (("offset", "4"), ("location", file), ("length", "8")):
        made.external_data.add(key=key, value=value)
    return made


def graph(file: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(nodes, "g", [], [], [tensor(file, file), tensor("own")])


def everywhere() -> onnx.ModelProto:
    """A model with a file in each place that may name one."""
    inner = helper.make_node(
        "If", ["c"], ["y"], then_branch=graph("then"), else_branch=graph("élse")
    )
    constant = helper.make_node("Constant", [], ["k"], value=tensor("k", "constant"))
    lists = helper.make_node("L", [], [], domain="own")
    lists.attribute.append(helper.make_attribute("graphs", [graph("listed graph")]))
    lists.attribute.append(helper.make_attribute("tensors", [tensor("l", "listed"), tensor("m")]))
    sparse = onnx.SparseTensorProto(values=tensor("v", "values"), indices=tensor("i", "indices"))
    lists.attribute.append(helper.make_attribute("sparse", sparse))
    outer = graph("weights", inner, constant, lists)
    outer.sparse_initializer.add().CopyFrom(
        onnx.SparseTensorProto(values=tensor("s", "sparse values"))
    )
    model = helper.make_model(outer)
    function = helper.make_function("own", "F", [], [], [constant], [])
    function.node[0].attribute[0].t.CopyFrom(tensor("f", "function"))
    function.attribute_proto.append(helper.make_attribute("d", tensor("d", "default")))
    model.functions.append(function)
    model.training_info.add().algorithm.CopyFrom(graph("algorithm"))
    model.training_info[0].initialization.CopyFrom(graph("initialization"))
    return model


def by_onnx(model: onnx.ModelProto) -> list[str]:
    found: set[str] = set()
    waiting: list[Any] = [model]
    while waiting:
        each = waiting.pop()
        if isinstance(each, TensorProto):
            found.update(e.value for e in each.external_data if e.key == "location")
        for field, value in each.ListFields():
            if field.message_type is not None:
                waiting += [value] if hasattr(value, "ListFields") else list(value)
    return sorted(found)


def test_files_are_found_wherever_a_tensor_may_be():
    model = everywhere()
    found = external_files(model.SerializeToString())
    assert len(found) == 13
    assert list(found) == by_onnx(model)
    assert external_files(b"") == ()


def test_the_fields_are_those_that_lead_to_tensors():
    waiting, messages = [onnx.ModelProto.DESCRIPTOR], {}
    while waiting:
        message = waiting.pop()
        if message.name not in messages:
            inner = {f.number: f.message_type for f in message.fields if f.message_type}
            messages[message.name] = {number: each.name for number, each in inner.items()}
            waiting += inner.values()
    leading = {TENSOR}
    while more := {n for n, fields in messages.items() if leading & {*fields.values()}} - leading:
        leading |= more
    expected = {
        name: {number: each for number, each in messages[name].items() if each in leading}
        for name in leading - {TENSOR}
    }
    (external,) = (f for f in TensorProto.DESCRIPTOR.fields if f.name == "external_data")
    assert {**expected, TENSOR: {external.number: ENTRY}} == FIELDS
    assert MODEL in leading
    assert external.message_type.name == ENTRY


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.onnx")), ids=lambda path: path.name)
def test_models_of_files_name_what_onnx_finds(path: Path):
    data = path.read_bytes()
    assert list(external_files(data)) == by_onnx(onnx.load_model_from_string(data))


def test_a_damaged_model_is_refused_or_names_files():
    data, refused = everywhere().SerializeToString(), 0
    for end in range(0, len(data), 7):
        for cut in (data[:end], data[:end] + b"\xff" * 12 + data[end:], data[end:]):
            try:
                assert all(isinstance(each, str) for each in external_files(cut))
            except ValueError:
                refused += 1
    assert refused > len(data) // 7
