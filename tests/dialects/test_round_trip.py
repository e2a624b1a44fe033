"""Every operation of every dialect of abele is read back from each of its forms.

Programs are generated and taken down level by level, so an operation that is added is tested with
no further line.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from random import Random

import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, f32
from xdsl.ir import Attribute, Operation

from abele.dialects.levels import DIALECTS, load_dialect
from abele.dialects.structured import Composite, Movement, Reinterpretation, Structured
from abele.ir.printer import module_text
from abele.ir.text import blobs_of, parse_module, print_inline, print_module
from abele.ir.upstream import ModuleOp
from abele.tools.testing.generators.build import ELEMENTS, build, default_operators
from abele.tools.testing.generators.levels import at_level, known_levels
from abele.tools.testing.generators.program import Program
from abele.tools.testing.generators.sketch import random_sketch

BYTE = IntegerType(8, Signedness.UNSIGNED)
SEEDS = range(40)
FEW = ("nn.add", "nn.concat", "nn.matmul", "nn.reshape")
"""Operators that lead to every operation of the lower levels; few, so that they are made soon."""

FORMS: dict[str, Callable[[ModuleOp], str]] = {
    "pretty": print_module,
    "pretty without locations": lambda module: print_module(module, locations=False),
    "generic": lambda module: module_text(module, locations=True, generic=True),
    "inline": print_inline,
}

OPERATIONS = sorted(
    (op for name in DIALECTS for op in load_dialect(name).operations), key=lambda op: op.name
)


@cache
def program(
    level: str, seed: int, operators: tuple[str, ...], elements: tuple[Attribute, ...] = ELEMENTS
) -> Program | None:
    made = build(random_sketch(Random(seed), 4), default_operators(operators), elements)
    return at_level(made, level)


def program_with(cls: type[Operation]) -> Program:
    """A generated program that holds an operation of a class, if need be with bytes."""
    runs = issubclass(cls, Structured | Movement | Reinterpretation | Composite)
    of = (cls.name,) if runs else FEW
    for seed, elements, level in product(SEEDS, (ELEMENTS, (f32, BYTE)), known_levels()):
        found = program(level, seed, of, elements)
        if found is not None and any(type(each) is cls for each in found.module.walk()):
            return found
    pytest.fail(f"no generated program has a {cls.name}")


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.name)
def test_an_operation_is_read_back_from_all_its_forms(cls: type[Operation]):
    found = program_with(cls)
    for blob in blobs_of(found.module):
        found.context.blobs.add(blob)
    for name, form in FORMS.items():
        text = form(found.module)
        again = parse_module(text, found.context)
        assert again.is_structurally_equivalent(found.module), name
        if name != "pretty without locations":
            assert form(again) == text, name
