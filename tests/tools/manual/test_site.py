"""The documentation site builds without a warning, and its pages have what readers look for."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# mkdocs reads all modules and renders all pages: eighteen seconds.
pytestmark = [pytest.mark.slow, pytest.mark.large]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder


def text_of(page: Path) -> str:
    return re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))


def test_every_public_name_has_an_entry_with_its_signature(site: Path):
    rows = re.findall(
        r"^\| `(abele[\w.]+)` \| (.+) \|$", (ROOT / "docs/public.md").read_text(), re.M
    )
    for module, names in rows:
        page = (site / "api" / f"{module}.html").read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf'<h2[^>]* id="abele[\w.]*\.{name}"', page), f"{module}.{name}"
    assert "compile_model( model:" in " ".join(text_of(site / "api/abele.tools.html").split())


def test_a_link_to_a_line_of_a_rule_file_leads_to_that_line(site: Path):
    page = (site / "reference" / "rules.html").read_text(encoding="utf-8")
    path, line = re.findall(r'href="([^"]+canonicalize\.rw\.html)#([^"]+)"', page)[0]
    assert f'id="{line}"' in (site / "reference" / path).resolve().read_text(encoding="utf-8")


def test_the_search_covers_tutorial_guides_reference_and_api(site: Path):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {each["location"].partition("#")[0].partition("/")[0] for each in index["docs"]}
    assert {"tutorial", "reference", "api", "planning.html", "gallery.html"} <= places
