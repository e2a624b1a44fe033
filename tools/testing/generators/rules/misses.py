"""Near-misses: matching programs with one change to something that the rule's pattern mentions.

The changed program may still match. Nothing here checks that, and such a program is a good test
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from random import Random
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import HasParent

from .....dialects.dtypes import numpy_dtype
from .....dialects.levels import NN
from .....ir.rules.bound_rule import BoundPattern, BoundRule
from .....ir.rules.build import Infers, InfersAll
from .....ir.rules.choices import Choices, Hints
from .....ir.rules.vocabulary import Vocabulary
from .....ir.upstream import UNKNOWN_LOC, ModuleOp
from ..program import Program
from ..values import values_of
from .embed import Instance
from .reading import Fit, places_of

TRIES = 8
"""How many replacements are tried for an operation or for the value of an attribute."""


@dataclass
class Copy:
    """A copy of a program, for changing.

    Attributes:
        parts: each part of the rule's pattern, with the operation that it matches.
    """

    program: Program
    parts: list[tuple[BoundPattern, Operation]]
    vocabulary: Vocabulary
    random: Random

    @property
    def module(self) -> ModuleOp:
        """The module of the program."""
        return self.program.module

    @property
    def root(self) -> Operation:
        """The operation that the root of the pattern matches."""
        return self.parts[0][1]

    def choices(self) -> Choices:
        """Generates values of attributes."""
        return Choices(self.random, Hints(), sizes=(1, 2, 3))


Change: TypeAlias = "Callable[[], bool]"
"""Makes one change in place. Returns False and changes nothing if that is impossible."""

Kind: TypeAlias = "Callable[[Copy], Iterator[Change]]"
"""Yields all possible changes of one kind to a copy."""


def missed(
    name: str,
    instance: Instance,
    found: Fit,
    rule: BoundRule,
    vocabulary: Vocabulary,
    random: Random,
) -> Instance | None:
    """A copy of a program with one change; None if no change of this kind is possible.

    Args:
        name: the kind of change, a key of MISSES.
        found: the match of the rule in the instance.
    """
    program = instance.program.clone()
    program.source = None
    old, new = list(instance.program.module.walk()), list(program.module.walk())
    at = {op: i for i, op in enumerate(old)}
    parts = [
        (each, new[at[found.ops[each.place]]])
        for each in places_of(rule.variants[0])
        if each.place in found.ops
    ]
    copy = Copy(program, parts, vocabulary, random)
    changes = list(MISSES[name](copy))
    random.shuffle(changes)
    return Instance(program, copy.root) if any(change() for change in changes) else None


def _tensors(op: Operation) -> list[TensorType[Attribute]]:
    return [
        cast("TensorType[Attribute]", v.type)
        for v in (*op.operands, *op.results)
        if isinstance(v.type, TensorType)
    ]


def _is_right(op: Operation) -> bool:
    """Whether an operation verifies and its result has its inferred type."""
    # xDSL's error prints everything around the operation, which is slow.
    alone = op if op.parent is None or op.has_trait(HasParent) else op.clone()
    try:
        if isinstance(op, Infers) and op.infer() != op.results[0].type:
            return False
        if isinstance(op, InfersAll) and list(op.infer_all()) != [v.type for v in op.results]:
            return False
        alone.verify(verify_nested_ops=False)
    except Exception:
        # A user's operation may raise any error on invalid input.
        return False
    finally:
        if alone is not op:
            # A guard may count the uses of a value.
            alone.drop_all_references()
    return True


# Changes


def _another_operation(copy: Copy) -> Iterator[Change]:
    for pattern, op in copy.parts:
        if not op.regions:
            yield partial(_with_other_class, copy, pattern, op)


def _with_other_class(copy: Copy, pattern: BoundPattern, op: Operation) -> bool:
    dialect = op.name.partition(".")[0]
    others = [
        cls
        for name, cls in sorted(copy.vocabulary.ops.items())
        if cls not in pattern.classes and name.partition(".")[0] == dialect
    ]
    for cls in copy.random.sample(others, min(4 * TRIES, len(others))):
        new = _of_class(cls, op, copy)
        if new is not None:
            _replace(op, new)
            copy.parts = [(part, new if each is op else each) for part, each in copy.parts]
            return True
    return False


def _of_class(cls: type[Operation], op: Operation, copy: Copy) -> Operation | None:
    """An operation of another class with the same operands and result type; None if none fits."""
    info = copy.vocabulary.info(cls)
    if info.regions or info.segmented or not info.takes(len(op.operands)):
        return None
    properties: dict[str, Attribute] = {}
    for name, known in info.attributes.items():
        value = op.properties.get(name, known.default)
        if value is None and not known.is_optional:
            value = copy.choices().attribute(
                name, known.kind, known.definition.constr, _tensors(op), ()
            )
        if value is not None and known.is_property:
            properties[name] = value
    new = cls.create(
        operands=op.operands,
        result_types=[r.type for r in op.results],
        properties=properties,
        location=UNKNOWN_LOC,
    )
    if _is_right(new):
        return new
    new.operands = []
    return None


def _replace(op: Operation, new: Operation) -> None:
    block = op.parent
    assert block is not None
    new.location = op.location
    block.insert_op_before(new, op)
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.detach()
    op.erase()


def _another_attribute(copy: Copy) -> Iterator[Change]:
    for pattern, op in copy.parts:
        for each in pattern.fields:
            if each.is_note and each.name in op.attributes:
                yield partial(_without_note, op, each.name)
        for name in copy.vocabulary.info(type(op)).attributes:
            if name not in pattern.absent:
                yield partial(_with_other, copy, op, name)


def _without_note(op: Operation, name: str) -> bool:
    del op.attributes[name]
    return True


def _what_it_does_not_mention(copy: Copy) -> Iterator[Change]:
    for pattern, op in copy.parts:
        for name in pattern.absent:
            if name in copy.vocabulary.info(type(op)).attributes:
                yield partial(_with_other, copy, op, name)


def _with_other(copy: Copy, op: Operation, name: str) -> bool:
    """Give an attribute another value that its operation accepts. Returns whether it did."""
    known = copy.vocabulary.info(type(op)).attributes[name]
    holder = op.properties if known.is_property else op.attributes
    old = holder.get(name)
    for _ in range(TRIES):
        new = copy.choices().attribute(
            name, known.kind, known.definition.constr, _tensors(op)[::-1], ()
        )
        if new is None or new == old:
            new = None if known.is_optional and old is not None else old
        if new == old:
            continue
        if new is None:
            del holder[name]
        else:
            holder[name] = new
        if _is_right(op):
            return True
        if old is None:
            del holder[name]
        else:
            holder[name] = old
    return False


def _operands_swapped(copy: Copy) -> Iterator[Change]:
    for _, op in copy.parts:
        for i, j in combinations(range(len(op.operands)), 2):
            if op.operands[i] is not op.operands[j]:
                yield partial(_swap, op, i, j)


def _swap(op: Operation, i: int, j: int) -> bool:
    old = list(op.operands)
    op.operands[i], op.operands[j] = old[j], old[i]
    if _is_right(op):
        return True
    op.operands = old
    return False


def _another_operand(copy: Copy) -> Iterator[Change]:
    """Changes that replace one operand by another value of its type.

    A name that the pattern repeats then stands for two different values.
    """
    for _, op in copy.parts:
        visible = _visible(op) if op.operands else []
        for at, old in enumerate(op.operands):
            others = [v for v in visible if v.type == old.type and v is not old]
            if others:
                yield partial(_with_operand, op, at, copy.random.choice(others))


def _with_operand(op: Operation, at: int, value: SSAValue) -> bool:
    op.operands[at] = value
    return True


def _given_from_outside(copy: Copy) -> Iterator[Change]:
    """Changes that replace an operand by an argument.

    The operand is a constant, a state, or computed from constants and states.
    """
    main = next((op for op in copy.module.body.block.ops if isinstance(op, FuncOp)), None)
    if main is None or copy.program.level != NN:
        return
    inner = {result for _, op in copy.parts for result in op.results}
    for _, op in copy.parts:
        for value in op.operands:
            if value not in inner and isinstance(value.owner, Operation):
                yield partial(_argument, copy, main, value)


def _argument(copy: Copy, main: FuncOp, value: SSAValue) -> bool:
    try:
        dtype = numpy_dtype(cast("TensorType[Attribute]", value.type).element_type)
    except (ValueError, AttributeError):
        return False
    block = main.body.block
    shape = cast("TensorType[Attribute]", value.type).get_shape()
    number = len(block.args)
    copy.program.inputs[f"arg{number}"] = values_of(shape, dtype, number, "integers")
    new = block.insert_arg(value.type, number)
    value.replace_all_uses_with(new)
    main.update_function_type()
    return True


def _visible(op: Operation) -> list[SSAValue]:
    """The values in scope at an operation, which it could read."""
    found: list[SSAValue] = []
    here: Operation | None = op
    while here is not None and not isinstance(here, FuncOp):
        block = here.parent
        assert block is not None
        found += block.args
        for each in block.ops:
            if each is here:
                break
            found += each.results
        here = block.parent_op()
    return found


def _one_more_reader(copy: Copy) -> Iterator[Change]:
    inner = (op for _, op in copy.parts if op is not copy.root)
    for value in (value for op in inner for value in op.results):
        block = value.owner.parent
        last = block.last_op if isinstance(block, Block) else None
        if isinstance(last, ReturnOp):
            yield partial(_return_too, last, value)
        for use in value.uses:
            if use.operation.results and not use.operation.regions:
                yield partial(_read_again, use.operation)


def _read_again(reader: Operation) -> bool:
    again = reader.clone()
    block = reader.parent
    assert block is not None
    block.insert_op_after(again, reader)
    return _return_too(block.last_op, *again.results)


def _return_too(last: Operation | None, *values: SSAValue) -> bool:
    """Make a function return more values. Loops and branches stay unchanged."""
    if isinstance(last, ReturnOp):
        last.operands = [*last.operands, *values]
        main = last.parent_op()
        assert isinstance(main, FuncOp)
        main.update_function_type()
    return True


MISSES: dict[str, Kind] = {
    "another operation": _another_operation,
    "another attribute": _another_attribute,
    "an attribute that it does not mention": _what_it_does_not_mention,
    "operands swapped": _operands_swapped,
    "another operand": _another_operand,
    "an argument instead of a known value": _given_from_outside,
    "one more reader": _one_more_reader,
}
"""The kinds of change, by name."""


# New samples

_ELEMENTS: tuple[Attribute, ...] = (
    *(f32, f16, i32, bf16, i64),
    IntegerType(8, Signedness.UNSIGNED),
)


def retyped(root: Operation, random: Random) -> Operation | None:
    """A copy of a sample's root with other element types or sizes, or with one reshaped leaf.

    Returns None if no attempt verifies.

    Args:
        root: the root, in the sample's block.
    """
    tries = (_retyped(root, random) for _ in range(TRIES))
    return next((each for each in tries if each is not None), None)


def _retyped(root: Operation, random: Random) -> Operation | None:
    block = root.parent_block()
    assert block is not None
    change = _other_types(block, random)
    leaves = [change(a.type) for a in block.args]
    if leaves and random.random() < 0.4:
        leaves = [a.type for a in block.args]
        at = random.randrange(len(leaves))
        leaves[at] = _reshaped(leaves[at], block, random)
    made = Block(arg_types=leaves)
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, made.args, strict=True))
    new: Operation | None = None
    for op in block.ops:
        new = op.clone(values)
        made.add_op(new)
        for result in new.results:
            result._type = change(result.type)  # pyright: ignore[reportPrivateUsage]
        try:
            if isinstance(new, Infers):
                new.results[0]._type = new.infer()  # pyright: ignore[reportPrivateUsage]
            elif isinstance(new, InfersAll):
                for result, type_ in zip(new.results, new.infer_all(), strict=True):
                    result._type = type_  # pyright: ignore[reportPrivateUsage]
            new.verify(verify_nested_ops=False)
        except Exception:
            # A user's operation may raise any error on invalid input.
            return None
    return new


def _sizes(block: Block) -> list[int]:
    return sorted({n for op in block.ops for t in _tensors(op) for n in t.get_shape()})


def _reshaped(type_: Attribute, block: Block, random: Random) -> Attribute:
    """A type of another shape: a broadcast of it, a shape that broadcasts to it, or any shape."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    shape = list(tensor.get_shape())
    others = [list(t.get_shape()) for op in block.ops for t in _tensors(op)]
    shapes = [[random.choice((1, 2, 3)), *shape], shape[1:], *others]
    if shape:
        at = random.randrange(len(shape))
        size = random.choice((1, *_sizes(block)))
        shapes.append([*shape[:at], size, *shape[at + 1 :]])
    return TensorType(tensor.element_type, random.choice(shapes))


def _other_types(block: Block, random: Random) -> Callable[[Attribute], Attribute]:
    sizes = _sizes(block)
    elements = [t.element_type for op in block.ops for t in _tensors(op)]
    if sizes and random.random() < 0.5:
        old = random.choice(sizes)
        new = random.choice([n for n in (1, 2, 3, 4, old + 1) if n != old])
        return lambda type_: _with(type_, lambda shape: [new if n == old else n for n in shape])
    if not elements:
        return lambda type_: type_
    gone = random.choice(elements)
    element = random.choice([e for e in _ELEMENTS if e != gone])
    return lambda type_: _with(type_, list, gone, element)


def _with(
    type_: Attribute,
    shape: Callable[[Sequence[int]], list[int]],
    gone: Attribute | None = None,
    element: Attribute | None = None,
) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    same = element is None or tensor.element_type != gone
    kept = tensor.element_type if same else element
    assert kept is not None
    return TensorType(kept, shape(tensor.get_shape()))
