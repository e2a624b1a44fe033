"""Read-only arrays identified by a digest of their contents: weights, constants, tables."""

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .support.garbage import count_held
from .support.whole_file import whole_file

# NumPy's file format does not keep these types. Files hold them as unsigned integers of the same
# width, and the file's name states the type.
_EXTENSION_DTYPES = {
    np.dtype(scalar).name: np.dtype(scalar)
    for scalar in (
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e3m4,
        ml_dtypes.float8_e4m3,
        ml_dtypes.float8_e4m3b11fnuz,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e8m0fnu,
        ml_dtypes.float6_e2m3fn,
        ml_dtypes.float6_e3m2fn,
        ml_dtypes.float4_e2m1fn,
        ml_dtypes.int4,
        ml_dtypes.uint4,
        ml_dtypes.int2,
        ml_dtypes.uint2,
    )
}
_STANDARD_KINDS = "biufc"

_DIGEST_ELEMENTS = 1 << 16
"""Elements of a splat whose digest is computed at once."""

_SAMPLE_BYTES = 4096
"""About how many bytes to sample from an array. Arrays whose samples differ are not equal."""


class Blob:
    """An immutable array. Two blobs are equal if their types, shapes and contents are.

    Raises ValueError for arrays of objects, strings or records.

    Attributes:
        array: C order, native byte order, read-only. An array that owns its memory is made
            read-only in place; a view into writable memory is copied; a read-only memory map is
            kept as it is. A splat repeats one element and stores it once: all strides of its array
            are 0. The hash depends on shape and type only, so hashing an attribute that holds a
            blob is cheap. The contents are read once, by the first comparison or the first access
            to the digest.
    """

    __slots__ = ("_digest", "array")

    array: NDArray[Any]

    def __init__(self, array: NDArray[Any]) -> None:
        dtype = array.dtype
        if dtype.name not in _EXTENSION_DTYPES and dtype.kind not in _STANDARD_KINDS:
            raise ValueError(f"blob of {dtype}: need numbers or booleans")
        if repeats_one_element(array):
            element = array[(0,) * array.ndim].astype(dtype.newbyteorder("="))
            self.array = np.broadcast_to(_frozen(np.asarray(element)), array.shape)
        else:
            if not (dtype.isnative and array.flags.c_contiguous):
                array = array.astype(dtype.newbyteorder("="), order="C")
            self.array = _frozen(array)
        count_held(self.stored.nbytes)
        self._digest: str | None = None

    @classmethod
    def named(cls, array: NDArray[Any], digest: str) -> "Blob":
        """A blob of a known digest. The caller compares it with the contents before they count."""
        blob = cls(array)
        blob._digest = digest
        return blob

    @property
    def is_splat(self) -> bool:
        """Whether the array repeats one element that is stored once."""
        return repeats_one_element(self.array)

    @property
    def stored(self) -> NDArray[Any]:
        """The elements that are stored, in C order: all of them, or the one of a splat. (n,)."""
        array = self.array
        return array[(0,) * array.ndim].reshape(1) if self.is_splat else array.reshape(-1)

    @property
    def digest(self) -> str:
        """The blake2b-96 digest of type, shape and contents: 24 hexadecimal digits."""
        if self._digest is None:
            state = blake2b(f"{self.array.dtype.name}{self.array.shape}".encode(), digest_size=12)
            for some in self._pieces():
                state.update(some.view(np.uint8).data)
            self._digest = state.hexdigest()
        return self._digest

    def _pieces(self) -> Iterator[NDArray[Any]]:
        """All elements in C order, in pieces. A splat is never stored whole."""
        if not self.is_splat:
            yield self.stored
            return
        whole, rest = divmod(self.array.size, _DIGEST_ELEMENTS)
        piece = np.repeat(self.stored, _DIGEST_ELEMENTS if whole else rest)
        for _ in range(whole):
            yield piece
        yield piece[:rest]

    def share(self, other: "Blob") -> None:
        """Use the array of an equal blob, so that memory holds it once."""
        assert self == other, "blobs that differ"
        self.array = other.array

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.dtype.name))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Blob) or hash(self) != hash(other):
            return False
        return self.digest == other.digest

    def __repr__(self) -> str:
        return f"Blob({self.digest}, {self.array.dtype.name}{list(self.array.shape)})"


def repeats_one_element(array: NDArray[Any]) -> bool:
    """Whether an array of several elements repeats one: all its strides are 0."""
    return array.size > 1 and not any(
        stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1
    )


def repeated_element(array: NDArray[Any]) -> NDArray[Any] | None:
    """The element that an array repeats bit by bit, as an array without axes; None if two differ.

    Zeros of different signs differ. An array without elements repeats none.
    """
    if not array.size:
        return None
    first = np.asarray(array[(0,) * array.ndim])
    if not repeats_one_element(array):
        parts = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
        if (parts != parts[0]).any():
            return None
    return first


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.flags.writeable:
        if array is not root or not array.flags.owndata:
            array = array.copy()
        array.flags.writeable = False
    return array


class BlobStore:
    """The blobs of one program, by digest.

    A digest is computed only when it is requested or when two blobs may be equal. Most digests are
    never computed, even for whole networks.

    On disk a store is a folder of `<digest>.npy` files. Types that NumPy's format does not know are
    stored in `<digest>.<type>.npy` as unsigned integers of the same width.
    """

    def __init__(self) -> None:
        self._blobs: list[Blob] = []
        # By shape, type and sample. Blobs that differ in one of these are not equal.
        self._first: dict[tuple[int, int], Blob] = {}
        self._by_digest: dict[str, Blob] = {}
        # Blobs that are not in _by_digest yet.
        self._without: list[Blob] = []

    def add(self, array: NDArray[Any] | Blob) -> Blob:
        """Add an array and return its blob. Arrays with equal contents give the same blob."""
        blob = array if isinstance(array, Blob) else Blob(array)
        key = hash(blob), _sampled(blob)
        if key not in self._first:
            self._first[key] = blob
            self._blobs.append(blob)
            self._without.append(blob)
            return blob
        first = self._first[key]
        if first is blob:
            return blob
        self._by_digest.setdefault(first.digest, first)
        if blob.digest not in self._by_digest:
            self._by_digest[blob.digest] = blob
            self._blobs.append(blob)
        return self._by_digest[blob.digest]

    def get(self, digest: str) -> Blob | None:
        """The blob with this digest, or None if the store does not have it."""
        for blob in self._without:
            self._by_digest.setdefault(blob.digest, blob)
        self._without.clear()
        return self._by_digest.get(digest)

    def __contains__(self, digest: str) -> bool:
        return self.get(digest) is not None

    def __iter__(self) -> Iterator[Blob]:
        return iter(self._blobs)

    def __len__(self) -> int:
        return len(self._blobs)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write each blob into a folder, except those whose files already exist."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        for blob in self:
            target = folder / _file_name(blob)
            if not target.exists():
                _write(blob, target)

    def load(self, directory: str | os.PathLike[str]) -> None:
        """Read the blobs in a folder, check each against its digest, and add them.

        Raises ValueError if the folder is missing, or if a file is damaged or is not a blob.
        """
        folder = Path(directory)
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder of blobs")
        for path in sorted(folder.glob("*.npy")):
            if not path.name.startswith("."):
                self.add(_read(path))


def _sampled(blob: Blob) -> int:
    """A checksum of bytes sampled evenly from an array. Equal arrays have equal checksums."""
    contents, size = blob.stored.view(np.uint8), blob.array.nbytes
    step = max(size // _SAMPLE_BYTES, 1)
    if blob.is_splat:
        return crc32(contents[np.arange(0, size, step) % len(contents)].tobytes())
    return crc32(contents[::step].tobytes())


def _file_name(blob: Blob) -> str:
    name = blob.array.dtype.name
    return f"{blob.digest}.{name}.npy" if name in _EXTENSION_DTYPES else f"{blob.digest}.npy"


def _write(blob: Blob, target: Path) -> None:
    array = blob.array
    if array.dtype.name in _EXTENSION_DTYPES:
        array = array.view(f"u{array.itemsize}")
    with whole_file(target) as stream:
        np.save(stream, array, allow_pickle=False)


def _read(path: Path) -> Blob:
    digest, *types = path.name.removesuffix(".npy").split(".")
    unknown = [name for name in types if name not in _EXTENSION_DTYPES]
    if unknown:
        raise ValueError(f"{path}: unknown element type {unknown[0]}")
    try:
        # Read, not mapped: if the file were cut in place later, a signal would end the process.
        array = np.load(path, allow_pickle=False)
        if types:
            array = array.view(_EXTENSION_DTYPES[types[0]])
        blob = Blob(array)
    # NumPy parses a file's header as Python, so a damaged file may raise anything.
    except Exception as error:
        # NumPy's message suggests to allow pickles, which would run code from the file.
        what = "need an array of numbers" if "pickle" in str(error) else error
        raise ValueError(f"{path}: damaged blob: {what}") from error
    if blob.digest != digest:
        raise ValueError(f"{path}: damaged blob: its contents have digest {blob.digest}")
    return blob
