"""Large weights are read into arrays; otherwise a file is what protobuf makes of it."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import ml_dtypes
import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.importers.onnx import fields, model_file
from abele.tools.importers.onnx.model_file import read_model_file
from abele.tools.importers.onnx.tensors import COPIED_BYTES
from abele.tools.importers.onnx.valid import CHECKED_BYTES

FEW_BYTES = 8
"""What counts as large in these tests, so that models can be small."""


@pytest.fixture(autouse=True)
def small_weights_are_large(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_file, "LARGE_BYTES", FEW_BYTES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 1.5


def model(*weights: TensorProto) -> onnx.ModelProto:
    """A model of these weights, the first of which is its output."""
    graph = helper.make_graph(
        [helper.make_node("Identity", [weights[0].name], ["y"], "node")],
        "graph",
        [],
        [helper.make_empty_tensor_value_info("y")],
        weights,
        doc_string="what it is for",
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def written(folder: Path, data: bytes | onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
    return path


def as_protobuf_reads(path: Path) -> onnx.ModelProto | None:
    """None if protobuf refuses the file."""
    try:
        return onnx.ModelProto.FromString(path.read_bytes())
    except DecodeError:
        return None


def put_together(path: Path) -> onnx.ModelProto | None:
    """The message with the bytes of all weights in it again; None for a file that is refused."""
    try:
        found, weights = read_model_file(path)
    except InputError as error:
        assert str(error) == f"{path}: damaged, or not an ONNX model"
        return None
    for index, array in weights.items():
        tensor = found.graph.initializer[index]
        assert not tensor.HasField("raw_data")
        tensor.raw_data = array.tobytes()
    return found


def places(path: Path) -> list[int]:
    """The places of the weights that the message does not hold."""
    return [*read_model_file(path).weights]


# What is left out of the message

SOUND = {
    "float32": numpy_helper.from_array(floats(2, 3), "w"),
    "int64": numpy_helper.from_array(np.array([1, -1, 7]), "w"),
    "bool": numpy_helper.from_array(np.arange(9) % 2 == 0, "w"),
    "bfloat16": numpy_helper.from_array(floats(3, 2).astype(ml_dtypes.bfloat16), "w"),
}


@pytest.mark.parametrize("tensor", SOUND.values(), ids=SOUND)
def test_a_large_weight_is_an_array_with_the_bits_of_the_file(tmp_path: Path, tensor: TensorProto):
    path = written(tmp_path, model(tensor))
    array, wanted = read_model_file(path).weights[0], numpy_helper.to_array(tensor)
    assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape)
    assert array.tobytes() == wanted.tobytes()
    assert not array.flags.writeable
    assert put_together(path) == as_protobuf_reads(path)


def tensor(**fields: object) -> TensorProto:
    """A float tensor of three elements, but for these fields."""
    given = {"name": "w", "data_type": TensorProto.FLOAT, "dims": [3]} | fields
    return TensorProto(**given)


UNUSUAL = {
    "small": numpy_helper.from_array(floats(2), "w"),
    "without bytes": tensor(),
    "too few bytes": tensor(raw_data=b"12345678901"),
    "too many bytes": tensor(raw_data=b"1234567890123"),
    "a negative size": tensor(raw_data=b"123456789012", dims=[-3]),
    "too many elements for an array": tensor(raw_data=b"123456789012", dims=[1 << 40, 1 << 40]),
    "an unknown type": tensor(raw_data=b"123456789012", data_type=99),
    "text": tensor(raw_data=b"123456789012", data_type=TensorProto.STRING),
    "packed bits": tensor(raw_data=b"123456789012", data_type=TensorProto.INT4, dims=[24]),
    "a list": tensor(float_data=[1, 2, 3]),
    "bytes and a list": tensor(raw_data=b"123456789012", float_data=[1, 2, 3]),
    "in a file": tensor(raw_data=b"123456789012", data_location=TensorProto.EXTERNAL),
}


@pytest.mark.parametrize("kept", UNUSUAL.values(), ids=UNUSUAL)
def test_the_message_keeps_what_is_small_or_no_plain_array(tmp_path: Path, kept: TensorProto):
    plain = numpy_helper.from_array(floats(3), "plain")
    path = written(tmp_path, model(kept, plain))
    assert places(path) == [1]
    assert put_together(path) == as_protobuf_reads(path)


def test_the_checker_gets_no_weight_whose_bytes_are_left_out():
    assert COPIED_BYTES >= CHECKED_BYTES


def test_weights_of_one_name_stay_apart(tmp_path: Path):
    small, large = (numpy_helper.from_array(floats(n), "w") for n in (1, 4))
    path = written(tmp_path, model(small, large, large, small))
    assert places(path) == [1, 2]
    assert put_together(path) == as_protobuf_reads(path)


def test_a_tensor_in_a_node_stays_in_the_message(tmp_path: Path):
    proto = model(numpy_helper.from_array(floats(3), "w"))
    proto.graph.node.append(
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(floats(9)))
    )
    path = written(tmp_path, proto)
    assert places(path) == [0]
    assert put_together(path) == as_protobuf_reads(path)


# Layouts of the same message

GRAPH, WEIGHT, RAW_DATA = b"\x3a", b"\x2a", b"\x4a"
"""The fields of messages, as they begin in a file."""


def field(tag: bytes, data: bytes) -> bytes:
    assert len(data) < 128
    return tag + bytes([len(data)]) + data


PARTS = field(RAW_DATA, b"123456789012") + tensor().SerializeToString()
LAYOUTS = {
    "bytes before the shape": (field(GRAPH, field(WEIGHT, PARTS)), [0]),
    "bytes twice": (field(GRAPH, field(WEIGHT, PARTS + field(RAW_DATA, b"abcdefghijkl"))), []),
    "two graphs": (2 * field(GRAPH, 2 * field(WEIGHT, PARTS)), [0, 1, 2, 3]),
    "unknown fields": (
        field(b"\xf2\x7f", b"?")
        + field(GRAPH, b"\xf8\x7f\x01" + field(WEIGHT, PARTS + b"\xfd\x7f1234\xf9\x7f12345678")),
        [0],
    ),
    "long numbers": (
        b"\xba\x80\x00" + bytes([3 + len(PARTS)]) + b"\xaa\x00" + bytes([len(PARTS)]) + PARTS,
        [0],
    ),
    "a group": (b"\xf3\x7f\xf4\x7f" + field(GRAPH, field(WEIGHT, PARTS)), []),
    "a weight that is a number": (field(GRAPH, b"\x28\x05" + field(WEIGHT, PARTS)), [0]),
}


@pytest.mark.parametrize(("data", "wanted"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_message_is_read_in_whatever_layout(tmp_path: Path, data: bytes, wanted: list[int]):
    path = written(tmp_path, data)
    assert as_protobuf_reads(path) is not None
    assert places(path) == wanted
    assert put_together(path) == as_protobuf_reads(path)


def test_a_file_of_many_fields_is_parsed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path, model(*SOUND.values()))
    monkeypatch.setattr(fields, "MOST_FIELDS", 20)
    assert places(path) == []
    assert put_together(path) == as_protobuf_reads(path)


def test_a_model_of_another_batch_has_the_weights_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(model_file, "LARGE_BYTES", COPIED_BYTES)
    weight = floats(2, COPIED_BYTES)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(weight, "w")],
    )
    path = written(tmp_path, helper.make_model(graph, ir_version=10))
    assert places(path) == [0]
    module = import_onnx(path, AbeleContext(), batch=4)
    (state,) = (op for op in module.walk() if isinstance(op, nn.StateOp))
    assert (state.value.array == weight).all()


# Damage

DATA = model(*SOUND.values(), *UNUSUAL.values()).SerializeToString()


@given(st.integers(0, len(DATA)))
@settings(max_examples=50)
def test_a_truncated_file_is_what_protobuf_makes_of_it(folder: Path, length: int):
    path = written(folder, DATA[:length])
    assert put_together(path) == as_protobuf_reads(path)


@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), max_size=4))
@settings(max_examples=200)
def test_a_damaged_file_is_what_protobuf_makes_of_it(folder: Path, changes: list[tuple[int, int]]):
    data = bytearray(DATA)
    for position, value in changes:
        data[position] = value
    path = written(folder, bytes(data))
    assert put_together(path) == as_protobuf_reads(path)


@pytest.mark.parametrize("data", [GRAPH, GRAPH + b"\xff" * 11, GRAPH + b"\xff" * 9 + b"\x01"])
def test_a_length_beyond_the_file_is_refused(tmp_path: Path, data: bytes):
    with pytest.raises(InputError, match="damaged, or not an ONNX model"):
        read_model_file(written(tmp_path, data))


def test_a_file_that_is_cut_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data = model(SOUND["float32"]).SerializeToString()
    whole = os.stat(written(tmp_path, data))
    path = written(tmp_path, data[: data.index(floats(2, 3).tobytes()) + 4])
    monkeypatch.setattr(model_file.os, "fstat", lambda _: whole)
    with pytest.raises(InputError, match="damaged, or not an ONNX model"):
        read_model_file(path)


def test_a_pipe_is_read_whole(tmp_path: Path):
    data, pipe = model(SOUND["float32"]).SerializeToString(), tmp_path / "pipe.onnx"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    found, weights = read_model_file(pipe)
    writer.join()
    assert (found, weights) == (onnx.ModelProto.FromString(data), {})


# Memory

PEAK = """
import sys
from pathlib import Path
from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.tools.importers import import_onnx

def peak():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

import_onnx(sys.argv[1], AbeleContext())
before = peak()
module = import_onnx(sys.argv[2], AbeleContext())
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not report the peak")
def test_a_model_is_imported_in_the_memory_of_its_weights(tmp_path: Path):
    side = 2048
    weights = [numpy_helper.from_array(floats(side, side), f"w{i}") for i in range(4)]
    proto = model(*weights)
    nodes = [helper.make_node("Identity", [f"w{i}"], [f"y{i}"]) for i in range(4)]
    small = written(tmp_path, model(SOUND["float32"])).rename(tmp_path / "small.onnx")
    del proto.graph.node[:], proto.graph.output[:]
    proto.graph.node.extend(nodes)
    proto.graph.output.extend(helper.make_empty_tensor_value_info(f"y{i}") for i in range(4))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(small), str(written(tmp_path, proto))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 1.5 * 4 * 4 * side * side
