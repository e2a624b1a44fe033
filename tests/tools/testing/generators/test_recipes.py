"""Recipes are kept for other processes, and explored again where they cannot be."""

from pathlib import Path
from random import Random
from weakref import WeakKeyDictionary

import pytest
from xdsl.dialects.builtin import TensorType, f16, i32
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def

from abele.dialects import nn
from abele.ir.rules.vocabulary import Vocabulary
from abele.tools.driver.context import new_context
from abele.tools.testing.generators import instances, recipes
from abele.tools.testing.generators.instances import Instances
from abele.tools.testing.generators.recipes import Recipes, keep_recipes, kept_recipes

SOME = Recipes({(2, f16): [{"operands": "2"}], (0, i32): [{}]}, ("sum", "max"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path))
    return tmp_path


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what this process has read and explored."""
    recipes._file.cache_clear()
    monkeypatch.setattr(instances, "_EXPLORED", WeakKeyDictionary())


def first_shifts() -> list[str]:
    made = Instances(Vocabulary(new_context()))
    ops = [made.make(nn.ShiftOp, Random(n), (2, 3)) for n in range(8)]
    return [str(op and (op.operands[0].type, op.properties)) for op in ops]


def test_another_process_makes_the_same_operations_and_explores_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    another_process(monkeypatch)
    first = first_shifts()
    assert "None" not in first
    another_process(monkeypatch)
    monkeypatch.setattr(Instances, "_explored", None)
    assert first_shifts() == first


@pytest.mark.usefixtures("folder")
def test_what_one_process_adds_another_reads_at_once(monkeypatch: pytest.MonkeyPatch):
    assert kept_recipes(nn.AddOp) is None
    reading = recipes._file(recipes.cache_folder())
    another_process(monkeypatch)
    keep_recipes(nn.AddOp, SOME)
    assert reading.get(nn.AddOp.name) == SOME
    keep_recipes(nn.MulOp, SOME)
    assert reading.get(nn.MulOp.name) == SOME


@pytest.mark.parametrize(
    "damage",
    [b"\xff\n", b"[]\n", b'["nn.add", [], [[2, "f7", []]]]\n', b'{"a": 1}\n', b"7\n"],
)
def test_a_damaged_line_counts_as_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
):
    keep_recipes(nn.MulOp, SOME)
    (path,) = folder.iterdir()
    path.write_bytes(damage + path.read_bytes() + b'["nn.add", [], [[2, "f1')
    another_process(monkeypatch)
    assert kept_recipes(nn.MulOp) == SOME
    assert kept_recipes(nn.AddOp) is None


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "file"))
    keep_recipes(nn.AddOp, SOME)
    assert kept_recipes(nn.AddOp) == SOME


@irdl_op_definition
class TwiceOp(IRDLOperation):
    """The double of each element."""

    name = "nn.add"
    operand = operand_def(TensorType)
    result = result_def(TensorType)


def test_classes_of_other_packages_are_not_kept(folder: Path):
    keep_recipes(TwiceOp, SOME)
    assert kept_recipes(TwiceOp) is None
    assert not list(folder.iterdir())


def test_a_changed_definition_has_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "ir").mkdir()
    monkeypatch.setattr(recipes, "ROOT", tmp_path)
    digests: set[str] = set()
    for text in ("x = 1", "x = 2"):
        (tmp_path / "ir" / "some.py").write_text(text)
        recipes._digest.cache_clear()
        digests.add(recipes._digest())
    recipes._digest.cache_clear()
    assert len(digests) == 2
