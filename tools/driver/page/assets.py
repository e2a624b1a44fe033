"""The shared files of pages, and data as a page holds it."""

from __future__ import annotations

import base64
import json
import zlib
from importlib.resources import files
from typing import Any

from ..html_page import Html


def style(package: str, name: str) -> Html:
    """The style sheet of a page, after the one that all pages share. package: where its file is."""
    return Html(f"{_text(__package__ or '', 'core.css')}\n{_text(package, name)}")


def script(package: str, *names: str) -> Html:
    """The script of a page, after the core that all pages share. package: where its files are."""
    own = "\n".join(_text(package, name) for name in names)
    return Html(f"{_text(__package__ or '', 'core.js')}\n{own}")


def packed(data: Any) -> str:
    """Plain values as compressed text, which `unpacked` of the core reads."""
    whole = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(whole.encode(), 6)).decode()


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
