"""TextMate grammars, which editors use, as JSON.

python -m abele.tools.views.syntax.textmate editors
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

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
    """What the file of a grammar is called."""
    return f"{language.suffix.removeprefix('.')}.tmLanguage.json"


def main(folder: str) -> None:
    """Write the grammars of all languages into a folder."""
    for each in LANGUAGES.values():
        Path(folder, file_name(each)).write_text(grammar(each), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
