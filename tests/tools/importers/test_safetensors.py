"""Files of safetensors return what was written, and any contradiction in one is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from abele.ir.errors import InputError
from abele.tools.importers.safetensors import DTYPES, file_parts, read_tensor_file

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.zeros((0, 4), np.int8),
    "c": np.array(True),
    "d": np.array([7, 9], np.int64),
}
F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def written(path: Path, header: object, elements: bytes = bytes(8)) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + elements)
    return path


def test_tensors_of_all_types_and_texts_are_read_as_they_were_written(tmp_path: Path):
    each = {name: np.ones((2, 1), dtype) for name, dtype in DTYPES.items()}
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"".join(file_parts({"format": "pt"}, {**ARRAYS, **each})))
    found = read_tensor_file(path)
    assert found.metadata == {"format": "pt"}
    for name, array in {**ARRAYS, **each}.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"a": {**F32, "data_offsets": [0, 8]}, "b": F32}, "'b' overlaps tensor 'a'"),
        ({"a": {**F32, "data_offsets": [4, 12]}}, "'a' leaves a gap after the header"),
        ({"a": {**F32, "shape": [1], "data_offsets": [0, 4]}}, "8 bytes of elements; .* says 4"),
        ({"a": {**F32, "shape": [3]}}, r"8 bytes for F32\[3\]"),
        ({"a": {**F32, "shape": [-2]}}, "integers of at least 0"),
        ({"a": {**F32, "shape": [2.0]}}, "integers of at least 0"),
        ({"a": {**F32, "shape": [True, 2]}}, "integers of at least 0"),
        ({"a": {**F32, "shape": [1] * 70 + [2]}}, "71 axes"),
        ({"a": {**F32, "data_offsets": [8, 0]}}, "-8 bytes"),
        ({"a": {**F32, "dtype": "F4"}}, "elements 'F4'; need one of F64, F32"),
        ({"a": {**F32, "more": 1}}, "need data_offsets, dtype, shape"),
        ({"a": 3}, "need data_offsets, dtype, shape"),
        ({"a": F32, "__metadata__": {"n": 1}}, "something else than texts"),
        ({"a": F32, "__metadata__": []}, "something else than texts"),
        ([], "its header is no JSON object"),
        (b"[" * 100_000, "recursion"),
        (b'{"a": 1, "a": 2}', "'a' twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b"\xff\xfe", "codec"),
        (
            {"a": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}},
            "BOOL that is neither 0 nor 1",
        ),
    ],
)
def test_a_contradiction_is_refused_with_its_place(tmp_path: Path, header: object, message: str):
    elements = bytes([2] * 8)
    path = written(tmp_path / "w.safetensors", header, elements)
    with pytest.raises(InputError, match=message) as raised:
        read_tensor_file(path)
    assert str(raised.value).startswith(f"{path}: ")


def test_a_file_cut_anywhere_is_refused(tmp_path: Path):
    path = tmp_path / "w.safetensors"
    whole = b"".join(file_parts({}, ARRAYS))
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"w\.safetensors: "):
            read_tensor_file(path)


def test_a_header_longer_than_its_file_is_not_read(tmp_path: Path):
    path = tmp_path / "w.safetensors"
    path.write_bytes((1 << 62).to_bytes(8, "little") + b"{}")
    with pytest.raises(InputError, match="its header has 4,611,686,018,427,387,904 bytes"):
        read_tensor_file(path)
