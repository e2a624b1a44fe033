"""The page of a sweep, in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import IN_BROWSER, chromium, network_urls, open_page

from abele.tools.executors.here import Here
from abele.tools.sweeps.folder import PAGE
from abele.tools.sweeps.spec import read_spec
from abele.tools.sweeps.sweep import run_sweep

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium(1100, 1000)


def test_the_page_draws_every_point_that_fits_and_lists_all(product: Path, browser: Any):
    path = product.with_name("s.toml")
    path.write_text(
        f'[[model]]\nfile = "{product.name}"\n[[target]]\nbase = "tiny"\ntiles = [0, 2, 4]\n'
        "[options]\nvertices_per_tile = [1, 2]\n"
    )
    folder = path.with_suffix(".f")
    swept = run_sweep(read_spec(path), folder, Here())
    open_page(browser, (folder / PAGE).as_uri())

    def count(selector: str) -> int:
        return browser.execute_script(f"return document.querySelectorAll('{selector}').length")

    assert (count("circle"), count("tbody tr"), count("th")) == (4, 6, len(swept.rows.kinds))
    assert count("circle.front") > 0
    click = "document.querySelector('circle').dispatchEvent(new Event('click'))"
    browser.execute_script(click)
    assert count("tr.chosen") == count("circle.chosen") == 1
    assert "tiles: 2" in browser.execute_script("return document.getElementById('tip').textContent")
    browser.execute_script("y.value = 'cycles'; y.dispatchEvent(new Event('change'))")
    assert "cycles" in browser.execute_script("return plot.textContent")
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []
    assert network_urls(browser) == []
