"""TextMate grammars, which editors use, as JSON.

python -m abele.tools.views.syntax.textmate editors
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ...driver.files import check_files, write_text
from ..script import run_script
from .languages import LANGUAGES, Language

SCHEMA = "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json"


def grammar(language: Language) -> str:
    """The grammar of a language, ending in a newline."""
    kind = language.suffix.removeprefix(".")
    record = {
        "$schema": SCHEMA,
        "name": language.name,
        "scopeName": f"source.{kind}",
        "fileTypes": [kind],
        "patterns": [
            {"match": each.pattern, "name": f"{each.scope}.{kind}"}
            for each in language.words
            if each.scope
        ],
    }
    return json.dumps(record, indent=2) + "\n"


def file_name(language: Language) -> str:
    """The file name of a grammar."""
    return f"{language.suffix.removeprefix('.')}.tmLanguage.json"


def write_grammars(folder: Annotated[Path, typer.Argument(help="A folder that exists.")]) -> None:
    """Write the grammars of all languages into a folder. Raises InputError."""
    paths = [folder / file_name(each) for each in LANGUAGES.values()]
    check_files({}, {f"{each}": each for each in paths})
    for each in LANGUAGES.values():
        write_text(folder / file_name(each), grammar(each))


if __name__ == "__main__":
    run_script(write_grammars)
