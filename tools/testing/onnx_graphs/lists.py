"""Draws nodes that take or return sequences of tensors, or optional values."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from onnx import helper

from .node import TYPE_WEIGHTS, NotDrawn
from .pool import CODES, INTEGERS, Listed, Maybe, Pool, PoolValue

MOST_ITEMS = 4
"""Elements of a sequence, at most."""

Builder = Callable[[Pool, Random], None]
"""Appends one node, and those that it needs, to a pool. Raises NotDrawn."""


def _some(pool: Pool, random: Random) -> PoolValue:
    there = [v for v in pool.shared if v.type in TYPE_WEIGHTS]
    return random.choice(there) if there else pool.leaf("tensor(float)", (2,), random)


def _more(pool: Pool, random: Random, like: PoolValue, alike: bool) -> list[PoolValue]:
    """Further elements of a sequence.

    Args:
        alike: whether they have the shape of the first element.
    """
    found: list[PoolValue] = []
    for _ in range(random.randrange(MOST_ITEMS)):
        there = [
            v for v in pool.shared if v.type == like.type and (v.shape == like.shape or not alike)
        ]
        reuse = len(there) > 1 and random.random() < 0.6
        found.append(random.choice(there) if reuse else pool.leaf(like.type, like.shape, random))
    return found


def new_list(pool: Pool, random: Random, alike: bool = False) -> Listed:
    """A new sequence of tensors.

    Args:
        alike: of one shape.
    """
    items = [_some(pool, random)]
    items += _more(pool, random, items[0], alike or random.random() < 0.7)
    return _append_list(
        pool,
        random,
        "SequenceConstruct",
        [v.name for v in items],
        Listed("", items[0].type, tuple(v.shape for v in items)),
    )


def _append_list(
    pool: Pool,
    random: Random,
    operator: str,
    operands: list[str],
    like: Listed,
    **attributes: Any,
) -> Listed:
    made = Listed(pool.name(random), like.type, like.shapes)
    pool.append(helper.make_node(operator, operands, [made.name], **attributes), [], False)
    pool.lists.append(made)
    return made


def _list(pool: Pool, random: Random) -> Listed:
    """An existing or a new sequence."""
    there = pool.lists[-3:]
    return random.choice(there) if there and random.random() < 0.8 else new_list(pool, random)


def _result(
    pool: Pool, random: Random, operator: str, operands: list[str], like: PoolValue
) -> PoolValue:
    made = PoolValue(pool.name(random), like.type, like.shape)
    pool.append(helper.make_node(operator, operands, [made.name]), [made])
    pool.told.append(made.info)
    return made


def _position(pool: Pool, random: Random, at: int, size: int, known: bool = True) -> str:
    """The name of a position, sometimes counted from the end."""
    at = at - size if size and random.random() < 0.4 else at
    return pool.given(np.array(at), INTEGERS, random, known=known).name


def _construct(pool: Pool, random: Random) -> None:
    new_list(pool, random)


def _empty(pool: Pool, random: Random) -> None:
    """Insert a tensor into an empty sequence."""
    value = _some(pool, random)
    like = Listed("", value.type, ())
    if value.type == "tensor(float)" and random.random() < 0.5:
        empty = _append_list(pool, random, "SequenceEmpty", [], like)
    else:
        code = CODES[value.type]
        empty = _append_list(pool, random, "SequenceEmpty", [], like, dtype=code)
    like = Listed("", value.type, (value.shape,))
    _append_list(pool, random, "SequenceInsert", [empty.name, value.name], like)


def _insert(pool: Pool, random: Random) -> None:
    whole = _list(pool, random)
    if len(whole.shapes) > 2 * MOST_ITEMS:
        raise NotDrawn("a sequence that is long enough")
    there = [v for v in pool.shared if v.type == whole.type]
    shape = whole.shapes[0] if whole.shapes else (2,)
    value = random.choice(there) if there else pool.leaf(whole.type, shape, random)
    count = len(whole.shapes)
    at, operands = count, [whole.name, value.name]
    if random.random() < 0.6:
        # Counted from the end, a position is that of an element, and never behind the last one.
        at = random.randrange(count + 1)
        operands.append(_position(pool, random, at, count if at < count else 0))
    shapes = (*whole.shapes[:at], value.shape, *whole.shapes[at:])
    _append_list(pool, random, "SequenceInsert", operands, Listed("", whole.type, shapes))


def _erase(pool: Pool, random: Random) -> None:
    whole = _list(pool, random)
    count = len(whole.shapes)
    if not count:
        raise NotDrawn("an empty sequence")
    at, operands = count - 1, [whole.name]
    if random.random() < 0.6:
        at = random.randrange(count)
        operands.append(_position(pool, random, at, count))
    shapes = (*whole.shapes[:at], *whole.shapes[at + 1 :])
    _append_list(pool, random, "SequenceErase", operands, Listed("", whole.type, shapes))


def _at(pool: Pool, random: Random) -> None:
    """Read an element of a sequence.

    If all elements have one shape, the position may be known only when the model runs.
    """
    whole = _list(pool, random)
    count = len(whole.shapes)
    if not count:
        raise NotDrawn("an empty sequence")
    at = random.randrange(count)
    known = len(set(whole.shapes)) > 1 or random.random() < 0.7
    operands = [whole.name, _position(pool, random, at, count, known)]
    _result(pool, random, "SequenceAt", operands, PoolValue("", whole.type, whole.shapes[at]))


def _length(pool: Pool, random: Random) -> None:
    whole = _list(pool, random)
    _result(pool, random, "SequenceLength", [whole.name], PoolValue("", INTEGERS, ()))


def _concat(pool: Pool, random: Random) -> None:
    whole = _list(pool, random)
    if not whole.shapes:
        raise NotDrawn("an empty sequence")
    first, count = whole.shapes[0], len(whole.shapes)
    alike = len(set(whole.shapes)) == 1
    axes = [
        axis
        for axis in range(len(first))
        if all(
            len(s) == len(first)
            and (*s[:axis], *s[axis + 1 :]) == (*first[:axis], *first[axis + 1 :])
            for s in whole.shapes
        )
    ]
    if alike and len(first) < 5 and (not axes or random.random() < 0.4):
        axis, rank, is_new = random.randint(0, len(first)), len(first) + 1, 1
        shape = (*first[:axis], count, *first[axis:])
    elif axes:
        axis, rank, is_new = random.choice(axes), len(first), 0
        size = sum(s[axis] for s in whole.shapes)
        shape = (*first[:axis], size, *first[axis + 1 :])
    else:
        raise NotDrawn("elements that do not join")
    made = PoolValue(pool.name(random), whole.type, shape)
    axis = axis - rank if random.random() < 0.4 else axis
    attributes: dict[str, Any] = {
        "axis": axis,
        **({"new_axis": is_new} if is_new or random.random() < 0.3 else {}),
    }
    node = helper.make_node("ConcatFromSequence", [whole.name], [made.name], **attributes)
    pool.append(node, [made])
    pool.told.append(made.info)


def _split(pool: Pool, random: Random) -> None:
    there = [v for v in pool.shared if v.type in TYPE_WEIGHTS and v.shape and 0 not in v.shape]
    value = random.choice(there) if there else pool.leaf("tensor(float)", (3, 2), random)
    axis = random.randrange(len(value.shape))
    n, rest = value.shape[axis], (value.shape[:axis], value.shape[axis + 1 :])
    attributes: dict[str, Any] = {
        "axis": axis - len(value.shape) if random.random() < 0.4 else axis
    }
    operands, keeps = [value.name], True
    way = random.choice(("ones", "size", "sizes"))
    if way == "ones":
        sizes = [1] * n
        if random.random() < 0.6:
            keeps = random.random() < 0.3
            attributes["keepdims"] = int(keeps)
    elif way == "size":
        each = random.randint(1, n)
        sizes = [min(each, n - start) for start in range(0, n, each)]
        operands.append(pool.given(np.array(each), INTEGERS, random, known=True).name)
    else:
        cuts = sorted(random.choices(range(n + 1), k=random.randrange(3)))
        sizes = [b - a for a, b in zip((0, *cuts), (*cuts, n), strict=True)]
        operands.append(pool.given(np.array(sizes), INTEGERS, random, known=True).name)
    if len(sizes) > 3 * MOST_ITEMS:
        raise NotDrawn("too many parts")
    shapes = tuple((*rest[0], size, *rest[1]) if keeps else (*rest[0], *rest[1]) for size in sizes)
    like = Listed("", value.type, shapes)
    _append_list(pool, random, "SplitToSequence", operands, like, **attributes)


# Optional values


def _optional(pool: Pool, random: Random) -> None:
    """An optional value that holds a tensor, a sequence or nothing."""
    name, way = pool.name(random), random.random()
    if way < 0.25:
        value = _some(pool, random)
        tensor = helper.make_tensor_type_proto(CODES[value.type], value.shape)
        node = helper.make_node("Optional", [], [name], type=tensor)
        pool.append(node, [], False)
        pool.maybes.append(Maybe(name, None))
        return
    content = new_list(pool, random) if way < 0.5 else _some(pool, random)
    pool.append(helper.make_node("Optional", [content.name], [name]), [], False)
    pool.maybes.append(Maybe(name, content))


def _maybe(pool: Pool, random: Random) -> Maybe:
    if not pool.maybes or random.random() < 0.3:
        _optional(pool, random)
    return random.choice(pool.maybes)


def _has_element(pool: Pool, random: Random) -> None:
    name = _maybe(pool, random).name
    _result(pool, random, "OptionalHasElement", [name], PoolValue("", "tensor(bool)", ()))


def _get_element(pool: Pool, random: Random) -> None:
    held = _maybe(pool, random)
    if held.content is None:
        raise NotDrawn("no element")
    if isinstance(held.content, Listed):
        _append_list(pool, random, "OptionalGetElement", [held.name], held.content)
        return
    _result(pool, random, "OptionalGetElement", [held.name], held.content)


LISTED: dict[str, Builder] = {
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "ConcatFromSequence": _concat,
    "SplitToSequence": _split,
    "Optional": _optional,
    "OptionalHasElement": _has_element,
    "OptionalGetElement": _get_element,
}
"""Operators on sequences and optional values."""

TAKING_TENSORS = ("OptionalHasElement", "OptionalGetElement")
TENSORS_TAKEN = 18
"""Operators on optional values that take tensors as well, and the first opset in which they do."""
