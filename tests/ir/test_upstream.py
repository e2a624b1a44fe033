import ast
from collections.abc import Iterator, Sequence

import pytest
from sources import ROOMS, ROOT, Import, files, imports_in, imports_of

import abele.ir.upstream as upstream

UPSTREAM = ROOT / "ir" / "upstream.py"
DIRECT = ("xdsl.ir", "xdsl.ir.affine", "xdsl.irdl", "xdsl.traits", "xdsl.dialects")
"""The modules of xDSL that any file imports from, `xdsl.dialects` with all below it."""


def imports(nodes: Sequence[Import]) -> Iterator[tuple[str, str]]:
    """The module and the name of each import from xDSL; an empty name for a whole module."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and not node.level and node.module is not None:
            found = [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [(alias.name, "") for alias in node.names]
        else:
            found = []
        yield from ((module, name) for module, name in found if module.split(".")[0] == "xdsl")


def misplaced(nodes: Sequence[Import]) -> list[str]:
    """The imports from xDSL that belong in upstream.py."""
    return [
        f"{module}: {name}" if name else module
        for module, name in imports(nodes)
        if not name
        or name in upstream.__all__
        or not (module in DIRECT or module.startswith("xdsl.dialects."))
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from xdsl.ir import Operation", []),
        ("from xdsl.dialects.builtin import TensorType", []),
        ("from .xdsl import walk", []),
        ("from xdsl.dialects.builtin import ModuleOp, i1", ["xdsl.dialects.builtin: ModuleOp"]),
        ("from xdsl.parser import BaseParser", ["xdsl.parser: BaseParser"]),
        ("def inner():\n    from xdsl.irdl.error import E", ["xdsl.irdl.error: E"]),
        ("import xdsl.ir", ["xdsl.ir"]),
    ],
)
def test_an_import_that_belongs_in_upstream_is_found(line: str, found: list[str]):
    assert misplaced(imports_of(line)) == found


@pytest.mark.parametrize("room", ROOMS)
def test_names_that_move_between_releases_are_imported_from_upstream(room: str):
    found = {
        str(path.relative_to(ROOT)): bad
        for path in files(room)
        if path != UPSTREAM and (bad := misplaced(imports_in(path)))
    }
    assert found == {}


def test_upstream_exports_every_name_that_it_imports_and_no_other():
    imported = [
        alias.asname or alias.name
        for node in imports_in(UPSTREAM)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(imported) == sorted(upstream.__all__)


def test_every_export_of_upstream_is_used():
    used = {
        alias.name
        for path in files()
        for node in imports_in(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == "upstream"
        for alias in node.names
    }
    assert sorted(set(upstream.__all__) - used) == []
