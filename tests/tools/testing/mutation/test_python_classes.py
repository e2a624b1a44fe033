"""Each class of mistakes in Python applies where it should, and only there."""

import ast
from pathlib import Path

import pytest

from abele.tools.testing.mutation.python_classes import PYTHON_CLASSES
from abele.tools.testing.mutation.python_source import PythonFile

CLASSES = {each.name: each for each in PYTHON_CLASSES}


def changed(source: str, kind: str) -> list[str]:
    """The mutated bodies of a function, as text."""
    file = PythonFile("f", Path("f.py"), ast.parse(f"def f(n: int, xs):\n    {source}\n"))
    trees = [
        file.with_slot(index, new)
        for index, slot in enumerate(file.slots)
        for new in CLASSES[kind].changes(slot)
    ]
    return [ast.unparse(tree).partition("\n")[2].strip() for tree in trees]


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("drop-last", "[x for x in xs]", ["[x for x in tuple(xs)[:-1]]"]),
        ("drop-last", "[x for x in range(n)]", ["[x for x in range(n - 1)]"]),
        ("ceil-to-floor", "return -(-n // 4)", ["return n // 4"]),
        ("swap-operands", "return n - 4", ["return 4 - n"]),
        ("swap-operands", "return CopyOp(n, xs)", ["return CopyOp(xs, n)"]),
        ("drop-guard", "if n: return", ["pass"]),
        ("drop-guard", "return n and xs", ["return xs", "return n"]),
        ("drop-guard", "return [x for x in xs if x]", ["return [x for x in xs if True]"]),
        ("comparison", "return n < 4", ["return n <= 4"]),
        ("comparison", "return not n", ["return n"]),
        ("off-by-one", "return xs[n]", ["return xs[n + 1]", "return xs[n - 1]"]),
        ("off-by-one", "return n * 2", ["return n * 2 + 1", "return n * 2 - 1"]),
        ("wrong-axis", "return xs[0]", ["return xs[-1]"]),
        ("wrong-axis", "return xs[1:]", ["return xs[:-1]"]),
        ("wrong-constant", "return True", ["return False"]),
        ("wrong-function", "return any(xs)", ["return all(xs)"]),
        ("forget-effect", "xs.append(n)", ["pass"]),
        ("forget-effect", "xs[n] = n", ["pass"]),
        ("wrong-axis", "return xs[2]", []),
        ("off-by-one", "return xs[n.name]", []),
        ("swap-operands", "return n + 4", []),
    ],
)
def test_a_mistake_is_made_where_its_class_applies(kind: str, source: str, expected: list[str]):
    assert changed(source, kind) == expected
