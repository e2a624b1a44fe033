"""The words of both languages, over all files of the repository and what compiling prints."""

import re
from pathlib import Path

import pytest
from some_models import convolutions

from abele.ir.instruments.print_ir import Style
from abele.tools import compile_model
from abele.tools.views.syntax.languages import LANGUAGES, MLIR, RULES, Language

ROOT = Path(__file__).parents[4]
FOLDERS = ("docs", "dialects", "examples", "ir", "passes", "tests", "tools")
FILES = sorted(
    path
    for folder in FOLDERS
    for suffix in LANGUAGES
    for path in (ROOT / folder).rglob(f"*{suffix}")
)
DOCUMENTS = sorted(path for path in (ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(mlir|rw)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def words(text: str, language: Language) -> list[tuple[str, str]]:
    """The token and text of every word but blanks, as a lexer finds them, first match first."""
    patterns = [(re.compile(each.pattern, re.MULTILINE), each.token) for each in language.words]
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        for pattern, token in patterns:
            match = pattern.match(text, at)
            if match:
                assert match.end() > at, f"{token} matches nothing"
                found.append((token, match[0]))
                at = match.end()
                break
        else:
            line = text.count("\n", 0, at) + 1
            raise AssertionError(f"line {line}: no word at {text[at : at + 20]!r}")
    return [each for each in found if each[0] != "Text.Whitespace"]


def test_the_repository_has_files_of_both():
    assert {path.suffix for path in FILES} == set(LANGUAGES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_consists_of_known_words(path: Path):
    assert words(path.read_text(encoding="utf-8"), LANGUAGES[path.suffix])


def test_every_example_in_the_documents_consists_of_known_words():
    blocks = [each for path in DOCUMENTS for each in BLOCK.findall(path.read_text())]
    assert len(blocks) > 10
    for kind, text in blocks:
        words(text, LANGUAGES[f".{kind}"])


@pytest.mark.parametrize("level", ["nn", "partition", "tile", "exchange"])
@pytest.mark.parametrize("generic", [False, True])
def test_printed_programs_consist_of_known_words(level: str, generic: bool):
    exe = compile_model(convolutions(), "tiny:16")
    words(Style(generic, locations=True).text(exe.module_at(level)), MLIR)


def test_the_words_of_ir():
    line = '%0:2 = nn.add %x, %y {a = -1.5e-3 : f32} : tensor<4x?xbf16> loc("a b") // c'
    assert words(line, MLIR) == [
        ("Name.Variable", "%0:2"),
        ("Operator", "="),
        ("Name.Builtin", "nn.add"),
        ("Name.Variable", "%x"),
        ("Punctuation", ","),
        ("Name.Variable", "%y"),
        ("Punctuation", "{"),
        ("Name", "a"),
        ("Operator", "="),
        ("Operator", "-"),
        ("Number.Float", "1.5e-3"),
        ("Punctuation", ":"),
        ("Keyword.Type", "f32"),
        ("Punctuation", "}"),
        ("Punctuation", ":"),
        ("Keyword.Type", "tensor"),
        ("Punctuation", "<"),
        ("Number.Integer", "4x?x"),
        ("Keyword.Type", "bf16"),
        ("Punctuation", ">"),
        ("Name", "loc"),
        ("Punctuation", "("),
        ("String.Double", '"a b"'),
        ("Punctuation", ")"),
        ("Comment.Single", "// c"),
    ]


def test_a_symbol_may_be_quoted_and_a_block_has_arguments():
    found = words('^bb0(%a: i32): tile.copy [@"a/b \\" c"] -> @relu.in #layout0 !t.x', MLIR)
    tokens = [token for token, _ in found]
    assert tokens[:3] == ["Name.Label", "Punctuation", "Name.Variable"]
    assert ("Name.Function", '@"a/b \\" c"') in found
    assert ("Name.Function", "@relu.in") in found
    assert ("Name.Attribute", "#layout0") in found
    assert ("Keyword.Type", "!t.x") in found


def test_slashes_are_a_comment_on_a_line_of_their_own_and_a_division_after_an_expression():
    found = words("  // half\nrule r: nn.relu(x) => x where h == n // 2", RULES)
    assert found[0] == ("Comment.Single", "  // half")
    assert found[-2:] == [("Operator", "//"), ("Number.Integer", "2")]
    assert ("Keyword.Declaration", "rule") in found
    assert ("Name.Builtin", "nn.relu") in found
    # A word that only begins like a keyword is a name.
    assert words("ruler letter", RULES) == [("Name.Variable", "ruler"), ("Name.Variable", "letter")]


@pytest.mark.parametrize(("language", "text"), [(MLIR, "`"), (RULES, "$"), (MLIR, '"open')])
def test_text_outside_a_language_is_refused(language: Language, text: str):
    with pytest.raises(AssertionError, match="line 1: no word at"):
        words(text, language)
