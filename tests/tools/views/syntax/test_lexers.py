import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from pygments.token import Error

from abele.tools.views.syntax.languages import LANGUAGES
from abele.tools.views.syntax.lexers import MlirLexer, RulesLexer

ROOT = Path(__file__).parents[4]
FILES = [ROOT / "examples" / "recurrent.mlir", *sorted((ROOT / "passes" / "rules").glob("*.rw"))]
LEXERS = {".mlir": MlirLexer, ".rw": RulesLexer}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_pygments_finds_no_error_and_keeps_the_text(path: Path):
    text = path.read_text(encoding="utf-8")
    found = list(LEXERS[path.suffix]().get_tokens(text))
    assert "".join(word for _, word in found).strip() == text.strip()
    assert not [word for token, word in found if token in Error]
    assert len({token for token, _ in found}) > 5


def test_pygments_marks_text_outside_the_language_as_an_error():
    assert Error in [token for token, _ in MlirLexer().get_tokens("nn.relu `")]


def test_the_package_announces_both_lexers():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["pygments.lexers"]
    found = set()
    for value in points.values():
        module, name = value.split(":")
        found.add(getattr(import_module(module), name))
    assert found == set(LEXERS.values())
    for suffix, lexer in LEXERS.items():
        assert lexer.filenames == [f"*{suffix}"]
        assert lexer.aliases == list(LANGUAGES[suffix].aliases)


def test_a_lexer_imports_nothing_of_the_compiler():
    script = (
        "import sys; import abele.tools.views.syntax.lexers; "
        "print([each for each in sys.modules if each.partition('.')[0] in ('xdsl', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
