from dataclasses import replace

import numpy as np
import pytest
from block_sparse import sparse_matrix

from abele.backends.target import resolve_target
from abele.passes.planner.sparse_products import SparseProduct, fastest_buckets, in_buckets
from abele.passes.plans.bands import BlockPattern

MK2 = resolve_target("mk2:64")
HALF = np.dtype(np.float16)


def of(matrix, side: int, others=(32,), before=0) -> SparseProduct:
    return SparseProduct(BlockPattern.of_dense(matrix, (side, side)), others, before)


def test_the_fastest_of_several_blocks_is_taken():
    matrix = sparse_matrix(np.random.default_rng(0), (256, 256), (16, 16), 0.1, np.float16)
    products = [of(matrix, side) for side in (4, 16, 8)]
    alone = [fastest_buckets([each], HALF, HALF, MK2).cycles for each in products]
    best = fastest_buckets(products, HALF, HALF, MK2)
    assert best.product is products[alone.index(min(alone))]
    assert 0 < best.cycles == min(alone) < alone[0]


@pytest.mark.parametrize(("others", "before"), [((32,), 0), ((4, 8), 2), ((4, 8), 1), ((4, 8), 0)])
def test_columns_are_all_axes_but_the_terms(others, before):
    matrix = np.eye(64, dtype=np.float16)
    product = of(matrix, 8, others, before)
    best = fastest_buckets([product], HALF, HALF, MK2)
    assert product.columns == 32
    (result,) = best.structure.space.results
    assert np.prod(result.shape) == 64 * 32


def test_values_of_a_run_cost_the_movement_into_their_buckets():
    rng = np.random.default_rng(0)
    trained = of(sparse_matrix(rng, (256, 256), (16, 16), 0.1, np.float16), 16)
    constant = replace(trained, values=np.ones((len(trained.pattern.rows), 16, 16), np.float16))
    both = [in_buckets(each, HALF, HALF, MK2) for each in (trained, constant)]
    for one, other in zip(*both, strict=True):
        assert (one.buckets.bands, one.buckets.parts) == (other.buckets.bands, other.buckets.parts)
        assert one.alone == other.alone
        assert one.cycles > other.cycles >= other.alone
