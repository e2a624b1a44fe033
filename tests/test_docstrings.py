"""Docstrings describe parameters and fields in sections, which mkdocstrings reads."""

import ast
import re
from collections.abc import Iterator

import pytest
from sources import ROOMS, ROOT, files, statements, text_of

Described = ast.FunctionDef | ast.ClassDef


def parameters(node: Described) -> set[str]:
    """The parameters of a function, or the fields of a class and the parameters of its making."""
    if isinstance(node, ast.FunctionDef):
        given = node.args
        return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    fields = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    made = (each for each in node.body if isinstance(each, ast.FunctionDef))
    return fields.union(*(parameters(each) for each in made if each.name == "__init__"))


def in_prose(source: str) -> Iterator[str]:
    """The parameters and fields that docstrings describe in the middle of their prose."""
    for node in statements(ast.parse(source)):
        if not isinstance(node, Described):
            continue
        text, names = ast.get_docstring(node) or "", parameters(node)
        for paragraph in re.split(r"\n[ \t]*\n", text):
            if paragraph.startswith((" ", "Args:", "Attributes:")):
                continue
            flat = " ".join(paragraph.split())
            found = re.findall(r"(?:^|(?<=[.;] ))(\w+)(?:, \w+)*: ", flat)
            yield from (f"{node.lineno}: {node.name}: {name}" for name in found if name in names)


@pytest.mark.parametrize("room", [*ROOMS, "examples"])
def test_no_parameter_is_described_in_the_middle_of_prose(room: str):
    found = {path: [*in_prose(text_of(path))] for path in files(room)}
    assert found
    assert {str(path.relative_to(ROOT)): each for path, each in found.items() if each} == {}


def test_a_parameter_in_prose_is_found():
    assert [*in_prose('def f(a, b):\n    """Add. a: one. b: the other."""')] == [
        "1: f: a",
        "1: f: b",
    ]
    assert [*in_prose('def f(a):\n    """Add.\n\n    Args:\n        a: one.\n    """')] == []
