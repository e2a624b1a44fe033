"""The statements of abele's source files, for tests that read all of them.

A syntax tree is large, and to walk through every expression takes longer than to parse. So only
what imports say is kept, and a test looks into a text before it parses it.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("ir", "dialects", "backends", "passes", "tools")

Import = ast.Import | ast.ImportFrom


def files(*rooms: str) -> Iterator[Path]:
    """All files of rooms, or of all rooms."""
    for room in rooms or ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement, also those in functions and classes."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, name, ())


@cache
def imports_in(path: Path) -> tuple[Import, ...]:
    """The imports of a file, wherever they stand."""
    return imports_of(text_of(path))


def imports_of(text: str) -> tuple[Import, ...]:
    return tuple(each for each in statements(ast.parse(text)) if isinstance(each, Import))
