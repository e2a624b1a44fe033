"""The page in a browser: opened from its file, without a network."""

import errno
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browser import IN_BROWSER, chromium, network_urls, open_page, texts, until
from layered_graph import LayeredGraph
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from abele.ir.errors import InputError
from abele.ir.support.whole_folder import MANIFEST
from abele.tools.views.scan import zoom
from abele.tools.views.scan.scan import Laid, Subject, laid_out
from abele.tools.views.scan.zoom import check_zoom, write_zoom

MARKUP = "</script><img src=x onerror=document.title='hurt'>{{DATA}}"
NAMES = ("conv1", "conv2", MARKUP, "fc & <b>6</b>")
SIZE = 512
LINES = {"conv1": f"net.py:7  x = conv(x)  # {MARKUP}", "conv2": "net.py:8"}


@pytest.fixture(scope="module")
def laid() -> Laid:
    graph = LayeredGraph(NAMES, size=60)
    lines = {"conv1": "net.py:7", "conv2": "net.py:8"}
    graph.sets = [replace(each, line=lines.get(each.layer, "")) for each in graph.sets]
    sources = {"net.py:7": f"x = conv(x)  # {MARKUP}", "net.py:9": "unused"}
    return laid_out(graph, Subject(f"Net {MARKUP}", "batch 3", sources), SIZE)


@pytest.fixture(scope="module")
def page(laid: Laid, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoom") / "scan"
    write_zoom(laid, folder, SIZE)
    return folder / "index.html"


def test_all_colourings_have_all_tiles(page: Path):
    assert sorted(each.name for each in page.parent.iterdir()) == [
        MANIFEST,
        "cycles",
        "direction",
        "index.html",
        "layer",
        "time",
    ]
    tiles = {
        name: sorted(
            str(each.relative_to(page.parent / name)) for each in page.parent.glob(f"{name}/*/*")
        )
        for name in ("layer", "cycles", "direction", "time")
    }
    assert tiles["layer"] == tiles["cycles"] == tiles["direction"] == tiles["time"]
    assert "9/0_0.webp" in tiles["layer"]


def test_a_page_holds_the_licence_of_the_code_it_contains(page: Path):
    text = page.read_text()
    assert text.index("Copyright (C) 2009 CodePlex Foundation") < text.index("OpenSeadragon(")
    assert "sourceMappingURL" not in text


def test_a_page_replaces_a_page_and_nothing_else(laid: Laid, page: Path, tmp_path: Path):
    check_zoom(page.parent)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("<p>mine")
    with pytest.raises(InputError, match="mine: .*holds index.html, which abele did not write"):
        check_zoom(tmp_path / "mine")
    with pytest.raises(InputError, match="it is not a folder"):
        check_zoom(page)
    shutil.copytree(page.parent, tmp_path / "old")
    (tmp_path / "old" / "layer" / "mine").touch()
    with pytest.raises(InputError, match="holds layer/mine, which abele did not write"):
        write_zoom(laid, tmp_path / "old", 256)
    (tmp_path / "old" / "layer" / "mine").unlink()
    largest = max(tmp_path.glob("old/layer/*"), key=lambda each: int(each.name))
    write_zoom(laid, tmp_path / "old", 256)
    assert not largest.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine", "old"]


def test_a_full_disk_keeps_the_old_page(
    laid: Laid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_zoom(laid, tmp_path / "scan", 256)
    before = (tmp_path / "scan" / "index.html").read_bytes()
    original, left = zoom.write_pyramid, [2]

    def fills(*given: object) -> int:
        left[0] -= 1
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(*given)

    monkeypatch.setattr(zoom, "write_pyramid", fills)
    with pytest.raises(InputError, match="No space left on device"):
        write_zoom(laid, tmp_path / "scan", 256)
    assert [each.name for each in tmp_path.iterdir()] == ["scan"]
    assert (tmp_path / "scan" / "index.html").read_bytes() == before


# In a browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    yield from chromium(1366, 768)


def opened(browser: WebDriver, page: Path) -> float:
    return open_page(browser, page.as_uri())


def data_of(browser: WebDriver, name: str) -> str:
    return browser.execute_script("return document.body.dataset[arguments[0]]", name)


def over(browser: WebDriver, layer: str) -> ActionChains:
    """Move the pointer to where a layer's name is."""
    labels = browser.find_elements(By.CSS_SELECTOR, "#labels span")
    place = next(each for each in labels if each.text == layer).rect
    view = browser.find_element(By.ID, "view")
    rect = view.rect
    x = place["x"] + place["width"] / 2 - rect["x"] - rect["width"] / 2
    y = place["y"] + place["height"] / 2 - rect["y"] - rect["height"] / 2
    return ActionChains(browser).move_to_element_with_offset(view, int(x), int(y))


class TestInABrowser:
    pytestmark = IN_BROWSER

    def test_it_opens_from_its_file_without_network_and_without_errors(self, browser, page):
        assert opened(browser, page) < 10
        until(browser, lambda each: not pixels(each).startswith("0,"))
        assert browser.get_log("browser") == []
        assert network_urls(browser) == []

    def test_names_with_markup_are_shown_as_text(self, browser, page):
        opened(browser, page)
        assert texts(browser, ".layer b") == list(NAMES)
        assert texts(browser, "h1") == [f"Net {MARKUP}"]
        assert set(texts(browser, "#labels span")) == set(NAMES)
        assert browser.execute_script("return document.images.length") == 0
        assert browser.title != "hurt"
        assert "{{" in browser.title

    def test_the_legend_says_what_was_drawn(self, browser, page, laid):
        opened(browser, page)
        lines = texts(browser, "#lines div")
        graph = laid.graph
        assert f"vertices: {graph.vertex_count:,} drawn = {graph.vertex_count:,} counted" in lines
        assert f"edges: {graph.edge_count:,} drawn = {graph.edge_count:,} counted" in lines

    def test_hovering_names_the_vertices_under_the_pointer(self, browser, page):
        opened(browser, page)
        for layer in NAMES[:2]:
            over(browser, layer).perform()
            until(browser, lambda each: texts(each, "#here b"))
            shown = texts(browser, "#here > *")
            assert shown[0] == layer
            assert shown[1] == f"op {layer}"
            assert shown[2] == LINES[layer]
            assert shown[3].startswith("codelet sum, compute set ")
            assert shown[4].endswith(" cycles")
            assert "tile " in shown[4]
            assert shown[5].endswith("at this point of the picture")

    def test_the_search_finds_layers_by_their_line(self, browser, page):
        opened(browser, page)
        browser.find_element(By.ID, "search").send_keys("net.py:8")
        shown = browser.find_elements(By.CLASS_NAME, "layer")
        assert [each.text.split("\n")[0] for each in shown if each.is_displayed()] == ["conv2"]

    def test_details_never_cover_the_picture(self, browser, page):
        opened(browser, page)
        here, view = (browser.find_element(By.ID, each) for each in ("here", "view"))
        assert "Point at the picture" in here.text
        empty = here.rect
        over(browser, "conv1").perform()
        until(browser, lambda each: texts(each, "#here b"))
        assert here.rect == empty
        assert empty["x"] >= view.rect["x"] + view.rect["width"]

    def test_bars_and_colours_are_labelled(self, browser, page):
        opened(browser, page)
        assert texts(browser, "#columns b") == ["layer", "vertices (bar)"]
        assert texts(browser, "#meaning") == ["Colours: layer"]
        browser.find_element(By.TAG_NAME, "body").send_keys("4")
        assert texts(browser, "#meaning") == ["Colours: cycles of a vertex"]

    def test_another_colouring_shows_the_same_part_of_the_picture(self, browser, page):
        opened(browser, page)
        body = browser.find_element(By.TAG_NAME, "body")
        for key in ("+", "+", "+", Keys.ARROW_LEFT):
            body.send_keys(key)
        until(browser, lambda each: float(data_of(each, "zoom")) > 1.5)
        settled(browser)
        before, place = data_of(browser, "zoom"), names_in_sight(browser)
        body.send_keys("4")
        # Time for what must not happen: a movement to the place that the new picture begins with.
        time.sleep(1)
        settled(browser)
        assert data_of(browser, "zoom") == before
        assert names_in_sight(browser) == place

    def test_a_click_keeps_the_details_shown(self, browser, page):
        opened(browser, page)
        over(browser, "conv1").click().perform()
        until(browser, lambda each: texts(each, "#here.kept b") == ["conv1"])
        over(browser, "conv2").perform()
        assert texts(browser, "#here b") == ["conv1"]
        assert texts(browser, ".layer.on b") == ["conv1"]
        browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
        assert texts(browser, "#here.kept") == []

    def test_a_search_finds_a_layer_and_goes_there(self, browser, page):
        opened(browser, page)
        body = browser.find_element(By.TAG_NAME, "body")
        body.send_keys("/")
        field = browser.switch_to.active_element
        assert field.get_attribute("id") == "search"
        field.send_keys("CONV2")
        shown = [
            each.text
            for each in browser.find_elements(By.CSS_SELECTOR, ".layer b")
            if each.is_displayed()
        ]
        assert shown == ["conv2"]
        before = data_of(browser, "zoom")
        field.send_keys(Keys.ENTER)
        until(browser, lambda each: data_of(each, "layer") == "conv2")
        until(browser, lambda each: data_of(each, "zoom") != before)

    def test_a_search_goes_on_to_the_next_and_says_when_there_is_none(self, browser, page):
        opened(browser, page)
        browser.find_element(By.TAG_NAME, "body").send_keys("/")
        field = browser.switch_to.active_element
        field.send_keys("conv")
        for layer in ("conv1", "conv2", "conv1"):
            field.send_keys(Keys.ENTER)
            assert data_of(browser, "layer") == layer
        none = browser.find_element(By.ID, "none")
        assert not none.is_displayed()
        field.send_keys("olution")
        assert "no layer" in none.text
        field.send_keys(Keys.ESCAPE)
        assert not none.is_displayed()

    def test_the_name_of_a_chosen_layer_is_not_covered(self, browser, page):
        opened(browser, page)
        browser.set_window_size(480, 400)  # Too small for all the names.
        try:
            until(browser, lambda each: len(names_in_sight(each)) < len(NAMES))
            settled(browser)
            rows = browser.find_elements(By.CSS_SELECTOR, ".layer")
            for row, layer in zip(rows, NAMES, strict=True):
                browser.execute_script("arguments[0].click()", row)
                browser.find_element(By.TAG_NAME, "body").send_keys("0")
                settled(browser)
                label = browser.find_element(By.CSS_SELECTOR, "#labels span.on")
                assert label.get_property("textContent") == layer
                assert label.is_displayed()
        finally:
            browser.set_window_size(1366, 768)

    def test_the_name_of_a_visible_layer_is_shown_in_full_and_near_it(self, browser, page):
        opened(browser, page)
        body = browser.find_element(By.TAG_NAME, "body")
        until(browser, lambda each: names_in_sight(each))
        browser.find_element(By.CSS_SELECTOR, ".layer").click()
        # A key that is pressed during a movement goes on from wherever the picture is then.
        settled(browser)
        for _ in range(2):
            body.send_keys("+")
            settled(browser)
        view = browser.find_element(By.ID, "view").rect
        picture = browser.find_element(By.CSS_SELECTOR, "#view .openseadragon-canvas")
        told = 0
        for step in (*5 * [Keys.ARROW_LEFT], *4 * [Keys.ARROW_UP]):
            body.send_keys(step)
            settled(browser)
            picture.send_keys(Keys.ENTER)
            for name in names_in_sight(browser):
                left, top = name["x"] - view["x"], name["y"] - view["y"]
                if name["width"] < view["width"]:
                    assert left >= 0
                    assert left + name["width"] <= view["width"]
                assert top >= 0
                assert top + name["height"] <= view["height"]
            spot = browser.find_element(By.ID, "spot")
            at = spot.rect
            x = at["x"] + at["width"] / 2 - view["x"]
            y = at["y"] + at["height"] / 2 - view["y"]
            inside = 0 < x < view["width"] and 0 < y < view["height"]
            if spot.is_displayed() and inside:
                told += 1
                assert names_in_sight(browser)
        assert told > 4

    def test_the_picture_can_be_explored_with_the_keyboard(self, browser, page):
        opened(browser, page)
        frame = "return getComputedStyle(document.getElementById('labels')).outlineStyle"
        assert browser.execute_script(frame) == "none"
        ActionChains(browser).send_keys(Keys.TAB).perform()
        picture = browser.switch_to.active_element
        assert "arrows move" in picture.get_attribute("aria-label")
        assert browser.execute_script(frame) == "solid"
        spot = browser.find_element(By.ID, "spot")
        assert not spot.is_displayed()
        picture.send_keys(Keys.ENTER)
        assert texts(browser, "#here.kept b")[0] in NAMES
        assert spot.is_displayed()
        picture.send_keys(Keys.ESCAPE)
        assert not spot.is_displayed()

    def test_the_key_has_the_colours_of_the_picture_in_both_themes(self, browser, page):
        opened(browser, page)
        script = (
            "return ['#view', '#ramp', '.layer u'].map("
            "each => getComputedStyle(document.querySelector(each)).filter)"
        )
        both = []
        for _ in range(2):
            filters = browser.execute_script(script)
            assert len(set(filters)) == 1
            both.append(filters[0])
            browser.find_element(By.TAG_NAME, "body").send_keys("t")
        assert sorted(both)[1] == "none"
        assert both[0] != both[1]

    @pytest.mark.parametrize(("key", "name"), [("2", "direction"), ("3", "time"), ("4", "cycles")])
    def test_a_key_switches_colours(self, browser, page, key, name):
        opened(browser, page)
        until(browser, lambda each: not pixels(each).startswith("0,"))
        before = pixels(browser)
        browser.find_element(By.TAG_NAME, "body").send_keys(key)
        until(browser, lambda each: data_of(each, "colour") == name)
        checked = "#colours [aria-checked=true]"
        assert texts(browser, checked) == [name]
        until(browser, lambda each: pixels(each) != before)
        assert browser.get_log("browser") == []

    def test_the_keys_of_all_colours_are_told(self, browser, page):
        opened(browser, page)
        assert texts(browser, "#last") == [str(len(texts(browser, "#colours [role=radio]")))]

    def test_keys_zoom_and_themes_change(self, browser, page):
        opened(browser, page)
        body = browser.find_element(By.TAG_NAME, "body")
        before = float(data_of(browser, "zoom"))
        body.send_keys("+")
        until(browser, lambda each: float(data_of(each, "zoom")) > 1.2 * before)
        body.send_keys("0")
        until(browser, lambda each: abs(float(data_of(each, "zoom")) / before - 1) < 0.01)
        ground = "return getComputedStyle(document.body).backgroundColor"
        one = browser.execute_script(ground)
        body.send_keys("t")
        assert browser.execute_script(ground) != one
        body.send_keys("n")
        assert not any(
            each.is_displayed() for each in browser.find_elements(By.CSS_SELECTOR, "#labels span")
        )


def names_in_sight(browser: WebDriver) -> list[dict[str, float]]:
    """Where the names are that are shown: x, y, width and height, in pixels of the picture."""
    labels = browser.find_elements(By.CSS_SELECTOR, "#labels span")
    return [each.rect for each in labels if each.value_of_css_property("display") != "none"]


def settled(browser: WebDriver) -> None:
    """Wait until a movement has come to its end, and its last frame is drawn."""
    # Names that stay where they are prove nothing: on a busy host, a second passes without a frame.
    until(browser, lambda each: data_of(each, "still") == "yes")


def pixels(browser: WebDriver) -> str:
    """Whether the picture is there: a few numbers that change with it."""
    # A canvas that was drawn on from files may not be read; a screenshot may.
    from io import BytesIO

    import numpy as np
    from PIL import Image

    shot = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    middle = np.asarray(shot)[200:500, 300:800].astype(int)
    lit = int((np.ptp(middle, axis=-1) > 60).sum())
    return f"{lit // 20},{','.join(map(str, middle.mean(axis=(0, 1)).round()))}"
