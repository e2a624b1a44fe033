"""The reader of .caffemodel reads what the package protobuf writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from abele.ir.support.errors import InputError
from abele.tools.importers.caffe.blobs import MOST_LOOSE, read_blobs

KIND = descriptor_pb2.FieldDescriptorProto

FIELDS = {
    "Shape": [("dim", 1, "INT64", True, "")],
    "Blob": [
        ("num", 1, "INT32", False, ""),
        ("channels", 2, "INT32", False, ""),
        ("height", 3, "INT32", False, ""),
        ("width", 4, "INT32", False, ""),
        ("data", 5, "FLOAT", True, ""),
        ("diff", 6, "FLOAT", True, ""),
        ("shape", 7, "MESSAGE", False, ".t.Shape"),
        ("double_data", 8, "DOUBLE", True, ""),
    ],
    "Layer": [
        ("name", 1, "STRING", False, ""),
        ("type", 2, "STRING", False, ""),
        ("phase", 10, "INT32", False, ""),
        ("blobs", 7, "MESSAGE", True, ".t.Blob"),
    ],
    "Net": [("name", 1, "STRING", False, ""), ("layer", 100, "MESSAGE", True, ".t.Layer")],
}
"""The fields of Caffe's messages that matter: name, number, type, whether repeated, message."""


def messages(packed: bool) -> Any:
    """The class of a network, from descriptors that are built here."""
    file = descriptor_pb2.FileDescriptorProto(name=f"t{packed}.proto", package="t", syntax="proto2")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated, other in fields:
            made = message.field.add(name=field, number=number, type_name=other or None)
            made.type = getattr(KIND, f"TYPE_{kind}")
            made.label = KIND.LABEL_REPEATED if repeated else KIND.LABEL_OPTIONAL
            if repeated and kind in ("FLOAT", "DOUBLE", "INT64"):
                made.options.packed = packed
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Net"))


FORMS = [(form, packed) for form in ("shape", "sizes", "no shape") for packed in (True, False)]


@pytest.mark.parametrize(("form", "packed"), [*FORMS, ("doubles", True)])
def test_blobs_are_what_protobuf_writes(tmp_path: Path, packed: bool, form: str):
    array = np.random.default_rng(0).standard_normal((2, 3, 1, 4)).astype(np.float32)
    net = messages(packed)(name="net")
    layer = net.layer.add(name="conv1/3x3", type="Convolution", phase=1)
    for _ in range(2):
        blob = layer.blobs.add()
        if form == "doubles":
            blob.double_data.extend(array.ravel().tolist())
        else:
            blob.data.extend(array.ravel().tolist())
        blob.diff.extend([1.0, 2.0])
        if form == "sizes":
            blob.num, blob.channels, blob.height, blob.width = array.shape
        elif form != "no shape":
            blob.shape.dim.extend(array.shape)
    net.layer.add(name="relu", type="ReLU")
    path = tmp_path / "net.caffemodel"
    path.write_bytes(net.SerializeToString())
    (found,) = read_blobs(path).values()
    assert (found.name, found.type, len(found.blobs)) == ("conv1/3x3", "Convolution", 2)
    shape = array.shape if form != "no shape" else (24,)
    for each in found.blobs:
        np.testing.assert_array_equal(each, array.reshape(shape))


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([2, 3, 5], r"layer 'a', blob 0: shape \[2, 3, 5\] of 6 elements"),
        ([-2, -3], r"shape \[-2, -3\]"),
        ([1] * 33, "of 6 elements"),
        ([2**40, 2**40, 0], "of 6 elements"),
    ],
)
def test_a_shape_that_its_elements_do_not_have_is_refused(
    tmp_path: Path, dims: list[int], message: str
):
    net = messages(True)()
    blob = net.layer.add(name="a").blobs.add(data=[0.0] * 6)
    blob.shape.dim.extend(dims)
    path = tmp_path / "net.caffemodel"
    path.write_bytes(net.SerializeToString())
    with pytest.raises(InputError, match=message):
        read_blobs(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no layer has weights"),
        (b"\xa2\x06\x7fab", "field 100 has 127 bytes; 2 are left"),
        (b"\x0b", "type 3; no message here has groups"),
        (b"\x80" * 12, "a number without an end"),
        (b"\x00\x01", "field 0"),
    ],
)
def test_bytes_that_are_no_network_are_refused(tmp_path: Path, data: bytes, message: str):
    path = tmp_path / "net.caffemodel"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_blobs(path)


def test_elements_that_are_not_packed_are_counted_over_all_blobs(tmp_path: Path):
    path = tmp_path / "net.caffemodel"
    net = messages(False)()
    layer = net.layer.add(name="a")
    for _ in range(MOST_LOOSE // 2000):
        layer.blobs.add(data=[0.0] * 2000)
    path.write_bytes(net.SerializeToString())
    assert len(read_blobs(path)["a"].blobs) == MOST_LOOSE // 2000
    net.layer.add(name="b").blobs.add(data=[0.0] * 2000)
    path.write_bytes(net.SerializeToString())
    with pytest.raises(InputError, match=r"layer 'b', blob 0: more than 65,536 .* not packed"):
        read_blobs(path)
