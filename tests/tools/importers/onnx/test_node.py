"""What an importer computes of its own has a size that it checks first."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.support.limits import TABLE_ELEMENTS
from abele.tools.importers import import_onnx

from .one_node import one_node

HUGE = 1 << 40


def number(value: float, dtype: Any = np.int64) -> np.ndarray:
    return np.array(value, dtype)


NODES = {
    "Range": ([number(0), number(HUGE), number(1)], {}),
    "HannWindow": ([number(HUGE)], {}),
    "OneHot": ([np.zeros(2, np.int64), number(HUGE), np.array([0, 1], np.float32)], {}),
    "MelWeightMatrix": (
        [number(1 << 20), number(1 << 20), number(16000), number(0, np.float32), number(8e3, "f4")],
        {},
    ),
    "AffineGrid": ([np.zeros((1, 2, 3), np.float32), np.array([1, 1, 1 << 20, 1 << 20])], {}),
    "DFT": ([np.ones((1, 2, 1), np.float32), number(HUGE)], {}),
    "RandomUniform": ([], {"shape": [HUGE]}),
    "RandomNormal": ([], {"shape": [1 << 20, 1 << 20]}),
    "TfIdfVectorizer": (
        [np.zeros(2, np.int64)],
        {
            "mode": "TF",
            "min_gram_length": 1,
            "max_gram_length": 1,
            "max_skip_count": 0,
            "ngram_counts": [0],
            "ngram_indexes": [HUGE],
            "pool_int64s": [3],
        },
    ),
}
"""Nodes of a few bytes that ask for 2^40 elements: operands and attributes."""


def import_node(operator: str, known: int | None = None) -> None:
    operands, attributes = NODES[operator]
    model, _ = one_node(
        operator, *operands, known=len(operands) if known is None else known, **attributes
    )
    import_onnx(model, AbeleContext())


@pytest.mark.parametrize("operator", NODES)
def test_a_huge_table_is_refused_before_it_is_computed(operator: str):
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=f"'node' \\({operator}\\): .*; (at most|need at)"):
            import_node(operator)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_huge_image_is_refused_before_its_places_are_computed(mode: str):
    sizes = np.array([1, 1, 1, HUGE])
    model, _ = one_node("Resize", np.ones((1, 1, 1, 4), np.float32), None, None, sizes, known=1)
    model.graph.node[0].attribute.add(name="mode", s=mode.encode(), type=3)
    with pytest.raises(InputError, match="table elements"):
        import_onnx(model, AbeleContext())


def test_the_limit_on_tables_can_be_changed(monkeypatch: pytest.MonkeyPatch):
    model, _ = one_node("EyeLike", np.ones((4, 5), np.float32))
    import_onnx(model, AbeleContext())
    monkeypatch.setenv(TABLE_ELEMENTS.variable, "19")
    with pytest.raises(InputError, match=r"a table of \[4, 5\]; at most 19 table elements"):
        import_onnx(model, AbeleContext())
