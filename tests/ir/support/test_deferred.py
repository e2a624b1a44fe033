"""A deferred name stands for what it names, and its module is imported only then."""

import ast
import builtins
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from abele.ir.support.deferred import deferred, itself

with deferred(__name__):
    from fractions import Fraction as LateFraction
    from fractions import unknown  # pyright: ignore
    from html.entities import name2codepoint
    from math import hypot

    from abele.ir import well_known


def test_a_deferred_function_is_called():
    assert hypot(3, 4) == 5


def test_a_deferred_class_makes_and_knows_its_objects():
    half = LateFraction(1, 2)
    assert LateFraction.from_float(0.5) == half
    assert isinstance(half, LateFraction)
    assert not isinstance(0.5, LateFraction)
    assert isinstance(half, (int, LateFraction))


def test_a_deferred_mapping_is_read():
    assert name2codepoint["amp"] == 38
    assert "amp" in name2codepoint
    assert "amp" in list(name2codepoint)
    assert dict(name2codepoint)["lt"] == 60


def test_a_deferred_module_is_asked_for_its_names():
    assert well_known.LEVEL_NAMES[0] == "nn"


def test_what_a_name_stands_for_is_at_hand():
    assert itself(LateFraction) is Fraction
    assert itself(Fraction) is Fraction


def test_an_unknown_name_is_an_error_when_it_is_used():
    with pytest.raises(AttributeError, match="unknown"):
        unknown()


def test_a_whole_module_is_refused():
    with pytest.raises(ImportError, match=r"import json cannot be deferred; need from json"):
        with deferred(__name__):
            import json  # noqa: F401
    assert builtins.__import__.__module__ == "builtins"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package that can be imported."""
    folder = tmp_path / "late_package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "seldom.py").write_text("def twice(n):\n    return 2 * n\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("late_package", "late_package.seldom", "late_package.user"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


USER = """
from abele.ir.support.deferred import deferred
with deferred(__name__):
    from .seldom import twice as double
"""


def test_nothing_is_imported_before_it_is_used(package: Path):
    (package / "user.py").write_text(USER)
    from late_package import user  # pyright: ignore

    assert "late_package.seldom" not in sys.modules
    assert user.double(4) == 8
    assert "late_package.seldom" in sys.modules


def test_other_modules_and_other_threads_import_as_always(package: Path):
    found: list[object] = []

    def import_in_a_thread() -> None:
        from fractions import Fraction

        found.append(Fraction)

    with deferred(__name__):
        thread = threading.Thread(target=import_in_a_thread)
        thread.start()
        thread.join()
        from fractions import Fraction as late

        assert exec("from fractions import Fraction", other := {"__name__": "other"}) is None
    assert found == [Fraction]
    assert other["Fraction"] is Fraction
    assert late is not Fraction
    assert itself(late) is Fraction


def _deferred_after_except(source: str) -> list[str]:
    """The names of a module that are deferred and stand after `except`."""
    tree = ast.parse(source)
    blocks = [each for each in ast.walk(tree) if isinstance(each, ast.With)]
    late = {
        name.asname or name.name
        for block in blocks
        if ast.unparse(block.items[0].context_expr).startswith("deferred(")
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }
    handlers = [each.type for each in ast.walk(tree) if isinstance(each, ast.ExceptHandler)]
    caught = [each for handler in handlers if handler is not None for each in ast.walk(handler)]
    return [each.id for each in caught if isinstance(each, ast.Name) and each.id in late]


def test_no_module_catches_a_deferred_class():
    root = Path(well_known.__file__).parent.parent
    rooms = ("ir", "dialects", "backends", "passes", "tools")
    texts = {path: path.read_text() for room in rooms for path in (root / room).rglob("*.py")}
    found = {
        path.name: names
        for path, text in texts.items()
        if "with deferred(" in text and (names := _deferred_after_except(text))
    }
    assert not found
    planted = "with deferred(__name__):\n    from x import Y\ntry:\n    f()\nexcept (Y, Z): ...\n"
    assert _deferred_after_except(planted) == ["Y"]
