"""Programs of every level with edited operations, as a person or a wrong pass leaves them.

The text parses and is mostly right, so the damage reaches verifiers, passes and machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects.levels import NN
from ....ir.text import print_module
from ....ir.upstream import ModuleOp
from .case import Case, Damaged
from .models import model_case
from .programs import MODULE, any_program

Item = TypeVar("Item")

NUMBERS = (0, 1, -1, 2, 3, 4, 7, 8, 255, 65535, 2**31 - 1, 2**31, 2**40, 2**60, 2**62)
NUDGES = (-8, -4, -2, -1, 1, 2, 4, 8)


def _one(items: Sequence[Item], random: np.random.Generator) -> Item:
    return items[int(random.integers(len(items)))]


def _operations(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op is not module]


def _values(module: ModuleOp) -> list[SSAValue]:
    values: list[SSAValue] = [value for op in module.walk() for value in op.results]
    return values + [argument for block in _blocks(module) for argument in block.args]


def _blocks(module: ModuleOp) -> list[Block]:
    return [block for op in module.walk() for region in op.regions for block in region.blocks]


def _operand(module: ModuleOp, random: np.random.Generator) -> str:
    """Replace an operand by another value, half of the time one of its type."""
    users = [op for op in _operations(module) if op.operands]
    if not users:
        return ""
    op = _one(users, random)
    place = int(random.integers(len(op.operands)))
    old, values = op.operands[place], _values(module)
    same = [value for value in values if value.type == old.type]
    op.operands[place] = _one(same if random.random() < 0.7 and same else values, random)
    return f"{op.name}: another operand {place}"


def _swap_operands(module: ModuleOp, random: np.random.Generator) -> str:
    users = [op for op in _operations(module) if len(op.operands) > 1]
    if not users:
        return ""
    op = _one(users, random)
    op.operands = list(op.operands)[::-1]
    return f"{op.name}: operands reversed"


def _attribute(module: ModuleOp, random: np.random.Generator) -> str:
    """Give an operation the value of an attribute of the same name of another operation."""
    owners = [op for op in _operations(module) if op.properties]
    if not owners:
        return ""
    op = _one(owners, random)
    name = _one(sorted(op.properties), random)
    others = [each.properties[name] for each in owners if name in each.properties]
    op.properties[name] = _one(others, random)
    return f"{op.name}: {name} of another operation"


def _foreign_attribute(module: ModuleOp, random: np.random.Generator) -> str:
    """Replace the value of an attribute by the value of any attribute of any operation."""
    owners = [op for op in _operations(module) if op.properties]
    if not owners:
        return ""
    op, other = _one(owners, random), _one(owners, random)
    name = _one(sorted(op.properties), random)
    foreign = _one(sorted(other.properties), random)
    op.properties[name] = other.properties[foreign]
    return f"{op.name}: {name} is {foreign} of {other.name}"


def _no_attribute(module: ModuleOp, random: np.random.Generator) -> str:
    owners = [op for op in _operations(module) if op.properties]
    if not owners:
        return ""
    op = _one(owners, random)
    name = _one(sorted(op.properties), random)
    del op.properties[name]
    return f"{op.name}: no {name}"


def _number(module: ModuleOp, random: np.random.Generator) -> str:
    """Change a number in an attribute, at any depth."""
    owners = [op for op in _operations(module) if op.properties]
    for _ in range(10):
        if not owners:
            return ""
        op = _one(owners, random)
        name = _one(sorted(op.properties), random)
        changed = _changed(op.properties[name], random)
        if changed is not None:
            op.properties[name] = changed
            return f"{op.name}: {name} has another number"
    return ""


def _changed(attribute: Attribute, random: np.random.Generator) -> Attribute | None:
    """A copy of an attribute with a changed number or name inside; None if it contains none."""
    # Numbers inside attributes have many types, which the checks below find out.
    whole: Any = attribute
    if isinstance(attribute, IntAttr):
        return IntAttr(_other(cast(int, whole.data), random))
    if isinstance(attribute, IntegerAttr):
        return IntegerAttr(_other(whole.value.data, random), whole.type, truncate_bits=True)
    if isinstance(attribute, StringAttr):
        return StringAttr(_one(("", "x", "[/b]", "../x", attribute.data + "x"), random))
    if isinstance(attribute, DenseArrayBase):
        dense: Any = whole
        numbers = [int(each) for each in dense.get_values()]
        return DenseArrayBase.from_list(dense.elt_type, _list(numbers, random))
    if isinstance(attribute, ArrayAttr):
        array: Any = whole
        items: list[Attribute] = list(array.data)
        if not items:
            return None
        place = int(random.integers(len(items)))
        inner = _changed(items[place], random)
        if inner is None or random.random() < 0.3:
            return ArrayAttr(items[:place] + items[place + 1 :])
        return ArrayAttr([*items[:place], inner, *items[place + 1 :]])
    return _of_parameters(cast(Any, attribute), random)


def _of_parameters(attribute: Any, random: np.random.Generator) -> Attribute | None:
    parameters: list[Attribute] = list(getattr(attribute, "parameters", ()))
    order = random.permutation(len(parameters))
    for place in order:
        inner = _changed(cast(Attribute, parameters[place]), random)
        if inner is not None:
            parameters[place] = inner
            made: Attribute = attribute.__class__.new(parameters)
            return made
    return None


def _other(number: int, random: np.random.Generator) -> int:
    return number + _one(NUDGES, random) if random.random() < 0.6 else _one(NUMBERS, random)


def _list(numbers: list[int], random: np.random.Generator) -> list[int]:
    if not numbers or random.random() < 0.2:
        return [*numbers, 1] if random.random() < 0.5 else numbers[:-1]
    place = int(random.integers(len(numbers)))
    return [*numbers[:place], _other(numbers[place], random), *numbers[place + 1 :]]


def _symbol(module: ModuleOp, random: np.random.Generator) -> str:
    """Make an operation refer to another symbol."""
    names = [
        name.data
        for op in _operations(module)
        if isinstance(name := op.properties.get("sym_name"), StringAttr)
    ]
    users = [
        (op, key)
        for op in _operations(module)
        for key, value in sorted(op.properties.items())
        if isinstance(value, SymbolRefAttr)
    ]
    if not users or not names:
        return ""
    op, key = _one(users, random)
    op.properties[key] = SymbolRefAttr(_one([*names, "nothing"], random))
    return f"{op.name}: {key} is another symbol"


def _type(module: ModuleOp, random: np.random.Generator) -> str:
    """Give a value the type of another value."""
    values = _values(module)
    if not values:
        return ""
    value = _one(values, random)
    new = _one([each.type for each in values], random)
    tensor: Any = value.type
    if isinstance(value.type, TensorType) and random.random() < 0.5:
        shape = _list([int(n) for n in tensor.get_shape()], random)
        new = TensorType(tensor.element_type, shape)
    object.__setattr__(value, "_type", new)
    return "another type of a value"


def _delete(module: ModuleOp, random: np.random.Generator) -> str:
    """Delete an operation whose results are unused or can be replaced by other values."""
    operations = [op for op in _operations(module) if op.name != "func.func"]
    if not operations:
        return ""
    op = _one(operations, random)
    for result in op.results:
        same = [v for v in _values(module) if v.type == result.type and v.owner is not op]
        if not same:
            return ""
        result.replace_all_uses_with(_one(same, random))
    op.detach()
    op.erase(safe_erase=False)
    return f"no {op.name}"


def _duplicate(module: ModuleOp, random: np.random.Generator) -> str:
    operations = _operations(module)
    op = _one(operations, random)
    block = op.parent_block()
    if block is None:
        return ""
    block.insert_ops_before([op.clone()], op)
    return f"{op.name} twice"


def _move(module: ModuleOp, random: np.random.Generator) -> str:
    """Move an operation to another place of its block."""
    operations = [op for op in _operations(module) if op.parent_block() is not None]
    op = _one(operations, random)
    block = op.parent_block()
    assert block is not None
    others = [each for each in block.ops if each is not op]
    if not others:
        return ""
    other = _one(others, random)
    op.detach()
    block.insert_ops_before([op], other)
    return f"{op.name} before {other.name}"


def _move_into(module: ModuleOp, random: np.random.Generator) -> str:
    """Move an operation into another block."""
    blocks = _blocks(module)
    operations = [op for op in _operations(module) if not op.regions]
    if not operations:
        return ""
    op, block = _one(operations, random), _one(blocks, random)
    op.detach()
    first = block.first_op
    if first is None:
        block.add_op(op)
    else:
        block.insert_ops_before([op], first)
    return f"{op.name} in another block"


EDITS: tuple[tuple[int, Callable[[ModuleOp, np.random.Generator], str]], ...] = (
    (3, _operand),
    (1, _swap_operands),
    (4, _attribute),
    (1, _foreign_attribute),
    (1, _no_attribute),
    (8, _number),
    (3, _symbol),
    (2, _type),
    (3, _delete),
    (3, _duplicate),
    (3, _move),
    (1, _move_into),
)
"""Edits, and how likely they are. Each returns what it did, or "" if it could do nothing."""

EDIT_COUNTS = (1, 1, 1, 2, 3)


def edit_module(module: ModuleOp, random: np.random.Generator) -> str:
    """Edit a module in place. Returns a description of the edit."""
    weights = np.array([weight for weight, _ in EDITS], float)
    done: list[str] = []
    for _ in range(_one(EDIT_COUNTS, random)):
        _, edit = EDITS[int(random.choice(len(EDITS), p=weights / weights.sum()))]
        done.append(edit(module, random))
    return "; ".join(filter(None, done)) or "unchanged"


def edited_program(random: np.random.Generator, level: str) -> Case:
    """A program of a level with edited operations."""
    files = any_program(level, random)
    made = Damaged(files.text.encode(), "unchanged")
    for _ in range(20):
        module = files.program.module.clone()
        # Attributes refuse some numbers when they are made, and some modules cannot be printed.
        try:
            done = edit_module(module, random)
            text = print_module(module, locations=False)
        except Exception:
            continue
        made = Damaged(text.encode("utf-8", "surrogatepass"), done)
        break
    is_source = level == NN.name
    return model_case(MODULE, made, random, files.blobs, files.target, is_source=is_source)
