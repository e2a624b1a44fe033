"""Arrays that programs take and return: checks, seeded values, and .npz files."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.number_kinds import is_whole
from ...ir.support.whole_file import whole_file
from .member_names import MEMBER, member_names

SEEDED_INTEGERS = 4
"""Seeded integers are in 0..SEEDED_INTEGERS-1, so that they are valid indices and counts."""

_REGISTERED = 2
"""dtype.isbuiltin of the types of ml_dtypes. NumPy's own types have 1, but copies of them, such as
those of an array from another process, have 0."""


@dataclass(frozen=True)
class Tensor:
    """An input or output of a program, by name.

    Attributes:
        open_axes: the axes along which an input may have fewer elements.
        texts: the strings that the integers stand for, which are places in them, if the host sees
            strings; -1 is any other string.
        columns: the names of the entries along the last axis, if they have names.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    open_axes: tuple[int, ...] = ()
    texts: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether an input may have a shape."""
        return len(shape) == len(self.shape) and all(
            n == m or (axis in self.open_axes and n < m)
            for axis, (n, m) in enumerate(zip(shape, self.shape, strict=True))
        )

    def __str__(self) -> str:
        kind = self.dtype.name if self.texts is None else "str"
        return f"{self.name!r} ({kind}{list(self.shape)})"


def listed(tensors: Iterable[Tensor]) -> str:
    """Tensors for a message: 'x' (float32[1, 3]), 'y' (int64[])."""
    return ", ".join(map(str, tensors)) or "none"


def checked(given: Mapping[str, object], tensors: Iterable[Tensor]) -> dict[str, Array]:
    """The arrays by name, in the order of the tensors.

    Raises InputError for a missing or unknown name, a wrong shape or a wrong dtype. Nothing is
    cast, broadcast or dropped.
    """
    wanted = tuple(tensors)
    _check_names(given, wanted)
    missing = [tensor for tensor in wanted if tensor.name not in given]
    if missing:
        raise InputError(f"input {missing[0]} is missing; the program takes {listed(wanted)}")
    return {tensor.name: _checked_array(given[tensor.name], tensor) for tensor in wanted}


class UnknownInputError(InputError):
    """Arrays have a name that no input has."""


def _check_names(given: Iterable[str], wanted: tuple[Tensor, ...]) -> None:
    known = {tensor.name for tensor in wanted}
    for name in given:
        if name not in known:
            raise UnknownInputError(f"no input {name!r}; the program takes {listed(wanted)}")


def as_array(value: object, what: object) -> Array:
    """A value as an array. Raises InputError if it is not one.

    Args:
        what: the input that it is for.
    """
    if np.ma.is_masked(value):
        raise InputError(f"input {what}: a masked array; need array.filled(...) with a number")
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(f"input {what}: not an array: {error}") from None


def input_array(value: object, tensor: Tensor) -> Array:
    """A value as an array for an input, with integers for its strings.

    Raises InputError if it is not an array.
    """
    array = as_array(value, tensor)
    if tensor.texts is None:
        return array
    if array.dtype.kind == "O" and all(isinstance(each, str) for each in array.flat):
        array = array.astype(np.str_)
    return _places(array, tensor.texts) if array.dtype.kind == "U" else array


def _places(array: Array, texts: Sequence[str]) -> Array:
    """The place of each string of an array in a list, int32; -1 for a string that is not in it."""
    if not texts:
        return np.full(array.shape, -1, np.int32)
    table = np.array(texts)
    order = np.argsort(table)
    near = np.minimum(np.searchsorted(table, array, sorter=order), len(table) - 1)
    places = order[near]
    return np.where(table[places] == array, places, -1).astype(np.int32)


def with_texts(array: Array, tensor: Tensor) -> Array:
    """An output as the host sees it: strings for the integers that stand for them.

    Raises InputError for integers that stand for none.
    """
    if tensor.texts is None:
        return array
    if array.size and not 0 <= array.min() <= array.max() < len(tensor.texts):
        raise InputError(f"output {tensor}: integers outside 0..{len(tensor.texts) - 1}")
    return np.array(tensor.texts or ("",), np.str_)[array]


def _checked_array(value: object, tensor: Tensor) -> Array:
    array = input_array(value, tensor)
    check_kind(array.shape, array.dtype, tensor)
    return array


def check_kind(shape: tuple[int, ...], dtype: np.dtype[Any], tensor: Tensor) -> None:
    """Raise InputError for a shape or a dtype that an input may not have."""
    if tensor.takes(shape) and dtype == tensor.dtype:
        return
    problem = f"input {tensor}: got {dtype.name}{list(shape)}"
    for axis in tensor.open_axes:
        problem += f"; axis {axis} has room for {tensor.shape[axis]}"
    if not dtype.isnative and dtype.newbyteorder("=") == tensor.dtype:
        problem += (
            f" whose bytes are in the other order ({dtype.str}); need "
            "array.astype(array.dtype.newbyteorder('='))"
        )
    raise InputError(problem)


def seeded(tensors: Iterable[Tensor], seed: int = 0) -> dict[str, Array]:
    """Seeded values: normally distributed floats, and small integers that are not negative.

    The values of a tensor depend on its name and the seed, not on the other tensors.
    """
    return {tensor.name: _seeded(tensor, seed) for tensor in tensors}


def _seeded(tensor: Tensor, seed: int) -> Array:
    random = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
    if tensor.dtype.kind == "b":
        return random.integers(0, 2, tensor.shape).astype(tensor.dtype)
    if is_whole(tensor.dtype):
        return random.integers(0, SEEDED_INTEGERS, tensor.shape).astype(tensor.dtype)
    return random.standard_normal(tensor.shape, dtype=np.float32).astype(tensor.dtype)


# Files


def npz_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the arrays in an .npz file. Raises InputError."""
    file = Path(path)
    with reading(file, "an .npz file"):
        _refuse_npy(file)
        with zipfile.ZipFile(file) as archive:
            return [name.removesuffix(MEMBER) for name in archive.namelist()]


def npz_shapes(path: str | os.PathLike[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays in an .npz file, of which only the headers are read.

    Raises InputError.
    """
    file = Path(path)
    with reading(file, "an .npz file"):
        _refuse_npy(file)
        with zipfile.ZipFile(file) as archive:
            return {
                name.removesuffix(MEMBER): _member_shape(archive, name)
                for name in archive.namelist()
            }


def _member_shape(archive: zipfile.ZipFile, member: str) -> tuple[int, ...]:
    with archive.open(member) as stream:
        return _header(stream)[0]


T = TypeVar("T")


def numbered(given: Mapping[str, T], inputs: Sequence[str]) -> Mapping[str, T]:
    """What is given by name, with the names of inputs instead of those that numpy.savez gives to
    arrays without one: arr_0 is the first input, and so on, if there are as many.
    """
    numbers = [f"arr_{i}" for i in range(len(inputs))]
    if set(numbers) != set(given) or set(numbers) & set(inputs):
        return given
    return {name: given[each] for name, each in zip(inputs, numbers, strict=True)}


def read_npz(
    path: str | os.PathLike[str], tensors: Iterable[Tensor], besides: Collection[str] = ()
) -> dict[str, Array]:
    """Read inputs of a program from an .npz file, which may not contain anything else.

    Raises InputError.

    Names, shapes and dtypes are checked before any element is read, so a file cannot use more
    memory than the program does. Nothing in the file is executed.

    Args:
        besides: the names of arrays that the file may contain as well, and that are not read.
    """
    wanted = {tensor.name: tensor for tensor in tensors}
    file = Path(path)
    with reading(file, "an .npz file"):
        _refuse_npy(file)
        with zipfile.ZipFile(file) as archive:
            stored = archive.namelist()
            members = {name.removesuffix(MEMBER): name for name in stored}
            if len(members) < len(stored):
                raise InputError("two members have one name; need a name for each")
            members = {name: each for name, each in members.items() if name not in besides}
            members = numbered(members, tuple(wanted))
            _check_names(members, tuple(wanted.values()))
            return {name: _read_member(archive, members[name], wanted[name]) for name in members}


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """All arrays of an .npz file, by name. Nothing in the file is executed. Raises InputError."""
    file = Path(path)
    with reading(file, "an .npz file"):
        _refuse_npy(file)
        # numpy.load takes what is no archive for a pickle, and advises to trust it.
        with zipfile.ZipFile(file), np.load(file, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}


def read_npz_array(path: str | os.PathLike[str], name: str) -> Array:
    """One array of an .npz file. Nothing in the file is executed. Raises InputError."""
    file = Path(path)
    with reading(file, "an .npz file"), np.load(file, allow_pickle=False) as archive:
        return np.asarray(archive[name])


def read_npy(path: str | os.PathLike[str]) -> Array:
    """Read one array from an .npy file. Nothing in the file is executed. Raises InputError."""
    file = Path(path)
    with reading(file, "an .npy file"), open(file, "rb") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


@contextmanager
def reading(file: str | os.PathLike[str], what: str) -> Generator[None]:
    """Turn whatever happens while a file is read into an InputError that names the file.

    Args:
        what: what the file should be, such as "an .npz file".
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
    # Damage can show anywhere between the first header and the last checksum.
    except Exception as error:
        raise InputError(f"{file}: damaged, or not {what}: {error}") from None


def _refuse_npy(file: Path) -> None:
    with open(file, "rb") as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            raise InputError("one array without a name (.npy); need np.savez(path, name=array)")


def _read_member(archive: zipfile.ZipFile, member: str, tensor: Tensor) -> Array:
    with archive.open(member) as stream:
        shape, fortran, dtype = _header(stream)
        stored = tensor.dtype
        # NumPy's format has no types of ml_dtypes: it stores their bytes without a type.
        size = stored.itemsize
        if stored.isbuiltin == _REGISTERED and dtype in (
            np.dtype(f"V{size}"),
            np.dtype(f"<u{size}"),
        ):
            dtype = stored
        is_text = tensor.texts is not None and dtype.kind == "U"
        check_kind(shape, stored if is_text else dtype.newbyteorder("="), tensor)
        count = int(np.prod(shape, dtype=np.int64))
        data = stream.read(count * dtype.itemsize)
        if len(data) < count * dtype.itemsize:
            raise InputError(f"input {tensor}: the file ends after {len(data)} bytes of it")
        # Reading past the last byte makes zipfile compare the checksum.
        stream.read(1)
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    array = input_array(array, tensor)
    return np.ascontiguousarray(array.astype(tensor.dtype, copy=False)).reshape(shape)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise InputError(f"version {version} of NumPy's format; need 1.0 or 2.0")
    return read(stream)


def _untyped(array: Array) -> Array:
    """An array that NumPy's format can keep: elements of ml_dtypes as bytes without a type."""
    array = np.asanyarray(array)
    if array.dtype.isbuiltin != _REGISTERED:
        return array
    return np.ascontiguousarray(array).view(f"V{array.itemsize}").reshape(array.shape)


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write arrays by name, to a temporary file that is then renamed.

    np.savez cannot write a tensor called "file", which is its own argument. Equal arrays make equal
    files. Raises InputError for names that numpy.load would not find, and if the system refuses.
    """
    members = member_names(arrays)
    try:
        with whole_file(Path(path)) as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, array in arrays.items():
                # Without a ZipInfo, the member gets the time of day.
                member = zipfile.ZipInfo(members[name])
                with archive.open(member, "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, _untyped(array), allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
