"""Pages: what all of them share, and the files and data that each adds."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ..html_page import Html, filled

INLINE = "data:"
"""The only images of a page that is one file."""

BESIDE = "data: 'self' file:"
"""Images of a page that shows files of its folder, opened from a disk or a server."""


@dataclass(frozen=True)
class Assets:
    """The files of a kind of page, which open without a network.

    Attributes:
        package: where the files are.
        mark: a comment at the beginning of each page.
        body, style: their names.
        scripts: in the order in which they run.
        images: where images may come from, as a Content-Security-Policy says it.
    """

    package: str
    mark: str
    body: str
    style: str
    scripts: Sequence[str]
    images: str = INLINE

    def page(self, title: str, data: Any, inserted: dict[str, str] | None = None) -> str:
        """The text of a page.

        Args:
            title: text.
            data: plain values, which `unpacked` of core.js reads.
            inserted: files for the places that the body has, by the names of the places.
        """
        body = {place: Html(self._own(name)) for place, name in (inserted or {}).items()}
        return filled(
            _shared("page.html"),
            {
                "MARK": Html(self.mark),
                "IMAGES": self.images,
                "TITLE": title,
                "CSS": Html(f"{_shared('core.css')}\n{self._own(self.style)}"),
                "BODY": Html(filled(self._own(self.body), body).strip()),
                "DATA": _packed(data),
                "JS": Html("\n".join([_shared("core.js"), *map(self._own, self.scripts)])),
            },
        )

    def _own(self, name: str) -> str:
        return _text(self.package, name)


def _packed(data: Any) -> str:
    """Plain values as compressed text."""
    whole = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(whole.encode(), 6)).decode()


def _shared(name: str) -> str:
    return _text(__package__ or "", name)


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
