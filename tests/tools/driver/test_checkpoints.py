"""A checkpoint returns the states that were written, and notices any damage."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from abele.ir.errors import InputError
from abele.tools.driver.checkpoints import (
    DIGEST,
    Checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from abele.tools.importers.safetensors import DTYPES, LENGTH_BYTES, METADATA

STATES = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "scale": np.array(0.5, ml_dtypes.bfloat16),
    "none": np.zeros((0, 4), np.int8),
    "counter": np.array([7, 9], np.int64),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, Checkpoint(3, 11, STATES))
    return path


def parts_of(file: Path) -> tuple[dict[str, dict[str, str]], bytes]:
    """The header and the elements of a file."""
    data = file.read_bytes()
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    return json.loads(data[LENGTH_BYTES:end]), data[end:]


def write_parts(file: Path, header: object, elements: bytes) -> None:
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(LENGTH_BYTES, "little") + text + elements)


def test_states_of_all_shapes_and_types_are_read_as_they_were_written(file: Path, tmp_path: Path):
    found = read_checkpoint(file)
    assert (found.step, found.seed) == (3, 11)
    assert found.states.keys() == STATES.keys()
    for name, array in STATES.items():
        assert found.states[name].dtype == array.dtype
        np.testing.assert_array_equal(found.states[name], array)
    each = {name: np.ones(3, dtype) for name, dtype in DTYPES.items()}
    write_checkpoint(tmp_path / "all.safetensors", Checkpoint(0, 0, each))
    read = read_checkpoint(tmp_path / "all.safetensors").states
    assert {name: array.dtype for name, array in read.items()} == DTYPES


def test_any_flipped_bit_of_an_element_is_noticed(file: Path):
    header, elements = parts_of(file)
    for place in range(len(elements)):
        damaged = bytearray(elements)
        damaged[place] ^= 1 << place % 8
        write_parts(file, header, bytes(damaged))
        with pytest.raises(InputError, match="digest"):
            read_checkpoint(file)


@pytest.mark.parametrize("name", ["step", "seed"])
def test_a_changed_number_of_the_step_or_seed_is_noticed(file: Path, name: str):
    header, elements = parts_of(file)
    header[METADATA][name] = "4"
    write_parts(file, header, elements)
    with pytest.raises(InputError, match="digest"):
        read_checkpoint(file)


def test_exchanged_names_of_states_are_noticed(file: Path):
    header, elements = parts_of(file)
    header["weight"], header["counter"] = header["counter"], header["weight"]
    write_parts(file, header, elements)
    with pytest.raises(InputError, match="digest"):
        read_checkpoint(file)


def test_a_checkpoint_of_an_earlier_version_has_no_digest_and_is_read(file: Path):
    header, elements = parts_of(file)
    del header[METADATA][DIGEST]
    write_parts(file, header, elements)
    np.testing.assert_array_equal(read_checkpoint(file).states["counter"], [7, 9])
