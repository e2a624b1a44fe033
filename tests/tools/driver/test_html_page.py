import base64
import re
import zlib
from html.parser import HTMLParser

import pytest

from abele.tools.driver.dump.page import page
from abele.tools.driver.figures import html_table
from abele.tools.driver.html_page import Html, escaped, filled

TITLES = [
    "{{DATA}}",
    "{{TITLE}}",
    "{{NONE}}",
    "</title><script>alert(1)</script>",
    "<script>alert(1)",
    "<!--",
    "\x1b",
]


def test_values_are_escaped_unless_they_are_html():
    template = "<title>{{A}}</title>{{B}}"
    assert filled(template, {"A": "<b>{{B}}", "B": Html("<i>")}) == (
        "<title>&lt;b&gt;{{B}}</title><i>"
    )
    assert escaped("\"'&") == "&quot;&#x27;&amp;"
    with pytest.raises(KeyError):
        filled(template, {"A": ""})


class Parts(HTMLParser):
    """The texts of a page by element, and the number of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.texts, self.scripts = "", dict[str, str](), 0

    def handle_starttag(self, tag, attrs):
        self.open = f"{tag} {dict(attrs).get('id', '')}".strip()
        self.scripts += tag == "script"

    def handle_data(self, data):
        self.texts[self.open] = self.texts.get(self.open, "") + data


@pytest.mark.parametrize("title", TITLES)
def test_no_title_breaks_the_page_of_a_dump(title: str):
    parts, plain = Parts(), Parts()
    parts.feed(page([], [], [], title, "tiny", {}))
    plain.feed(page([], [], [], "plain", "tiny", {}))
    data = zlib.decompress(base64.b64decode(parts.texts["script data"])).decode()
    assert '"stages"' in data
    assert parts.scripts == plain.scripts == 2
    # Of a path, the page shows the file, and no folder of the host.
    shown = title.rpartition("/")[2].replace("\x1b", "\\x1b")
    assert parts.texts["title"].startswith(f"{shown} - abele")


@pytest.mark.parametrize("title", TITLES)
def test_no_title_breaks_a_table_for_notebooks(title: str):
    parts = Parts()
    parts.feed(html_table(title, [(title, title)]))
    assert not parts.scripts
    assert [parts.texts[each] for each in ("caption", "th", "td")] == (
        [re.sub("\x1b", r"\\x1b", title)] * 3
    )
