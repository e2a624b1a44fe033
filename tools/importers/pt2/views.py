"""Writes of operators with an underscore, such as add_, also through views of a tensor.

An export that was not decomposed writes into tensors as Python does: `x[:, 0] = y` is a select and
a copy_. A write gives the name of the tensor a new value. It also changes the tensor of which that
is a view, and the views of it that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ....ir.provenance import is_known, named
from ..building import Value, shape_of
from .aten_node import AtenNode, Importer, Scope, View, only
from .ops_movement import MOVEMENTS
from .ops_sized import read_sized
from .schema import Argument, Meta, Tensor

Written = Callable[[AtenNode, Value, Value], Value]
"""Returns the tensor behind a view, with new elements of the view."""

BASE, PART = "\0base", "\0part"
"""The names of both tensors, for importers that are called without a node of the file."""


def _reshaped(node: AtenNode, base: Value, part: Value) -> Value:
    return node.reshaped_to(part, shape_of(base))


def _scattered(operator: str) -> Written:
    """A write by the importer of an operator that puts a part back into a whole."""

    def write(node: AtenNode, base: Value, part: Value) -> Value:
        return _called(node, operator, {"src": Tensor(PART)}, base, part)

    return write


def _again(node: AtenNode, base: Value, part: Value) -> Value:
    """The same exchange of two axes, which undoes itself."""
    del base
    name = node.operator.split(".")[1]
    return _called(node, name, {"self": Tensor(PART)}, part, part)


def _unpermuted(node: AtenNode, base: Value, part: Value) -> Value:
    order = [a % len(shape_of(base)) for a in node.integers("dims")]
    return node.transposed(part, [order.index(i) for i in range(len(order))])


def _called(
    node: AtenNode,
    name: str,
    arguments: Mapping[str, Argument],
    base: Value,
    part: Value,
) -> Value:
    """The result of an operator for the arguments of a node and others."""
    importer = MOVEMENTS[name]
    given = {**node.call.arguments, "self": Tensor(BASE), **arguments}
    scope = replace(node.scope, values={BASE: base, PART: part}, stale=set())
    inner = AtenNode(replace(node.call, arguments=given), node.name, scope, node.source)
    inner.ops = node.ops
    return only(read_sized(inner, name, importer))


def _whole(node: AtenNode, base: Value, part: Value) -> Value:
    del node, base
    return part


VIEWS: dict[str, Written] = {
    **dict.fromkeys(
        ("view", "_unsafe_view", "unsqueeze", "squeeze", "unflatten", "view_as"), _reshaped
    ),
    **dict.fromkeys(("detach", "alias"), _whole),
    **dict.fromkeys(("t", "transpose", "swapaxes", "swapdims", "numpy_T", "mT"), _again),
    "permute": _unpermuted,
    "select": _scattered("select_scatter"),
    "slice": _scattered("slice_scatter"),
}
"""What writes through an operator whose result shares the elements of its operand."""

VIEWS_OF_ROWS: dict[str, Written] = {
    **dict.fromkeys(("reshape", "flatten", "reshape_as"), _reshaped),
    **dict.fromkeys(("contiguous", "to"), _whole),
}
"""The same for operators that copy unless the elements of their operand lie in row-major order."""

UNWRITABLE = (
    *("expand", "broadcast_to", "expand_as", "unbind", "split", "split_with_sizes", "chunk"),
    *("narrow", "diagonal", "as_strided", "unfold", "movedim", "tensor_split"),
)
"""Operators with views through which abele does not write."""


def follow_view(node: AtenNode, operator: str, results: list[Value], importer: Importer) -> None:
    """Remember that the results of a node share the elements of its first operand, if they do."""
    name, base = operator.split(".")[1], node.call.arguments.get("self")
    if not isinstance(base, Tensor):
        return
    write = VIEWS.get(name)
    if name in VIEWS_OF_ROWS and _is_row_major(node.scope.tensors.get(base.name)):
        same = node.scope.values.get(base.name) is results[0] or name != "to"
        write = VIEWS_OF_ROWS[name] if same else None
    if write is None and name not in UNWRITABLE:
        return

    def read() -> Value:
        found = only(importer(node))
        _locate(node)
        return found

    for result in node.call.results:
        if isinstance(result, Tensor):
            node.scope.add_view(result.name, View(base.name, node, read, _writer(node, write)))


def follow_same(node: AtenNode, name: str) -> None:
    """Remember that the result of a node is the tensor with a name itself."""
    view = node.scope.views.get(name)
    # One tensor may be written to thousands of times. All its names lead to it at once.
    first = view.base if view is not None and view.write is _second else name

    def read() -> Value:
        return node.scope.current(first)

    for result in node.call.results:
        if isinstance(result, Tensor) and result.name != first:
            node.scope.values[result.name] = read()
            node.scope.add_view(result.name, View(first, node, read, _second))


def _second(base: Value, part: Value) -> Value:
    del base
    return part


def _writer(node: AtenNode, write: Written | None) -> Callable[[Value, Value], Value]:
    def written(base: Value, part: Value) -> Value:
        if write is None:
            raise node.unsupported(
                "writing into this view",
                "export the program again after program.run_decompositions(), which writes nowhere",
            )
        return write(node, base, part)

    return written


def _is_row_major(meta: Meta | None) -> bool:
    """Whether the elements of a tensor lie in row-major order, as far as its sizes are numbers."""
    if meta is None or len(meta.strides) != len(meta.sizes):
        return False
    step: int | None = 1
    for size, stride in zip(reversed(meta.sizes), reversed(meta.strides), strict=True):
        if size != 1 and isinstance(stride, int) and step is not None and stride != step:
            return False
        step = step * size if step is not None and isinstance(size, int) else None
    return True


def write(scope: Scope, name: str, value: Value) -> None:
    """Give a tensor new elements, and the tensors that share them."""
    written = {name: value}
    view = scope.views.get(name)
    while view is not None:
        value = view.write(scope.current(view.base), value)
        _locate(view.node)
        written[view.base] = value
        view = scope.views.get(view.base)
    for each in reversed(written):
        scope.values[each] = written[each]
        scope.stale.discard(each)
        _outdate(scope, each)


def _locate(node: AtenNode) -> None:
    """Give the operations that a node has built since its end a name below the node's."""
    for op in node.ops:
        if not is_known(op.location):
            op.location = named(f"{node.name}/view", node.source)


def _outdate(scope: Scope, name: str) -> None:
    """Let the views of a tensor be read again."""
    pending = [name]
    while pending:
        new = [each for each in scope.views_of.get(pending.pop(), ()) if each not in scope.stale]
        scope.stale.update(new)
        pending += new
