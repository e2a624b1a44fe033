"""A node of any framework that applies operators of ONNX, so that both have one meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ...dialects import nn
from ...ir.upstream import LocationAttr
from .building import Known, NodeBuilder, Value, dtype_of, shape_of
from .front_end import Reading
from .onnx.node import GraphScope, listed
from .onnx.node import Node as OnnxNode
from .onnx.ops_sized import read_sized
from .onnx.reader import OPERATORS

OPSET = 22
"""The version of ONNX whose operators are applied."""


def applying_scope(reading: Reading) -> GraphScope:
    """The program of a model whose nodes apply operators of ONNX, still empty."""
    return GraphScope(
        context=reading.context,
        place=reading.place,
        training=reading.training,
        weights=reading.weights,
        folder=None,
        opsets={"ai.onnx": OPSET},
    )


class Applied(OnnxNode):
    """An operator of ONNX that a node applies.

    Its operations and its messages are those of the node around it.
    """

    def __init__(self, owner: ApplyingNode, proto: onnx.NodeProto, graph: GraphScope):
        super().__init__(proto, owner.name, graph)
        self.ops = owner.ops
        self.owner = owner

    def __str__(self) -> str:
        return str(self.owner)

    def meaning(self) -> str:
        """The operator of the node around it."""
        return self.owner.meaning()


class ApplyingNode(NodeBuilder):
    """A node that may apply operators of ONNX.

    Attributes:
        graph: the program so far.
    """

    def __init__(self, name: str, graph: GraphScope, source: LocationAttr | None = None):
        super().__init__(name, graph, source)
        self.graph = graph

    def meaning(self) -> str:
        """The node's own operator, in messages of the operators of ONNX that it applies."""
        raise NotImplementedError

    def ssa(self, value: Value) -> SSAValue:
        """A value as the result of an operation."""
        return self.program.emitted(value)

    def integers_known(self, numbers: Sequence[int]) -> Known:
        """A list of integers as an operand of an operator of ONNX."""
        return self.known(np.array(numbers, np.int64))

    def apply_all(
        self, operator: str, *operands: Value | None, results: int = 1, **attributes: Any
    ) -> list[Value]:
        """The results of an operator of ONNX.

        Args:
            operands: None for one that is left out.
            results: how many have names.
        """
        names = ["" if each is None else f"operand {i}" for i, each in enumerate(operands)]
        given = {k: v for k, v in attributes.items() if v is not None}
        outputs = [f"result {i}" for i in range(results)]
        proto = onnx.helper.make_node(operator, names, outputs, **given)
        values = {n: each for n, each in zip(names, operands, strict=True) if each is not None}
        inner = replace(self.graph, values=values, lists={}, absent={})
        found = listed(read_sized(Applied(self, proto, inner), OPERATORS[operator]))
        return cast("list[Value]", found)

    def apply(self, operator: str, *operands: Value | None, **attributes: Any) -> SSAValue:
        """The first result of an operator of ONNX, as the result of an operation."""
        return self.ssa(self.apply_all(operator, *operands, **attributes)[0])

    def converted(self, value: Value, dtype: np.dtype[Any]) -> SSAValue:
        """A value with another element type, as a Cast of ONNX converts it."""
        if dtype_of(value) == dtype:
            return self.ssa(value)
        if isinstance(value, Known) and value.state is None:
            with np.errstate(all="ignore"):
                return self.ssa(self.known(np.asarray(value.make()).astype(dtype)))
        return self.apply("Cast", value, to=onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def sliced(self, value: Value, axis: int, start: int, size: int, step: int = 1) -> SSAValue:
        """Some elements along an axis."""
        shape = shape_of(value)
        if size == shape[axis] and step == 1:
            return self.ssa(value)
        starts = [start if i == axis and size else 0 for i in range(len(shape))]
        steps = [step if i == axis else 1 for i in range(len(shape))]
        sizes = [size if i == axis else n for i, n in enumerate(shape)]
        return self.add(nn.SliceOp(self.ssa(value), starts, steps, sizes))

    def reshaped_to(self, value: Value, shape: Sequence[int]) -> Value:
        """A value in another shape. What is known at import stays known."""
        if shape_of(value) == tuple(shape):
            return value
        if isinstance(value, Known) and value.state is None:
            make, size = value.make, tuple(shape)
            return Known(self.name, size, value.dtype, lambda: make().reshape(size))
        return self.reshape(self.ssa(value), shape)

    def scaled(self, value: SSAValue, factor: float) -> SSAValue:
        """A value times a number."""
        return value if factor == 1.0 else self.add(nn.ScaleOp(value, factor))

    def shifted(self, value: SSAValue, amount: float) -> SSAValue:
        """A value plus a number."""
        return value if amount == 0.0 else self.add(nn.ShiftOp(value, amount))

    def ignoring(self, labels: SSAValue, number: int) -> tuple[SSAValue, SSAValue]:
        """Labels with 0 in place of the number of ignored positions, and which these are."""
        ignored = self.add(nn.EqualOp(labels, self.constant(number, labels)))
        zero = self.constant(0, labels)
        return self.add(nn.SelectOp(ignored, zero, labels)), ignored

    def expanded(self, value: Value, shape: Sequence[int]) -> SSAValue:
        """A value that is repeated along axes of size 1."""
        found = self.ssa(value)
        if nn.shape_of(found) == tuple(shape):
            return found
        return self.add(nn.ExpandOp(found, shape))

    def transposed(self, value: Value, order: Sequence[int]) -> SSAValue:
        """A value with its axes in another order."""
        found = self.ssa(value)
        if list(order) == sorted(order):
            return found
        return self.add(nn.TransposeOp(found, order))
