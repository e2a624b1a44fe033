import numpy as np
import pytest
from some_tensors import small_integers, values_like

from abele.backends.reference import (
    contraction,
    evaluate_operation,
    evaluation,
    operation_value,
    roles,
)
from abele.dialects import nn


@pytest.mark.parametrize("elements", [3, 7, 64])
def test_small_boxes_give_the_same(monkeypatch: pytest.MonkeyPatch, elements: int):
    image, weight = small_integers(1, (2, 4, 6, 5)), small_integers(2, (6, 2, 3, 3))
    conv = nn.ConvOp(*values_like(image, weight), stride=[2, 1], pad_low=[1, 1], groups=2)
    pools = [
        nn.PoolOp(*values_like(image), c, [2, 3], pad_high=[1, 0]) for c in ("sum", "max", "prod")
    ]
    cases = [(conv, [image, weight]), *((pool, [image]) for pool in pools)]
    whole = [evaluate_operation(op, arrays) for op, arrays in cases]
    monkeypatch.setattr(roles, "BOX_ELEMENTS", elements)
    made: list[tuple[tuple[int, int], ...]] = []
    gathered = evaluation.gathered
    for module in (contraction, evaluation):
        monkeypatch.setattr(
            module, "gathered", lambda t, m, box: made.append(box) or gathered(t, m, box)
        )
    for (op, arrays), (value, bound) in zip(cases, whole, strict=True):
        again, other = evaluate_operation(op, arrays)
        np.testing.assert_array_equal(again, value)
        np.testing.assert_allclose(other, bound, rtol=1e-12)
    assert len(set(made)) > 2 * len(cases)


@pytest.mark.parametrize(
    ("combiner", "dtype", "need"),
    [
        ("sum", "float32", 0.0),
        ("max", "float32", -np.inf),
        ("min", "int8", 127),
        ("prod", "int32", 1),
    ],
)
def test_merging_nothing_gives_the_identity(combiner: str, dtype: str, need: float):
    empty = np.zeros((2, 0), dtype)
    got = operation_value(nn.ReduceOp(*values_like(empty), combiner, [1]), [empty])
    assert got.tolist() == [need] * 2
