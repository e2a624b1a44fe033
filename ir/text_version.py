"""The version of saved texts, a comment above each module: `// abele text, version 1`.

Only files have it. Printed text and the texts of a program file do not: the version of the program
file is theirs, and grows when the version of texts does. A text without a version has version 1.
"""

import re

from .support.file_format import FileFormat

TEXT = FileFormat("abele text", 1, "write the text again")

_LINE = re.compile(r"^[ \t]*//[ \t]*abele text, version\b(.*)$", re.MULTILINE)

_ABOVE = re.compile(r"(?:[ \t\r]*(?://[^\n]*)?\n)*")
"""The comments and empty lines above a module."""


def with_version(text: str) -> str:
    """The text of a module as files have it."""
    return f"// {TEXT.name}, version {TEXT.version}\n{text}"


def version_of(text: str, path: str) -> int:
    """The version of a text.

    Raises InputError if this abele does not read it.

    Args:
        path: its file, for messages.
    """
    above = _ABOVE.match(text)
    found = _LINE.search(text, 0, above.end()) if above else None
    if found is None:
        return TEXT.check(1, path)
    word = found[1].strip()
    # Python refuses to convert more than some thousand digits.
    is_number = word.isascii() and word.isdigit() and len(word) <= 18
    line = text.count("\n", 0, found.start()) + 1
    return TEXT.check(int(word) if is_number else word, f"{path}:{line}")
