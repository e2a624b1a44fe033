"""One table says what reads which model, and nothing else asks how a file's name ends."""

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from some_models import relu

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.support.user_entries import remove_entries
from abele.tools import compile_model
from abele.tools.driver.request import found_front_end
from abele.tools.importers import front_ends
from abele.tools.importers.front_end import REFUSED, FrontEnd, Reading
from abele.tools.importers.front_ends import (
    FRONT_ENDS,
    ONNX,
    TEXT,
    front_end_at,
    front_end_of,
    listed,
    refuse_options,
    register_front_end,
    suffixes,
)

TOOLS = Path(__file__).parents[3] / "tools"

SUFFIXES = {suffix for each in FRONT_ENDS for suffix in each.suffixes}

TELLS_ITSELF = {
    "importers/front_ends.py",
    "importers/onnx/front_end.py",
    "importers/pt2/front_end.py",
    "importers/stablehlo/front_end.py",
    "importers/caffe/front_end.py",
    "importers/mxnet/front_end.py",
    "importers/mxnet/files.py",
}
"""The files that define abele's own front ends."""

TESTS = ("endswith", "suffix")


def nodes_with(words: Collection[str], path: Path) -> Iterator[ast.AST]:
    """The syntax of a file, if it has one of some words."""
    text = path.read_text(encoding="utf-8")
    return ast.walk(ast.parse(text)) if any(each in text for each in words) else iter(())


def asked_for(path: Path, about: Collection[str] = SUFFIXES) -> Iterator[str]:
    """The places at which a file compares how a name ends with the suffix of a front end."""
    for node in nodes_with(about, path):
        compares = isinstance(node, ast.Compare) or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in TESTS
        )
        if compares:
            words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
            if words & {*about}:
                yield f"{path}:{node.lineno}"


def tables(path: Path) -> Iterator[str]:
    """The places at which a file has the suffix of a front end in a list of its own."""
    for node in nodes_with(SUFFIXES, path):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
            if words & SUFFIXES:
                yield f"{path}:{node.lineno}"


def sources() -> Iterator[Path]:
    # Damaged files are made per kind of file, not per front end.
    apart = ("testing", "bench")
    for path in sorted(TOOLS.rglob("*.py")):
        name = path.relative_to(TOOLS).as_posix()
        if name not in TELLS_ITSELF and not name.startswith(apart):
            yield path


def test_nothing_else_asks_whether_a_name_ends_in_the_suffix_of_a_front_end():
    found = [place for path in sources() for place in (*asked_for(path), *tables(path))]
    assert found == []


@pytest.mark.parametrize("text", ['p.endswith(".onnx")', 'p.suffix == ".onnx"', 'x = (".mlir", 1)'])
def test_such_a_question_is_found(tmp_path: Path, text: str):
    path = tmp_path / "some.py"
    path.write_text(text)
    assert [*asked_for(path), *tables(path)]


def test_the_bench_and_the_test_kit_do_not_ask_either():
    for path in (*TOOLS.glob("bench/**/*.py"), *TOOLS.glob("testing/**/*.py")):
        # The test kit takes archives apart, in which levels are .mlir.
        assert not list(asked_for(path, ONNX.suffixes))


@pytest.fixture
def notes() -> Iterator[FrontEnd]:
    """A front end for two kinds of files, one of which ends as the other."""
    made = FrontEnd("notes", (".notes", ".more.notes"), lambda *_: None, in_memory="a note")
    try:
        register_front_end(made, "a test", (".abele",))
        yield made
    finally:
        remove_entries("a test")


def test_a_front_end_is_found_by_the_longest_suffix(notes: FrontEnd):
    assert front_end_at("net.onnx") is ONNX
    assert front_end_at("net.mlir") is TEXT
    assert front_end_at("a.more.notes") is notes
    assert front_end_at("net.abele") is None
    assert front_end_of(Path("x.notes")) is notes
    assert front_end_of(relu()) is ONNX
    assert front_end_of(3) is None
    own = (".onnx", ".pt2", ".prototxt", "-symbol.json", ".stablehlo", ".mlirbc", ".mlir")
    assert suffixes() == (*own, ".notes", ".more.notes")


def test_messages_list_the_front_ends_of_extensions(notes: FrontEnd):
    with pytest.raises(InputError, match=r"^x\.doc: unknown kind of file; need \.onnx, .*\.notes"):
        found_front_end("x.doc")
    remove_entries("a test")
    listed_ = re.escape(listed([*suffixes(), ".abele"]))
    own = f"unknown kind of file; need {listed_}$"
    with pytest.raises(InputError, match=own):
        compile_model("x.doc")


@pytest.mark.parametrize("suffix", [".onnx", ".mlir", ".abele", "notes", ".", ".notes"])
def test_a_suffix_that_is_taken_or_none_is_refused(notes: FrontEnd, suffix: str):
    other = FrontEnd("others", (suffix,), notes.read)
    with pytest.raises(InputError, match="another: front end"):
        register_front_end(other, "another", (".abele",))


def test_a_front_end_is_refused_if_it_understands_what_does_not_exist():
    with pytest.raises(ValueError, match="front end notes: understands 'sizes'"):
        FrontEnd("notes", (".notes",), lambda *_: None, frozenset({"sizes"}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dims": {"N": 2, "M": 3}}, r"^p\.mlir: dimensions given \(N, M\); \.mlir has sizes$"),
        (
            {"values": {"x": 1}},
            r"^p\.mlir: values given \(x\); need an \.onnx, .* model$",
        ),
        ({"batch": 2}, r"^p\.mlir: --batch 2 is given; need an \.onnx, .* model$"),
    ],
)
def test_what_a_front_end_does_not_understand_is_refused(given: dict, message: str):
    reading = Reading(AbeleContext(), "p.mlir", **given)
    with pytest.raises(InputError, match=message):
        refuse_options(TEXT, reading)
    refuse_options(ONNX, reading)
    assert given.keys() <= REFUSED.keys()


def test_words_are_listed_as_in_a_sentence():
    assert [listed(words) for words in (["a"], ["a", "b"], "abc")] == ["a", "a or b", "a, b or c"]


def test_every_front_end_of_abele_says_what_its_objects_are_called():
    for each in front_ends.FRONT_ENDS:
        assert bool(each.takes) == bool(each.in_memory) == bool(each.serialized)
