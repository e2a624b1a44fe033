"""Inputs of programs (.npz): damaged files, and arrays with wrong shapes, dtypes and names."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ....ir.support.arrays import Array
from ...driver.arrays import Tensor, seeded
from ...driver.program import signature
from .binary import damage_bytes
from .case import Case, Damaged
from .programs import MODULE, ProgramFiles, any_program
from .zips import Member, archive_of, damage_zip

INPUTS = "inputs.npz"


def damaged_inputs(random: np.random.Generator) -> Case:
    """A damaged file of inputs, or a file whose headers declare absurd arrays."""
    files = any_program("nn", random)
    arrays = seeded(signature(files.program.module).inputs)
    edit = (_whole, _headers)[int(random.integers(2))]
    return _case(files, edit(arrays, random))


def wrong_inputs(random: np.random.Generator) -> Case:
    """Inputs with a wrong shape, dtype or name, missing inputs, and pickled objects."""
    files = any_program("nn", random)
    tensors = list(signature(files.program.module).inputs)
    arrays = dict(seeded(tensors))
    done: list[str] = []
    for _ in range(int(random.integers(1, 3))):
        if tensors:
            tensor = tensors[int(random.integers(len(tensors)))]
            edit = EDITS[int(random.integers(len(EDITS)))]
            done.append(f"{tensor.name}: {edit(arrays, tensor, random)}")
    return _case(files, Damaged(_npz(arrays), "; ".join(done)))


def _case(files: ProgramFiles, made: Damaged) -> Case:
    target = () if files.target is None else ("--target", files.target)
    return Case(
        made.description,
        ("run", MODULE, "--inputs", INPUTS, "--check", "--outputs", "out.npz", *target),
        {MODULE: files.text.encode(), **files.blobs, INPUTS: made.data, "out.npz": b"previous"},
        damaged=INPUTS,
    )


def _npy(array: Array) -> bytes:
    stream = io.BytesIO()
    # Objects are written, to see that they are never read.
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def _npz(arrays: dict[str, Array]) -> bytes:
    return archive_of([Member(f"{name}.npy", _npy(each)) for name, each in arrays.items()])


def _whole(arrays: dict[str, Array], random: np.random.Generator) -> Damaged:
    if random.random() < 0.1 and arrays:
        return damage_bytes(_npy(next(iter(arrays.values()))), random)
    return damage_zip(_npz(arrays), random)


HEADERS = (
    "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f4', 'fortran_order': 2, 'shape': (1,), }",
    "{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<V1000000000', 'fortran_order': False, 'shape': (1000000000,), }",
    "__import__('os').mkdir('/abele-hostile-ran')",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,) * 100, }",
    "{'descr': '<f4', 'shape': (1,), }",
    "[" * 300,
    "((" + "1," * 5000 + "),)",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
    "\0\0\0",
)
"""Headers of arrays in NumPy's format, which NumPy parses as Python literals."""


def _headers(arrays: dict[str, Array], random: np.random.Generator) -> Damaged:
    header = HEADERS[int(random.integers(len(HEADERS)))].encode()
    version = int(random.choice([1, 1, 1, 2, 3, 9]))
    size = len(header).to_bytes(2 if version == 1 else 4, "little")
    if random.random() < 0.2:
        size = b"\xff" * len(size)
    data = b"\x93NUMPY" + bytes([version, 0]) + size + header + bytes(16)
    names = list(arrays) or ["x"]
    name = names[int(random.integers(len(names)))]
    members = [Member(f"{each}.npy", _npy(array)) for each, array in arrays.items() if each != name]
    made = archive_of([*members, Member(f"{name}.npy", data)])
    return Damaged(made, f"{name}: version {version}, header {header[:60]!r}")


# Wrong arrays


class _Runs:
    """An object that makes a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/abele-hostile-ran",)


def _dtype(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    names = ("f2", "f8", "i1", "i8", "u1", "?", "c8", "S3", "U2", "M8[s]", ">f4", "V2", "f16")
    name = names[int(random.integers(len(names)))]
    arrays[tensor.name] = np.zeros(tensor.shape, np.dtype(name))
    return f"dtype {name}"


def _bfloat16(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    del random
    arrays[tensor.name] = np.zeros(tensor.shape, ml_dtypes.bfloat16)
    return "dtype bfloat16"


def _shape(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    shapes = ((), (0,), (1,) * 32, (*tensor.shape, 1), (1, *tensor.shape), tensor.shape[::-1])
    shapes += (tensor.shape[:-1], tuple(n + 1 for n in tensor.shape), (0, *tensor.shape))
    shape = shapes[int(random.integers(len(shapes)))]
    arrays[tensor.name] = np.zeros(shape, tensor.dtype)
    return f"shape {shape}"


def _missing(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    del random
    arrays.pop(tensor.name, None)
    return "missing"


def _further(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    names = ("file", "", "../x", "/x", "a" * 60_000, "x.npy", "[/b]", "\u202e", f"{tensor.name} ")
    name = names[int(random.integers(len(names)))]
    arrays[name] = np.zeros(tensor.shape, tensor.dtype)
    return f"a further array {name[:20]!r}"


def _objects(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    del random
    array = np.empty(tensor.shape, object)
    array.fill(_Runs())
    assert pickle.dumps(array)
    arrays[tensor.name] = array
    return "objects that run code"


def _values(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    values = (float("nan"), float("inf"), -float("inf"), 3e38, 1e-45, -0.0, -(2**31), 2**31 - 1)
    value = values[int(random.integers(len(values)))]
    with np.errstate(all="ignore"):
        arrays[tensor.name] = np.full(tensor.shape, np.float64(value)).astype(tensor.dtype)
    return f"all {value}"


def _layout(arrays: dict[str, Array], tensor: Tensor, random: np.random.Generator) -> str:
    del random
    if tensor.name in arrays:
        arrays[tensor.name] = np.asfortranarray(arrays[tensor.name])
    return "in Fortran order"


EDITS: tuple[Callable[[dict[str, Array], Tensor, np.random.Generator], str], ...] = (
    *(_dtype, _bfloat16, _shape, _missing, _further, _objects, _values, _layout),
)
"""Changes of inputs. Each makes them wrong, or only look wrong."""
