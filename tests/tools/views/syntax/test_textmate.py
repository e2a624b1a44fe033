import json
from pathlib import Path

import pytest

from abele.tools.views.syntax.languages import LANGUAGES, Language
from abele.tools.views.syntax.textmate import file_name, grammar, write_grammars

EDITORS = Path(__file__).parents[4] / "editors"


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda each: each.name)
def test_the_grammar_of_the_repository_is_up_to_date(language: Language):
    # make reference writes it.
    assert (EDITORS / file_name(language)).read_text() == grammar(language)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda each: each.name)
def test_every_word_that_an_editor_colours_has_its_pattern(language: Language):
    record = json.loads(grammar(language))
    assert record["fileTypes"] == [language.suffix[1:]]
    patterns = [each["match"] for each in record["patterns"]]
    assert patterns == [each.pattern for each in language.words if each.scope]
    assert all(each["name"].endswith(language.suffix) for each in record["patterns"])


def test_the_extension_names_the_files_of_both_grammars(tmp_path: Path):
    write_grammars(tmp_path)
    named = json.loads((EDITORS / "package.json").read_text())["contributes"]["grammars"]
    assert {each["path"] for each in named} == {f"./{each.name}" for each in tmp_path.iterdir()}
    scopes = {json.loads(each.read_text())["scopeName"] for each in tmp_path.iterdir()}
    assert {each["scopeName"] for each in named} == scopes
    languages = json.loads((EDITORS / "package.json").read_text())["contributes"]["languages"]
    assert all((EDITORS / each["configuration"]).exists() for each in languages)
