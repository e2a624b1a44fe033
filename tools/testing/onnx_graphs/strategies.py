"""A Hypothesis strategy of ONNX models."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis.strategies import SearchStrategy

from ..generators.sketch import DATA, Data
from ..generators.strategies import sketches
from .build import build_graph
from .graph import ModelCase


def onnx_models(
    *,
    max_nodes: int = 8,
    operators: Collection[str] | None = None,
    data: Sequence[Data] = DATA,
) -> SearchStrategy[ModelCase]:
    """Valid ONNX models, with values for their inputs.

    Args:
        max_nodes: number of nodes of a model, without the nodes that compute parameters.
        operators: names of the operators to use; all that the reader supports if None.
        data: the kinds of values.
    """
    drawn = sketches("tiny:8", max_nodes, data, control_flow=False)
    return drawn.map(lambda sketch: build_graph(sketch, operators))
