"""Shards of weights: of an operator that reads one, and of its gradient and update.

A step of training reads a weight forward and backward, computes its gradient, and updates it. If a
dimension of the forward operator is cut across chips, so is an axis of its weight. The operators of
the layer's backward and update phase are then cut along the dimensions that this axis becomes in
them, so each chip holds and computes its own part of the weight, its gradient and its moments:

    forward      y[m, n] = sum of x[m, k] w[k, n]       n = 4
    backward    dx[m, n] = sum of dy[m, k] w[n, k]      k = 4
                dw[m, n] = sum of x[k, m] dy[k, n]      n = 4
    update       w[d0, d1] - rate dw[d0, d1]            d1 = 4
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import prod

from xdsl.ir import Operation, SSAValue

from ...dialects import control, nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.geometry.space import Space
from ...ir.phases import FORWARD, Phases
from ...ir.provenance import origin_names
from ...ir.upstream import ModuleOp
from ..replicas.following import Samples, Spans, axes_along, dims_along, in_shape
from .shards import Shard

Across = tuple[int, ...]

PASSING = (Reinterpretation, control.RepeatOp, nn.LoadOp, nn.StoreOp)
"""Operations that pass on the values they read, or those of another run."""


def shards_of_training(
    module: ModuleOp, chosen: Mapping[Operation, Across]
) -> dict[Operation, Across]:
    """The chips for each dimension of the backward and update operators of some layers.

    Args:
        chosen: operators, each with the chips over which its dimensions are cut; () for one chip.
    """
    phases = Phases.of(module)
    if phases.nodes is None or not any(chosen.values()):
        return {}
    ops = [*module.walk()]
    passing = [op for op in ops if isinstance(op, PASSING)]
    nodes = {
        op: _nodes(op, phases)
        for op in ops
        if isinstance(op, Structured | Movement)
        and op not in chosen
        and phases.phase(op) != FORWARD
    }
    found: dict[Operation, dict[int, int]] = {}
    for op, across in chosen.items():
        if phases.phase(op) != FORWARD or not isinstance(op, Structured):
            continue
        own = _nodes(op, phases)
        layer = [each for each, its in nodes.items() if any(_is_in(node, own) for node in its)]
        for d, chips in enumerate(across):
            for axis in _axes_of_weights(op, d, layer, passing) if chips > 1 else ():
                axis.follow()
                for each, dim in axis.dims.items():
                    found.setdefault(each, {}).setdefault(dim, chips)
    return {op: tuple(cut.get(d, 1) for d in range(_rank(op))) for op, cut in found.items()}


def in_layers(names: Collection[str], module: ModuleOp) -> Iterator[Operation]:
    """The operations of the backward and update phase of some layers.

    Args:
        names: of nodes, of operators made from several nodes ("fc1+relu1"), or patterns.
    """
    phases, parts = Phases.of(module), {part for name in names for part in name.split("+")}
    for op in module.walk():
        if phases.phase(op) != FORWARD and any(
            _is_in(node, parts) or any(fnmatchcase(node, part) for part in parts)
            for node in _nodes(op, phases)
        ):
            yield op


def shard_of_weight(op: Operation, name: str, chips: int) -> Shard | None:
    """The shard that cuts the weight of an operator across chips, along the largest dimension that
    the result has too; None if there is none.

    Args:
        name: of the operator.
    """
    if not isinstance(op, Structured):
        return None
    space = op.structure().space
    dims = {
        d
        for value, access in zip(op.operands, space.operands, strict=True)
        if isinstance(_source(value), nn.LoadOp) and len(nn.shape_of(value)) > 1
        for d in access.dims()
        if space.dims[d].kind == "parallel" and space.dims[d].size >= chips
    }
    if not dims:
        return None
    largest = max(dims, key=lambda d: space.dims[d].size)
    return Shard(name, ((space.dims[largest].name, chips),))


def weight_bytes(op: Operation) -> int:
    """The bytes of the weights that an operator reads."""
    loads = {_source(value) for value in op.operands}
    return sum(
        prod(nn.shape_of(each.result)) * numpy_dtype(nn.element_of(each.result)).itemsize
        for each in loads
        if isinstance(each, nn.LoadOp)
    )


def _nodes(op: Operation, phases: Phases) -> set[str]:
    """The nodes of the forward phase that an operation was made from."""
    return {phases.node_of(path) for name in origin_names(op) for path in name.split("+")}


def _is_in(node: str, names: Collection[str]) -> bool:
    """Whether a node is one of some nodes, or below one."""
    return any(node == name or node.startswith(f"{name}/") for name in names)


def _rank(op: Operation) -> int:
    if isinstance(op, Movement):
        return len(op.moves()[0].results[0].axes)
    assert isinstance(op, Structured)
    return len(op.structure().space.dims)


def _axes_of_weights(
    op: Structured, dim: int, layer: Sequence[Operation], passing: Sequence[Operation]
) -> Iterator[_Axis]:
    """The axis of each weight that an operation reads along a dimension."""
    assert isinstance(op, Operation)
    space = op.structure().space
    for value, access in zip(op.operands, space.operands, strict=True):
        axes = axes_along((Samples(dim, space.dims[dim].size),), access)
        axes = in_shape(axes, access.shape, nn.shape_of(value))
        if axes and isinstance(_source(value), nn.LoadOp):
            yield _Axis(layer, passing, {value: axes}, prod(nn.shape_of(value)))


@dataclass
class _Axis:
    """An axis of a weight, where it is found in a step of training.

    It is followed through values with as many elements as the weight: its gradient, what the
    optimiser keeps of it, and its new value. Activations that have it as well belong to other
    layers, too.

    Attributes:
        layer: the operations in which it is looked for.
        passing: the operations of the module that pass values on.
        values: the values that have it, with its place.
        size: the elements of the weight.
        dims: the dimension that it is in each operation of the layer. Of an operation that moves
            elements, it is the axis of the result.
    """

    layer: Sequence[Operation]
    passing: Sequence[Operation]
    values: dict[SSAValue, Spans]
    size: int
    dims: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def follow(self) -> None:
        """Find the axis wherever it is."""
        known = -1
        while known < len(self.values) + len(self.dims):
            known = len(self.values) + len(self.dims)
            self._join_states()
            for each in self.passing:
                if isinstance(each, Reinterpretation):
                    self._view(each)
                elif isinstance(each, control.RepeatOp):
                    self._loop(each)
            for each in self.layer:
                self._operation(each)

    def _set(self, value: SSAValue, spans: Spans) -> None:
        if spans and prod(nn.shape_of(value)) == self.size:
            self.values.setdefault(value, spans)

    def _same(self, values: Iterable[SSAValue]) -> None:
        """Say that values of one shape have the axis at the same place."""
        every = [*values]
        spans = next((self.values[each] for each in every if each in self.values), ())
        for each in every:
            self._set(each, spans)

    def _join_states(self) -> None:
        states: dict[str, list[SSAValue]] = {}
        for op in self.passing:
            if isinstance(op, nn.LoadOp):
                states.setdefault(op.state.string_value(), []).append(op.result)
            elif isinstance(op, nn.StoreOp):
                states.setdefault(op.state.string_value(), []).append(op.stored)
        for values in states.values():
            self._same(values)

    def _view(self, op: Operation) -> None:
        for one, other in ((op.operands[0], op.results[0]), (op.results[0], op.operands[0])):
            spans = self.values.get(one, ())
            self._set(other, in_shape(spans, nn.shape_of(one), nn.shape_of(other)))

    def _loop(self, op: control.RepeatOp) -> None:
        last = op.body.block.last_op
        assert last is not None
        for each in zip(op.initial, op.body.block.args, last.operands, op.outputs, strict=False):
            self._same(each)

    def _operation(self, op: Operation) -> None:
        if isinstance(op, Movement):
            for value, space in zip(op.operands, op.moves(), strict=False):
                self._space(op, space, (value,), is_movement=True)
        else:
            assert isinstance(op, Structured)
            self._space(op, op.structure().space, op.operands, is_movement=False)

    def _space(
        self, op: Operation, space: Space, operands: Sequence[SSAValue], *, is_movement: bool
    ) -> None:
        """Find the axis in the space of an operation, and then in what it reads and makes."""
        every = [
            *zip(operands, space.operands, strict=False),
            *zip(op.results, space.results, strict=False),
        ]
        dims: Spans = ()
        for value, access in every:
            dims = dims or dims_along(self.values.get(value, ()), nn.shape_of(value), access)
        if not dims:
            return
        axes = axes_along(dims, space.results[0]) if is_movement else dims
        if axes:
            self.dims.setdefault(op, axes[0].along)
        for value, access in every:
            own = axes_along(dims, access)
            self._set(value, in_shape(own, access.shape, nn.shape_of(value)))


def _source(value: SSAValue) -> Operation | None:
    """The operation whose elements a value has, perhaps in another shape."""
    owner = value.owner
    while isinstance(owner, Reinterpretation):
        assert isinstance(owner, Operation)
        owner = owner.operands[0].owner
    return owner if isinstance(owner, Operation) else None
