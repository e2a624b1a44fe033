"""Operators of MXNet that move elements, merge axes, or multiply matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.errors import InputError
from ..building import Value
from .symbol_node import Importer, MxNode


def _flatten(node: MxNode) -> Value:
    shape = node.shape(0)
    return node.reshaped_to(node.value(0), (*shape[:1], prod(shape[1:])))


def _reshape(node: MxNode) -> Value:
    """In the new shape, 0 keeps an axis, -1 is what is left, -2 keeps all others, -3 joins two, and
    -4 splits one into the next two.
    """
    shape = list(node.shape(0))
    reverse = node.flag("reverse")
    if not node.has("shape") and node.has("target_shape"):
        given = [-1 if n == 0 else n for n in node.integers("target_shape")]
        given[:1] = [0] if node.flag("keep_highest") else given[:1]
    else:
        given = node.integers("shape")
        _ = node.text("target_shape", ""), node.text("keep_highest", "")
    wanted = _resolved(node, given[::-1] if reverse else given, shape[::-1] if reverse else shape)
    return node.reshaped_to(node.value(0), wanted[::-1] if reverse else wanted)


def _resolved(node: MxNode, given: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The shape that codes stand for. Raises InputError."""
    found: list[int] = []
    source, codes = list(shape), list(given)
    problem = node.bad(f"shape {list(given)} of {list(shape)}")
    while codes:
        code = codes.pop(0)
        if code == -2:
            found += source
            source = []
        elif code in (0, -3, -4):
            count = 2 if code == -3 else 1
            if len(source) < count:
                raise problem
            sizes = [source.pop(0) for _ in range(count)]
            if code == -4:
                parts, codes = codes[:2], codes[2:]
                found += _halves(node, parts, sizes[0], problem)
            else:
                found.append(prod(sizes))
        elif code == -1 or code > 0:
            found.append(code)
            source = source[1:]
        else:
            raise problem
    if found.count(-1) > 1:
        raise problem
    if -1 in found:
        rest = prod(n for n in found if n != -1)
        if not rest or prod(shape) % rest:
            raise problem
        found[found.index(-1)] = prod(shape) // rest
    return found


def _halves(node: MxNode, parts: Sequence[int], size: int, problem: InputError) -> list[int]:
    """The two sizes that an axis is split into, of which -1 is what is left."""
    if len(parts) != 2 or max(parts) < 1:
        raise problem
    known = prod(n for n in parts if n != -1)
    if min(parts) == 0 or min(parts) < -1 or size % known:
        raise problem
    return [size // known if n == -1 else n for n in parts]


def _transpose(node: MxNode) -> Value:
    rank = len(node.shape(0))
    given = node.integers("axes", ()) or list(range(rank))[::-1]
    order = [node.axis(a, rank) for a in given]
    if sorted(order) != list(range(rank)):
        raise node.bad(f"axes {given} of {rank}")
    return node.transposed(node.value(0), order)


def _swap(node: MxNode) -> Value:
    rank = len(node.shape(0))
    order = list(range(rank))
    a, b = (node.axis(node.integer(each, 0), rank) for each in ("dim1", "dim2"))
    order[a], order[b] = b, a
    return node.transposed(node.value(0), order)


def _concat(node: MxNode) -> Value:
    axis = node.axis(node.integer("dim", 1), len(node.shape(0)))
    values = [node[i] for i in range(node.count)]
    return values[0] if len(values) == 1 else node.add(nn.ConcatOp(values, axis))


def _stack(node: MxNode) -> Value:
    rank = len(node.shape(0))
    axis = node.axis(node.integer("axis", 0), rank + 1)
    values = [
        node.reshape(node[i], (*node.shape(i)[:axis], 1, *node.shape(i)[axis:]))
        for i in range(node.count)
    ]
    return values[0] if len(values) == 1 else node.add(nn.ConcatOp(values, axis))


def _split(node: MxNode) -> Sequence[Value]:
    shape, count = node.shape(0), node.integer("num_outputs", least=1)
    axis, squeeze = node.axis(node.integer("axis", 1), len(shape)), node.flag("squeeze_axis")
    if shape[axis] % count or (squeeze and shape[axis] != count) or count > 1 << 16:
        raise node.bad(f"{count} outputs of {shape[axis]} elements along axis {axis}")
    size = shape[axis] // count
    found = [node.sliced(node.value(0), axis, i * size, size) for i in range(count)]
    rest = (*shape[:axis], *shape[axis + 1 :])
    return [node.reshape(each, rest) for each in found] if squeeze else found


def _slice_axis(node: MxNode) -> Value:
    shape = node.shape(0)
    axis = node.axis(node.integer("axis"), len(shape))
    end = node.integer("end") if node.has("end") else shape[axis]
    begin, stop, _ = slice(node.integer("begin"), end).indices(shape[axis])
    if stop <= begin:
        raise node.bad(f"a slice from {begin} to {stop} of {shape[axis]} elements")
    return node.sliced(node.value(0), axis, begin, stop - begin)


def _expand(node: MxNode) -> Value:
    shape = node.shape(0)
    axis = node.axis(node.integer("axis"), len(shape) + 1)
    return node.reshaped_to(node.value(0), (*shape[:axis], 1, *shape[axis:]))


def _squeeze(node: MxNode) -> Value:
    shape = node.shape(0)
    given = node.integers("axis") if node.has("axis") else []
    axes = {node.axis(a, len(shape)) for a in given} or {i for i, n in enumerate(shape) if n == 1}
    if any(shape[a] != 1 for a in axes):
        raise node.bad(f"axes {sorted(axes)} of {list(shape)}; need sizes of 1")
    return node.reshaped_to(node.value(0), [n for i, n in enumerate(shape) if i not in axes])


def _tile(node: MxNode) -> Value:
    reps, rank = node.integers("reps"), len(node.shape(0))
    if len(reps) > rank or any(n < 1 for n in reps):
        raise node.unsupported(f"reps {reps}", f"at most {rank} numbers of 1 or more are")
    whole = [1] * (rank - len(reps)) + reps
    return node.apply("Tile", node.value(0), node.integers_known(whole))


def _pad(node: MxNode) -> Value:
    rank = len(node.shape(0))
    mode = node.choice("mode", ("constant", "edge", "reflect"))
    widths, number = node.integers("pad_width"), node.number("constant_value", 0.0)
    if len(widths) != 2 * rank or any(n < 0 for n in widths):
        raise node.bad(f"pad_width {widths}; need {2 * rank} numbers of 0 or more")
    pads = node.integers_known([*widths[::2], *widths[1::2]])
    fill = node.ssa(node.constant(number, node[0])) if mode == "constant" else None
    return node.apply("Pad", node[0], pads, fill, mode=mode)


def _axes(node: MxNode) -> list[int]:
    rank = len(node.shape(0))
    given = node.integers("axis", ()) if node.has("axis") else []
    axes = sorted({node.axis(a, rank) for a in given})
    if node.flag("exclude"):
        return [a for a in range(rank) if a not in axes]
    return axes or list(range(rank))


def _reduced(combiner: str, *, mean: bool = False) -> Importer:
    def importer(node: MxNode) -> Value:
        axes, keeps = _axes(node), node.flag("keepdims")
        shape = node.shape(0)
        value = node.wide(node[0]) if combiner == "sum" else node[0]
        if axes:
            value = node.add(nn.ReduceOp(value, combiner, axes, keep_dims=keeps))
        if mean:
            value = node.scaled(value, 1.0 / max(prod(shape[a] for a in axes), 1))
        value = node.cast(value, nn.element_of(node[0]))
        # A reduction of all axes has one axis of one element.
        return value if nn.shape_of(value) else node.reshape(value, (1,))

    return importer


def _norm(node: MxNode) -> Value:
    axes, keeps = _axes(node), node.flag("keepdims")
    if node.integer("ord", 2) != 2:
        raise node.unsupported("ord", "2 is")
    squares = node.add(nn.SquareOp(node.wide(node[0])))
    total = node.add(nn.ReduceOp(squares, "sum", axes, keep_dims=keeps))
    found = node.cast(node.add(nn.SqrtOp(total)), nn.element_of(node[0]))
    return found if nn.shape_of(found) else node.reshape(found, (1,))


def _arg(operator: str) -> Importer:
    """The place of the largest or smallest element, as a float."""

    def importer(node: MxNode) -> Value:
        if not node.has("axis"):
            raise node.unsupported("no axis", "an axis is")
        axis, keeps = node.integer("axis"), int(node.flag("keepdims"))
        found = node.apply(operator, node[0], axis=axis, keepdims=keeps)
        return node.cast(found, nn.element_of(node[0]))

    return importer


def _turned(node: MxNode, value: SSAValue, *, wanted: bool) -> SSAValue:
    order = list(range(len(nn.shape_of(value))))
    return node.transposed(value, [*order[:-2], order[-1], order[-2]]) if wanted else value


def _dot(node: MxNode) -> Value:
    node.takes(2)
    if len(node.shape(0)) != 2 or len(node.shape(1)) != 2:
        raise node.unsupported(
            f"operands of shapes {list(node.shape(0))} and {list(node.shape(1))}", "two axes are"
        )
    return _product(node)


def _product(node: MxNode) -> Value:
    node.takes(2)
    left = _turned(node, node[0], wanted=node.flag("transpose_a"))
    right = _turned(node, node[1], wanted=node.flag("transpose_b"))
    return node.apply("MatMul", left, right)


def _repeated(make: Callable[[MxNode], Value], names: Sequence[str]) -> dict[str, Importer]:
    return dict.fromkeys(names, make)


SHAPES: dict[str, Importer] = {
    **_repeated(_flatten, ("Flatten", "flatten")),
    **_repeated(_reshape, ("Reshape", "reshape")),
    **_repeated(_concat, ("Concat", "concat")),
    **_repeated(_pad, ("Pad", "pad")),
    **_repeated(_swap, ("SwapAxis", "swapaxes")),
    "SliceChannel": _split,
    "split": _split,
    "transpose": _transpose,
    "stack": _stack,
    "slice_axis": _slice_axis,
    "expand_dims": _expand,
    "squeeze": _squeeze,
    "tile": _tile,
    **{name: _reduced("sum") for name in ("sum", "sum_axis")},
    "mean": _reduced("sum", mean=True),
    **{name: _reduced("max") for name in ("max", "max_axis")},
    **{name: _reduced("min") for name in ("min", "min_axis")},
    "prod": _reduced("prod"),
    "norm": _norm,
    "argmax": _arg("ArgMax"),
    "argmin": _arg("ArgMin"),
    "dot": _dot,
    "batch_dot": _product,
}
"""The importers of operators that move or merge elements."""
