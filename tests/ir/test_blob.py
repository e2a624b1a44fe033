import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from abele.ir.blob import Blob, BlobStore, repeated_element

DTYPES = [np.dtype(each) for each in ("f2", "f4", "f8", "i1", "u2", "i4", "i8", "?", "c8")]
DTYPES += [np.dtype(each) for each in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)]
DTYPES += [np.dtype(each) for each in (ml_dtypes.float8_e5m2, ml_dtypes.int4)]


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Arrays of every type that a blob may have, of any bits, down to no elements."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    if dtype in ("?", ml_dtypes.int4):
        return draw(npst.arrays(np.int8, shape, elements=st.integers(0, 1))).astype(dtype)
    raw = draw(npst.arrays(np.uint8, (int(np.prod(shape)) * dtype.itemsize,)))
    return raw.view(dtype).reshape(shape).copy()


@given(arrays())
def test_equal_contents_are_equal_blobs(array: np.ndarray):
    one, two = Blob(array.copy()), Blob(array.copy(order="F"))
    assert one == two
    assert hash(one) == hash(two)
    assert one.digest == two.digest


@given(arrays(), st.data())
def test_a_changed_byte_is_another_blob(array: np.ndarray, data: st.DataObject):
    if array.size == 0 or array.dtype in ("?", ml_dtypes.int4):
        return
    changed = array.copy()
    raw = changed.reshape(-1).view(np.uint8)
    raw[data.draw(st.integers(0, raw.size - 1))] ^= 1
    assert Blob(array) != Blob(changed)


SHAPES = [(2,), (1, 2), (3, 5), (65_536,), (65_537,), (70_000, 2)]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_splat_stores_one_element_and_equals_the_whole_array(dtype: np.dtype):
    element = np.ones((), np.int8).astype(dtype)
    for shape in SHAPES:
        splat, whole = Blob(np.broadcast_to(element, shape)), Blob(np.full(shape, element))
        assert splat.is_splat
        assert not whole.is_splat
        assert splat.stored.shape == (1,)
        assert splat.digest == whole.digest
        store = BlobStore()
        assert store.add(splat) is store.add(whole)


def test_a_splat_may_be_larger_than_the_host():
    blob = Blob(np.broadcast_to(np.float32(2), (1 << 20, 1 << 20)))
    assert BlobStore().add(blob) is blob
    assert blob.stored.nbytes == 4
    assert not blob.array.flags.writeable


def test_a_splat_does_not_see_later_writes():
    number = np.zeros((), np.float32)
    blob = Blob(np.broadcast_to(number, (4,)))
    number[...] = 1
    assert not blob.array.any()


def test_arrays_of_one_element_or_none_are_no_splats():
    for shape in ((), (1, 1), (0, 4)):
        assert not Blob(np.broadcast_to(np.float32(1), shape)).is_splat
    assert not Blob(np.broadcast_to(np.arange(2), (3, 2))).is_splat


def test_the_same_bytes_in_another_shape_or_type_are_another_blob():
    zeros = np.zeros(4, np.float32)
    others = (np.zeros((2, 2), np.float32), np.zeros(4, np.int32), np.zeros(4, ml_dtypes.bfloat16))
    assert len({Blob(zeros).digest, *(Blob(each).digest for each in others)}) == 4
    assert all(Blob(zeros) != Blob(each) for each in others)
    assert Blob(zeros) != "zeros"


def test_comparing_an_array_with_itself_reads_nothing():
    blob = Blob(np.zeros(3))
    assert blob == blob
    assert hash(blob) == hash(Blob(np.ones(3)))
    assert blob._digest is None


def test_a_blob_is_read_only():
    owned = np.zeros(3)
    blob = Blob(owned)
    with pytest.raises(ValueError, match="read-only"):
        owned[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        blob.array[0] = 1


def test_a_view_of_writeable_memory_is_copied():
    memory = np.zeros((2, 3))
    view = memory[1]
    read_only = view[:]
    read_only.flags.writeable = False
    from_bytes = np.frombuffer(buffer := bytearray(8), np.uint8)
    blobs = [Blob(view), Blob(read_only), Blob(from_bytes)]
    memory[:] = 1
    buffer[:] = b"\1" * 8
    assert not any(blob.array.any() for blob in blobs)


def test_read_only_memory_is_kept(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.arange(5))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert np.shares_memory(Blob(mapped).array, mapped)
    constant = np.frombuffer(b"12345678", np.uint8)
    assert np.shares_memory(Blob(constant).array, constant)


def test_foreign_byte_order_is_made_native():
    assert Blob(np.arange(3, dtype=">i4")) == Blob(np.arange(3, dtype="<i4"))


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["a"]), np.zeros(1, "i4,f4")])
def test_only_numbers_make_blobs(array: np.ndarray):
    with pytest.raises(ValueError, match="need numbers or booleans"):
        Blob(array)


def test_a_store_keeps_one_blob_of_equal_contents():
    store = BlobStore()
    one = store.add(np.arange(3))
    assert store.add(Blob(np.arange(3))) is one
    assert len(store) == 1
    assert one.digest in store
    assert store.get(one.digest) is one
    assert store.get("0" * 24) is None


@given(st.lists(st.integers(0, 99_999), min_size=1, max_size=6))
def test_large_blobs_that_differ_in_one_byte_are_different(places: list[int]):
    store = BlobStore()
    for place in (*places, *places):
        array = np.zeros(100_000, np.uint8)
        array[place] = 1
        blob = store.add(array)
        assert blob.array[place] == 1
        assert store.add(blob) is blob
    assert len(store) == len(list(store)) == len(set(places))
    assert [store.get(blob.digest) for blob in store] == list(store)


def test_a_digest_is_computed_on_first_use(monkeypatch: pytest.MonkeyPatch):
    store = BlobStore()
    blobs = [store.add(np.arange(n)) for n in range(1, 9)]
    monkeypatch.setattr(Blob, "digest", property(lambda _: pytest.fail("asked for")))
    assert [store.add(blob) for blob in blobs] == blobs == list(store)


@given(st.lists(arrays(), max_size=4))
def test_a_store_reads_back_the_arrays_it_saved(
    tmp_path_factory: pytest.TempPathFactory, given_arrays
):
    folder = tmp_path_factory.mktemp("blobs")
    store, again = BlobStore(), BlobStore()
    for array in given_arrays:
        store.add(array)
    store.save(folder)
    again.load(folder)
    assert {blob.digest for blob in again} == {blob.digest for blob in store}
    for blob in again:
        kept = store.get(blob.digest)
        assert kept == blob
        assert kept.array.dtype == blob.array.dtype
        assert kept.array.shape == blob.array.shape


def test_saving_again_leaves_files_alone(tmp_path: Path):
    store = BlobStore()
    blob = store.add(np.arange(3))
    store.save(tmp_path)
    before = (tmp_path / f"{blob.digest}.npy").stat().st_mtime_ns
    store.save(tmp_path)
    assert (tmp_path / f"{blob.digest}.npy").stat().st_mtime_ns == before


def test_a_missing_folder_is_named(tmp_path: Path):
    with pytest.raises(ValueError, match="nowhere: no such folder"):
        BlobStore().load(tmp_path / "nowhere")


@given(st.data())
def test_damage_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    folder = tmp_path_factory.mktemp("damaged")
    store = BlobStore()
    blob = store.add(np.arange(6, dtype=np.int16).reshape(2, 3))
    store.save(folder)
    path = folder / f"{blob.digest}.npy"
    good = path.read_bytes()
    bad = bytearray(good)
    if data.draw(st.booleans(), label="cut"):
        del bad[data.draw(st.integers(0, len(good) - 1)) :]
    else:
        bad[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bad)
    again = BlobStore()
    try:
        again.load(folder)
    except ValueError as error:
        assert f"{path}: damaged blob" in str(error)
    else:
        # A byte of the header's padding may change without a change of the array.
        assert again.get(blob.digest) == blob


def test_a_file_that_is_cut_in_place_changes_no_loaded_blob(tmp_path: Path):
    store, again = BlobStore(), BlobStore()
    blob = store.add(np.arange(5000))
    store.save(tmp_path)
    again.load(tmp_path)
    for path in tmp_path.iterdir():
        os.truncate(path, 0)
    found = again.get(blob.digest)
    assert found is not None
    np.testing.assert_array_equal(found.array, np.arange(5000))


@pytest.mark.parametrize("content", [b"garbage", b"\x80\x04]\x94."])
def test_a_damaged_file_is_never_unpickled(tmp_path: Path, content: bytes):
    (tmp_path / "abc.npy").write_bytes(content)
    with pytest.raises(ValueError, match="damaged blob: need an array of numbers$"):
        BlobStore().load(tmp_path)


def test_an_unknown_element_type_is_named(tmp_path: Path):
    np.save(tmp_path / "abc.float7.npy", np.zeros(1, np.uint8))
    with pytest.raises(ValueError, match="unknown element type float7"):
        BlobStore().load(tmp_path)


def test_equal_blobs_share_one_array():
    one, other = (Blob(np.arange(6, dtype=np.float32)) for _ in range(2))
    other.share(one)
    assert other.array is one.array
    with pytest.raises(AssertionError, match="blobs that differ"):
        other.share(Blob(np.zeros(6, np.float32)))


@pytest.mark.parametrize(
    ("array", "repeated"),
    [
        (np.full((2, 3), 7, np.int32), 7),
        (np.broadcast_to(np.float32(2.5), (4, 4)), 2.5),
        (np.full(2, 1.5, ml_dtypes.bfloat16), 1.5),
        (np.float32([0.0, -0.0]), None),
        (np.int8([[1, 1], [1, 2]]), None),
        (np.zeros((0, 2)), None),
        (np.float32(3), 3),
    ],
    ids=str,
)
def test_an_array_repeats_an_element_if_all_bits_are_the_same(array, repeated):
    found = repeated_element(np.asarray(array))
    assert found is None if repeated is None else found.shape == () and found == repeated
