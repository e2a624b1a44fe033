import ml_dtypes
import numpy as np
import pytest

from abele.ir.dense_text import dense_elements


def elements(text: str, dtype: object, *shape: int) -> list[object]:
    return dense_elements(text, shape, np.dtype(dtype)).tolist()


@pytest.mark.parametrize(
    ("text", "dtype", "found"),
    [
        ("0xFF800000", np.float32, -np.inf),
        ("0xFC00", np.float16, -np.inf),
        ("0x7F80", ml_dtypes.bfloat16, np.inf),
        ("-1.5e+01", np.float32, -15.0),
        ("true", np.bool_, True),
        ("-1", np.int32, -1),
        ("4294967295", np.uint32, 4294967295),
        ("18446744073709551615", np.uint64, 18446744073709551615),
        ('"0x0000803F"', np.float32, 1.0),
        ('"0xFF"', np.bool_, True),
    ],
)
def test_one_element_is_read_to_the_bit(text: str, dtype: object, found: object):
    assert elements(text, dtype) == [found]


def test_a_nan_keeps_its_payload():
    made = dense_elements("[0x7FC00001, 1.0]", (2,), np.dtype(np.float32))
    assert made.view(np.uint32).tolist() == [0x7FC00001, 0x3F800000]


def test_rows_follow_each_other():
    assert elements("[[1, 2], [3, 4]]", np.int32, 2, 2) == [1, 2, 3, 4]


def test_complex_numbers_are_pairs():
    text = "[[(1, -2.5), (0x7F800000, 0.0)]]"
    assert elements(text, np.complex64, 1, 2) == [1 - 2.5j, complex(np.inf, 0)]
    assert elements("(1.0, 2.0)", np.complex128, 1 << 20) == [1 + 2j]
    assert elements('"0x0000803F00000040"', np.complex64, 1) == [1 + 2j]


def test_a_repeated_element_is_held_once():
    assert elements("0.5", np.float32, 1 << 40, 1 << 20) == [0.5]


def test_bytes_are_elements_in_order():
    assert elements('"0x0100000002000000"', np.int32, 2) == [1, 2]


def test_a_truth_value_is_a_byte():
    assert elements('"0x0100FF"', np.bool_, 3) == [1, 0, 1]


def test_bytes_of_truth_values_of_older_programs_hold_eight_each():
    assert elements('"0x0501"', np.bool_, 9) == [1, 0, 1, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("[1, 2, 3]", np.int32, (2,)),
        ("[[1, 2]]", np.int32, (2,)),
        ("[1, 2", np.int32, (2,)),
        ("1.5", np.int32, ()),
        ("300", np.int8, ()),
        ("0x1FF800000", np.float32, ()),
        ("2", np.bool_, ()),
        ("true", np.float32, ()),
        ('"0x00"', np.float32, ()),
        ('"0x0"', np.float32, ()),
        ("", np.float32, (2,)),
        ("one", np.float32, ()),
        ("1.0", np.complex64, ()),
        ("[1.0, 2.0]", np.complex64, ()),
        ("[(1, 2), 3]", np.complex64, (2,)),
        ("[(1, 2), (3, 4), (5, 6)]", np.complex64, (2,)),
        ("(1, 2)", np.float32, (2,)),
    ],
)
def test_other_elements_are_refused(text: str, dtype: object, shape: tuple[int, ...]):
    with pytest.raises(ValueError, match="."):
        dense_elements(text, shape, np.dtype(dtype))
