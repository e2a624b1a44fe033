"""Several chips as a view of the report's page, in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import IN_BROWSER, chromium, network_urls, open_page, texts
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from typer.testing import CliRunner

from abele.tools.cli import app

pytestmark = IN_BROWSER

TEXT = """
!x = tensor<500x64xf16>
!w = tensor<64x64xf16>
func.func @main(%x: !x, %w: !w) -> !x attributes {arg_names = ["x", "w"]} {
  %0 = nn.matmul %x, %w : (!x, !w) -> !x loc("fc1")
  %1 = nn.softmax %0 axis 0 : (!x) -> !x loc("softmax")
  func.return %1 : !x
}
"""

TARGET = (
    "tiny:16,links.topology=ladder,links.chips=4,links.rung_gbytes=1e6,links.rail_gbytes=1e5,"
    "links.hop_ns=0,links.first_word_ns=0"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    yield from chromium(1400, 1000)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chips")
    (folder / "net.mlir").write_text(TEXT)
    words = ["report", str(folder / "net.mlir"), "-o", str(folder / "out"), "--target", TARGET]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return folder / "out" / "index.html"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_view_of_chips_opens_without_network_and_without_errors(browser, page, theme):
    open_page(browser, f"{page.as_uri()}#chips")
    script = "if (document.documentElement.dataset.theme !== arguments[0]) switchTheme()"
    browser.execute_script(script, theme)
    assert browser.execute_script("return document.body.dataset.view") == "chips"
    assert texts(browser, "#view h2")[0].startswith("Chips in time")
    assert not any("NaN" in each or "undefined" in each for each in texts(browser, "#view > *"))
    assert browser.get_log("browser") == []
    assert network_urls(browser) == []


def test_the_busiest_link_is_first_and_named_above(browser, page):
    open_page(browser, f"{page.as_uri()}#chips")
    names = texts(browser, ".grid .row > span:nth-child(1) em")
    busy = browser.execute_script(
        "return rowsOf(T.chip_links).toSorted((a, b) => b.busy_cycles - a.busy_cycles)"
    )
    assert names[0] == busy[0]["name"].replace("->", "→")
    assert texts(browser, ".figure b")[2] == names[0]


def test_every_picture_of_chips_is_reached_and_read_by_keyboard(browser, page):
    open_page(browser, f"{page.as_uri()}#chips")
    for label, first in (
        ("chips in time", "chip 0"),
        ("What chips do in a run", "chip 0"),
        ("bytes between chips", "chip 0 to chip 0"),
        ("What chips hold", "chip 0"),
        ("layers on chips", " on chip 0"),
    ):
        picture = browser.find_element(By.CSS_SELECTOR, f"[aria-label='{label}']")
        picture.send_keys(Keys.ARROW_LEFT)
        assert first in browser.find_element(By.CSS_SELECTOR, "#tip b").text


def test_a_chip_leads_to_its_fullest_tile(browser, page):
    open_page(browser, f"{page.as_uri()}#chips")
    picture = browser.find_element(By.CSS_SELECTOR, "[aria-label='What chips hold']")
    picture.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert browser.execute_script("return document.body.dataset.view") == "memory"
    tile = browser.execute_script("return place.tile")
    assert browser.execute_script("return T.chips.fullest_tile").index(tile) >= 0


def test_a_tile_holds_the_variables_that_lie_on_it(browser, page):
    open_page(browser, f"{page.as_uri()}#memory")
    found = browser.execute_script(
        "return T.tiles.tile.map(t => layoutOf(t).reduce((sum, e) => sum + e.bytes, 0))"
    )
    assert min(found) > 0
    lies = browser.execute_script(
        "const v = VARIABLES[T.lives.variable[0]];"
        "Object.assign(v, { first_tile: 1, tiles: 6, ranges: 3, apart: 4 });"
        "const has = tile => layoutOf(tile).some(each => each.variable === v.variable);"
        "return [tilesOf(v), T.tiles.tile.filter(has)]"
    )
    assert lies == ["1–2 × 3", [1, 2, 5, 6, 9, 10]]
