"""Draws branches, loops, calls, states and random bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    f16,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue

from .....dialects import nn, stablehlo
from .....dialects.dtypes import element_type
from .draft import (
    ALL,
    CLASSES,
    Draft,
    Draw,
    Properties,
    kind_of,
    number,
    scalar_like,
    tensor_like,
)
from .elementwise import compared

WORD = element_type(np.dtype(np.uint64))

DEEPEST = 2
"""The most regions around an operation with regions."""

MOST_ITERATIONS = 4


def _results(draft: Draft, most: int = 2) -> list[Attribute]:
    """The types of what a region returns: those of values that exist."""
    return [draft.value(ALL).type for _ in range(draft.random.randint(1, most))]


def _filled(inner: Draft, types: Sequence[Attribute]) -> Region:
    """A region that returns values of these types."""
    inner.end(_computed(inner, types))
    return inner.region()


def _computed(inner: Draft, types: Sequence[Attribute]) -> list[SSAValue]:
    """Values of these types that a few operations compute."""
    for _ in range(inner.random.randint(1, 3)):
        inner.shared.add_any(inner)
    return [inner.of(*kind_of(each)) for each in types]


def _branches(draft: Draft, name: str) -> None:
    if draft.depth >= DEEPEST:
        return
    types = _results(draft)
    if name == "stablehlo.if":
        index, count = draft.of((), i1), 2
    else:
        index, count = draft.of((), i32), draft.random.randint(1, 4)
    regions = [_filled(draft.inside(), types) for _ in range(count)]
    draft.add(name, [index], types, regions=regions)


def _while(draft: Draft, name: str) -> None:
    """A loop of a few iterations, whose number is often known."""
    if draft.depth >= DEEPEST:
        return
    carried = [draft.value(ALL) for _ in range(draft.random.randint(1, 2))]
    counter = draft.constant(draft.choice((0, 0, 0, 1, -2)), i32)
    step, most = draft.choice((1, 1, 2)), draft.random.randint(0, MOST_ITERATIONS)
    limit = None if draft.chance(0.6) else draft.of((), i32)
    values = [counter, *carried]
    draft.random.shuffle(values)
    at, types = values.index(counter), [each.type for each in values]
    test, body = draft.inside(types), draft.inside(types)
    ends = test.constant(most, i32)
    if limit is not None:
        ends = test.add("stablehlo.minimum", [ends, limit], [ends.type])[0]
    test.end([compared(test, test.block.args[at], ends, draft.choice(("LT", "LT", "LE")))])
    # What else the body computes must not change the counter.
    own = body.block.args[at]
    more = body.add("stablehlo.add", [own, body.constant(step, i32)], [own.type])[0]
    body.values = [each for each in body.values if each not in (own, more) or draft.chance(0.3)]
    made = _computed(body, [each for i, each in enumerate(types) if i != at])
    made.insert(at, more)
    body.end(made)
    draft.add(name, values, types, regions=[test.region(), body.region()])


def _function(draft: Draft, types: Sequence[Attribute]) -> func.FuncOp:
    """A function that takes values of these types: one that exists, or a new one."""
    known = [f for f in draft.shared.functions if list(f.function_type.inputs) == list(types)]
    if known and draft.chance(0.7):
        return draft.choice(known)
    inner = draft.inside(types, closed=True)
    _computed(inner, ())
    return _private(inner, dict.fromkeys((inner.block.args[-1], inner.values[-1])))


def _private(inner: Draft, results: Iterable[SSAValue]) -> func.FuncOp:
    """A new function of the program, whose body is a block that returns some values."""
    last, functions = [*results], inner.shared.functions
    inner.block.add_op(func.ReturnOp(*last))
    types = [each.type for each in inner.block.args], [each.type for each in last]
    made = func.FuncOp(f"f{len(functions)}", types, inner.region())
    made.attributes["sym_visibility"] = StringAttr("private")
    functions.append(made)
    return made


def _call(draft: Draft, name: str) -> None:
    if draft.depth >= DEEPEST:
        return
    for _ in range(draft.choice((1, 1, 2))):
        operands = [draft.value(ALL) for _ in range(draft.random.randint(1, 2))]
        called = _function(draft, [each.type for each in operands])
        symbol = called.sym_name.data
        how: Properties = {"callee": SymbolRefAttr(symbol)}
        if name == "stablehlo.composite":
            how = {
                "name": StringAttr(f"kit.{symbol}"),
                "decomposition": SymbolRefAttr(symbol),
                "composite_attributes": DictionaryAttr({}),
                "version": IntegerAttr(0, 32),
            }
        draft.add(name, operands, list(called.function_type.outputs), how)


def _custom_call(draft: Draft, name: str) -> None:
    if draft.chance(0.5):
        value = draft.value(ALL)
        draft.add(name, [value], [value.type], {"call_target_name": StringAttr("Sharding")})
        return
    value = draft.value((*[f32] * 3, f16, i32), 1)
    shape, largest = nn.shape_of(value), draft.chance(0.5)
    axis = draft.random.randrange(len(shape))
    kept = draft.random.randint(0, shape[axis])
    places = draft.add(
        "stablehlo.iota", [], [nn.tensor(shape, i32)], {"iota_dimension": number(axis)}
    )[0]
    pairs = [scalar_like(each) for each in (value, value, places, places)]
    inner = draft.inside(pairs, closed=True)
    a, b = inner.block.args[:2]
    is_float = nn.element_of(value) in (f32, f16)
    less = compared(inner, a, b, "GT" if largest else "LT", total=is_float)
    symbol = _private(inner, [less]).sym_name.data
    made = [n if a != axis else kept for a, n in enumerate(shape)]
    op = CLASSES[name].create(
        operands=[value, places, draft.of((), nn.element_of(value)), draft.of((), i32)],
        result_types=[tensor_like(each, made) for each in (value, places)],
        properties={
            "call_target_name": StringAttr("ApproxTopK"),
            "called_computations": ArrayAttr([SymbolRefAttr(symbol)]),
        },
        attributes={
            "mhlo.backend_config": DictionaryAttr({"reduction_dim": IntegerAttr(axis, i64)})
        },
    )
    draft.values += draft.put(op)


def _load(draft: Draft, _: str) -> None:
    """The value of a state, which the program keeps between runs."""
    if draft.depth:
        return
    state = _state(draft, draft.value(ALL))
    draft.values += draft.put(nn.LoadOp(state.sym_name.data, state.elements))


def _store(draft: Draft, _: str) -> None:
    if draft.depth:
        return
    value, shared = draft.value(ALL), draft.shared
    fits = [op for name, op in shared.states.items() if name not in shared.stored]
    fits = [op for op in fits if op.elements == value.type]
    state = draft.choice(fits) if fits else _state(draft, value)
    shared.stored.add(state.sym_name.data)
    draft.put(nn.StoreOp(value, state.sym_name.data))


def _state(draft: Draft, like: SSAValue) -> nn.StateOp:
    """A new state of the type of a value."""
    name = f"s{len(draft.shared.states)}"
    array = draft.array(nn.shape_of(like), nn.element_of(like))
    draft.shared.states[name] = made = nn.StateOp(name, array)
    return made


def _normalise(draft: Draft, name: str) -> None:
    value = draft.value((*[f32] * 4, f16), 1)
    if 0 in nn.shape_of(value):
        # There is no mean of nothing.
        value = draft.of((2, 3), nn.element_of(value))
    shape, element = nn.shape_of(value), nn.element_of(value)
    axis = draft.random.randrange(len(shape))
    each = nn.tensor([shape[axis]], element)
    how = {
        "epsilon": FloatAttr(draft.choice((1e-3, 0.5)), f32),
        "feature_index": number(axis),
    }

    def some(count: int) -> list[SSAValue]:
        return [draft.of([shape[axis]], element) for _ in range(count)]

    if name.endswith("inference"):
        operands, made = [value, *some(4)], [value.type]
    elif name.endswith("training"):
        operands, made = [value, *some(2)], [value.type, each, each]
    else:
        operands, made = [value, *some(3), draft.of(shape, element)], [value.type, each, each]
    draft.add(name, operands, made, how)


def _random_bits(draft: Draft, name: str) -> None:
    algorithm = draft.choice(("THREE_FRY", "THREE_FRY", "PHILOX", "DEFAULT"))
    length = 2 if algorithm == "THREE_FRY" else draft.choice((2, 3))
    state = draft.of([length], WORD)
    kinds = [element_type(np.dtype(f"{sign}{size}")) for sign in "ui" for size in (1, 2, 4, 4, 8)]
    made = nn.tensor(draft.shape(), draft.choice(kinds))
    how = {"rng_algorithm": stablehlo.RngAlgorithmAttr(algorithm)}
    draft.add(name, [state], [state.type, made], how)


TABLE: Mapping[str, Draw] = {
    "stablehlo.if": _branches,
    "stablehlo.case": _branches,
    "stablehlo.while": _while,
    "func.call": _call,
    "stablehlo.composite": _call,
    "stablehlo.custom_call": _custom_call,
    "nn.load": _load,
    "nn.store": _store,
    "stablehlo.batch_norm_inference": _normalise,
    "stablehlo.batch_norm_training": _normalise,
    "stablehlo.batch_norm_grad": _normalise,
    "stablehlo.rng_bit_generator": _random_bits,
}
"""What draws each operation, by name."""
