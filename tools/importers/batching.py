"""Imports a model for another number of samples than its file states.

A model is imported twice: with its own sizes, and with inputs whose first axis has another size.
Wherever a value of the second import has another shape, one axis holds the samples, and its size
differs by the same factor. A Reshape keeps the order of elements, so its new shape follows from its
operand, even if the file gives the number of samples as a constant. A node that mixes samples, such
as a mean over all of them, is refused: its result would depend on the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.structured import Composite, Movement, Reinterpretation, Structured
from ...ir.context import AbeleContext
from ...ir.geometry.space import Space
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from .binding import Sizes
from .building import Known, NodeBuilder, NodeWatcher, Shape, Value, shape_of
from .errors import UnsupportedError
from .front_end import Reading, weigh_nothing

MIXES = "the node mixes the samples of a batch"
"""The reason why a node cannot be imported for another number of samples."""


@dataclass
class Shapes:
    """Records the shapes of a model's values, in an import with the model's own sizes.

    Attributes:
        operands, results: by the name of the node; None for one that is left out, or that is no
            tensor.
    """

    operands: dict[str, list[Shape | None]] = field(default_factory=dict[str, list[Shape | None]])
    results: dict[str, list[Shape | None]] = field(default_factory=dict[str, list[Shape | None]])

    def add_input(self, name: str, value: SSAValue) -> None:
        """Ignore an input, whose shape is that of the model."""

    def reshaped(self, node: NodeBuilder, shape: Shape) -> None:
        """None: the model's own shape is right."""

    def add_node(
        self, node: NodeBuilder, operands: Sequence[Value | None], results: Sequence[Value | None]
    ) -> None:
        """Record the shapes of a node's operands and results."""
        self.operands[node.name] = shapes_of(operands)
        self.results[node.name] = shapes_of(results)


def shapes_of(values: Sequence[Value | None]) -> list[Shape | None]:
    """The shapes of values; None for None."""
    return [None if each is None else shape_of(each) for each in values]


@dataclass
class Batch:
    """Follows the samples in an import with another number of samples.

    Attributes:
        old, new: the sizes of the inputs' first axis.
        own: the shapes of values for the old size.
        inputs: the names of the inputs that have samples.
        axes: the axis of the samples, for values that have one.
    """

    old: int
    new: int
    own: Shapes
    inputs: Collection[str] = ()
    axes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def add_input(self, name: str, value: SSAValue) -> None:
        """The samples of an input lie along its first axis."""
        if name in self.inputs:
            self.axes[value] = 0

    def reshaped(self, node: NodeBuilder, shape: Shape) -> Shape | None:
        """The result's shape of a node that only reshapes operand 0; None if the model's own shape
        is right.

        Raises UnsupportedError if the reshape would mix samples.

        Args:
            shape: of the operand.
        """
        if node.name not in self.own.operands:
            return None
        before, after = self.own.operands[node.name][0], self.own.results[node.name][0]
        if before is None or after is None:
            return None
        axis = self._axis(node, before, shape)
        return None if axis is None else self._moved(node, before, axis, after)

    def add_node(
        self, node: NodeBuilder, operands: Sequence[Value | None], results: Sequence[Value | None]
    ) -> None:
        """Find the axis of the samples in a node's results. Raises UnsupportedError if there is
        none.
        """
        if node.name not in self.own.results:
            return
        before, after = self.own.operands[node.name], shapes_of(operands)
        has_samples = any(
            old is not None and new is not None and self._axis(node, old, new) is not None
            for old, new in zip(before, after, strict=True)
        )
        if has_samples:
            for op in node.ops:
                self._follow(node, op)
        for value, old in zip(results, self.own.results[node.name], strict=True):
            if value is None or isinstance(value, Known) or old is None:
                continue
            axis = self._axis(node, old, shape_of(value))
            if axis is not None:
                self.axes[value] = axis
            elif has_samples and node.program.known(value) is None:
                raise self._mixed(node)

    def _mixed(self, node: NodeBuilder, why: str = MIXES) -> InputError:
        return UnsupportedError(
            f"{node.program.place}: --batch {self.new}: {node}: {why}, so the model works for "
            f"{self.old} only"
        )

    def _axis(self, node: NodeBuilder, old: Shape, new: Shape) -> int | None:
        """The axis of the samples, from a shape for the old number of samples and one for the new
        number.
        """
        if old == new:
            return None
        differ = [i for i, (n, m) in enumerate(zip(old, new, strict=False)) if n != m]
        if len(old) == len(new) and len(differ) == 1:
            (axis,) = differ
            if old[axis] * self.new == new[axis] * self.old:
                return axis
        raise self._mixed(
            node, f"the shape {list(old)} becomes {list(new)}, with no axis for the samples"
        )

    def _moved(self, node: NodeBuilder, before: Shape, axis: int, after: Shape) -> Shape:
        """The new result shape of a reshape whose operand has a sample axis.

        The samples are the slowest part of their axis in the operand, so they are the slowest part
        of the result's axis that has equally many elements before it.

        Args:
            before, after: the shapes for the old number of samples.
            axis: of the samples in the operand.
        """
        outer = prod(before[:axis])
        places = [
            i
            for i, n in enumerate(after)
            if prod(after[:i]) == outer and n * self.new % self.old == 0
        ]
        if not places:
            raise self._mixed(node)
        place = next((i for i in places if after[i] == before[axis]), places[0])
        grown = after[place] * self.new // self.old
        return (*after[:place], grown, *after[place + 1 :])

    def _follow(self, node: NodeBuilder, op: Operation) -> None:
        """Find the axis of the samples in an operation's results, from those of its operands."""
        given = [(i, self.axes[v]) for i, v in enumerate(op.operands) if v in self.axes]
        if not given:
            return
        if isinstance(op, Structured):
            space = op.structure().space
            for i, axis in given:
                self._through(node, op, space, i, axis)
        elif isinstance(op, Movement):
            moves = op.moves()
            for i, axis in given:
                self._through(node, op, moves[i], 0, axis)
        elif isinstance(op, Composite) and not isinstance(op, Reinterpretation):
            self._past(node, op, given[0][1])

    def _through(
        self, node: NodeBuilder, op: Operation, space: Space, operand: int, axis: int
    ) -> None:
        """Follow the dimensions of an operand's axis to the results. All must be parallel."""
        dims = {d for d, _ in space.operands[operand].axes[axis].terms}
        related = {d for relation in space.relations for d, _ in relation.axis.terms}
        if related & dims or any(space.dims[d].kind != "parallel" for d in dims):
            raise self._mixed(node)
        for result, access in zip(op.results, space.results, strict=False):
            for place, each in enumerate(access.axes):
                if dims & {d for d, _ in each.terms}:
                    self.axes[result] = place

    def _past(self, node: NodeBuilder, op: Operation, axis: int) -> None:
        """A composite keeps the sample axis. It must not work along this axis."""
        along = getattr(op, "axis", None)
        if along is not None and along.value.data == axis:
            raise self._mixed(node)
        for result in op.results:
            if len(nn.shape_of(result)) > axis:
                self.axes[result] = axis


Prepare = Callable[[Sizes], NodeWatcher | None]
"""Completes and checks the sizes of inputs, and returns what watches the nodes, for the program."""

Read = Callable[[Reading, Prepare], ModuleOp]
"""Reads a model. It calls the function when the model's inputs are known, before it adds them to
its program."""


def read_with_batch(reading: Reading, read: Read) -> ModuleOp:
    """The module of a model, with the number of samples that the reading asks for.

    Args:
        read: ends each node with `NodeBuilder.finish`, and asks `NodeBuilder.reshaped` for the
            shape of each reshape.
    """
    count = reading.batch
    if count is None:
        return read(reading, _checked)
    shapes = Shapes()

    def record(sizes: Sizes) -> Shapes:
        sizes.one_sample()
        sizes.check()
        return shapes

    def rebatch(sizes: Sizes) -> Batch | None:
        sizes.one_sample()
        sizes.check()
        old = sizes.rebatch(count)
        return Batch(old, count, shapes, sizes.samples) if old != count else None

    read(replace(reading, context=AbeleContext()), record)
    # Types that the model declares hold its own number of samples.
    return read(replace(reading, check=weigh_nothing, lenient=True), rebatch)


def _checked(sizes: Sizes) -> None:
    sizes.check()
