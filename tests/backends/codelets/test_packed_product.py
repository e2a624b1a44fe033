import numpy as np
import pytest
from tile_programs import Case
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32
from xdsl.ir import Block

from abele.backends.codelets import packed_product as codelet
from abele.backends.codelets.numerics import kind_of
from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.dialects.structured import Body

from .test_numerics import run

BYTE = IntegerType(8, Signedness.UNSIGNED)
M, N, K, BLOCKS = 3, 6, 40, 3


@pytest.mark.parametrize("size", [1, 400, 1 << 20])
@pytest.mark.parametrize("split", [(1, 3, 1, 1, 1), (3, 2, 1, 1, 1), (1, 1, 1, 1, 1)])
def test_integers_are_taken_apart_some_at_a_time(split, size, monkeypatch):
    monkeypatch.setattr(codelet, "SCRATCH_BYTES", size)
    shapes = [(M, K), (N, BLOCKS, 8), (N, BLOCKS), (N, BLOCKS), (2,)]
    kinds = [f32, BYTE, f32, BYTE, BYTE]
    types = [TensorType(kind, shape) for kind, shape in zip(kinds, shapes, strict=True)]
    structure = nn.PackedMatMulOp(*Block(arg_types=types).args, bits=4).structure()
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (M, K)).astype(np.float32)
    packed, zeros = (rng.integers(0, 256, s).astype(np.uint8) for s in shapes[1:4:2])
    scales, shifts = rng.choice([0.5, 1, 2], (N, BLOCKS)), np.array([0, 4], np.uint8)
    operands = [x, packed, scales.astype(np.float32), zeros, shifts]
    dtypes = (*(a.dtype for a in operands), np.dtype(np.float32))
    found = run(Case(structure, Plan(split), dtypes, 6, 0), operands)
    whole = (packed[..., None] >> shifts & 15).reshape(N, BLOCKS, 16).astype(float)
    matrix = ((whole - zeros[..., None]) * scales[..., None]).reshape(N, -1)[:, :K]
    np.testing.assert_array_equal(found, x @ matrix.T)


def test_a_sum_of_packed_products_has_a_codelet_of_its_own():
    assert kind_of(Body("packed_mul", "sum", (4.0,))) == "packed_product"
    assert kind_of(Body("packed_mul", "max", (4.0,))) == "reduction"
