"""Models of one node, and what they compute at nn."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.tools.importers import import_onnx

Array = np.ndarray[Any, Any]


def one_node(
    operator: str,
    *operands: Array | None,
    known: int = 0,
    opset: int = 22,
    domain: str = "",
    version: int = 1,
    results: int = 1,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node with results y0, y1, ..., and its inputs x0, x1, ...

    operands: None for one that is left out. known: how many of the last operands are weights.
    version: of the domain, if it is not ai.onnx.
    """
    given = {f"x{i}": a for i, a in enumerate(operands) if a is not None}
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(operands)]
    weights = {n for n in names[len(names) - known :] if n}
    made = [f"y{i}" for i in range(results)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, made, "node", domain=domain, **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in given.items()
            if n not in weights
        ],
        [helper.make_empty_tensor_value_info(name) for name in made],
        [numpy_helper.from_array(a, n) for n, a in given.items() if n in weights],
    )
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, version)] if domain else []
    model = helper.make_model(graph, opset_imports=opsets)
    return model, {n: a for n, a in given.items() if n not in weights}


def computed(model: onnx.ModelProto, inputs: dict[str, Array]) -> list[Array]:
    """The results of a model, as its operations of nn compute them."""
    return list(run_reference(import_onnx(model, AbeleContext()), inputs).outputs.values())


def agree_with_onnx(
    model: onnx.ModelProto, inputs: dict[str, Array], rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Check the results of a model against those of onnx's reference evaluator."""
    others = ReferenceEvaluator(model).run(None, inputs)
    for mine, other in zip(computed(model, inputs), others, strict=True):
        assert mine.shape == np.shape(other)
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=atol)
