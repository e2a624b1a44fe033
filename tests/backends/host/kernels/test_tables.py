"""The numbers in tables stand once, for those who write them and for the kernels that read them."""

import ast
from pathlib import Path

import pytest

from abele.backends import host
from abele.backends.host.kernels import tables

FOLDER = Path(str(host.__file__)).parent
NUMBERS = {name for name in vars(tables) if name.isupper()}
FILES = [*FOLDER.parent.glob("codelets/*.py"), *FOLDER.rglob("*.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_other_file_defines_a_number_of_the_tables(path: Path):
    stored = {
        node.id
        for statement in ast.parse(path.read_text()).body
        if not isinstance(statement, ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if path.samefile(str(tables.__file__)):
        assert stored >= NUMBERS
    else:
        assert not stored & NUMBERS


def test_opcodes_of_steps_leave_a_bit_for_swapped_operands():
    names = "TAKE", "ADD", "SUB", "MUL", "DIV", "MAX", "MIN"
    operations = [getattr(tables, name) for name in names]
    turned = [tables.REVERSED + each for each in operations]
    assert len({*operations, *turned, tables.SAVE, tables.STORE}) == 2 * len(names) + 2
