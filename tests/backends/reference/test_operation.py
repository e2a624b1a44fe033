import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from some_tensors import values_like

from abele.backends.codelets.conversion import converted
from abele.backends.reference.operation import operation_value
from abele.backends.reference.structure import structure_value
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.ir.support.number_kinds import is_floating

DTYPES = [
    np.dtype(each)
    for each in (
        *("bool", "int8", "uint8", "int32", "int64", "uint64"),
        *("float16", "float32", "float64", ml_dtypes.bfloat16),
    )
]


def some(dtype: np.dtype) -> np.ndarray:
    """Ordinary numbers, limits, and what is beyond those of other types."""
    rng = np.random.default_rng(0)
    if not is_floating(dtype):
        return rng.integers(0, 2 if dtype.kind == "b" else 256, 1600, np.uint8).view(dtype)
    size = 10.0 ** rng.integers(-40, 40, 400)
    limits = [np.inf, -np.inf, np.nan, -0.0, 65504, 65519.9, 65520, 3.4e38]
    with np.errstate(over="ignore"):
        return np.concatenate([rng.standard_normal(400) * size, limits]).astype(dtype)


@pytest.mark.parametrize("result", DTYPES, ids=str)
@pytest.mark.parametrize("operand", DTYPES, ids=str)
def test_a_cast_computes_the_same_as_its_structure(operand: np.dtype, result: np.dtype):
    array = some(operand)
    (value,) = values_like(array)
    op = nn.CastOp(value, element_type(result))
    expected = converted(structure_value(op.structure(), [array], result, array.shape), result)
    assert operation_value(op, [array]).tobytes() == expected.tobytes()


def test_a_cast_takes_the_memory_of_its_result():
    array = np.ones(1 << 20, np.float32)
    (value,) = values_like(array)
    op = nn.CastOp(value, element_type(np.dtype(np.float16)))
    tracemalloc.start()
    made = operation_value(op, [array])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * made.nbytes
