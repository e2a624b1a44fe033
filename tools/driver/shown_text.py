"""Text of users as it may be shown: on a terminal, in an XML file, in a picture.

Names of nodes, files and dimensions may contain anything. Control characters could move the cursor
of a terminal or change its title, and bytes of file names that are not UTF-8 cannot be printed.
"""

from __future__ import annotations

import re

_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters but tab and newline, marks that reverse the order of letters, surrogates."""


def shown(text: str) -> str:
    r"""The text with an escape, such as `\x1b`, for each character that cannot be shown."""
    return _UNSHOWN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    # Python has put a byte of a file name that is not UTF-8 here.
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
