"""Pages from templates: every value is escaped, unless its type says that it is HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from .shown_text import shown

_PLACE = re.compile(r"\{\{([A-Z]+)\}\}")


class Html(str):
    """Text that is HTML, CSS or a script already. Only abele's own files become such text."""

    __slots__ = ()


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with each {{NAME}} replaced by the value of that name.

    Values are not searched for names again. Raises KeyError for a name without a value.
    """
    return _PLACE.sub(lambda found: escaped(values[found[1]]), template)


def escaped(value: str) -> str:
    """A value as HTML that shows it, in the text of an element and in a quoted attribute."""
    return value if isinstance(value, Html) else html.escape(shown(value))
