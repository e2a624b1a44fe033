"""The page of a report in a browser: opened from its file, without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import IN_BROWSER, chromium, network_urls, open_page, texts, until
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from some_models import convolutions
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.driver.compile import compile_model

pytestmark = IN_BROWSER

HOSTILE = "<img src=x onerror=document.title='hacked'>"

TEXT = f"""
!x = tensor<64x128xf32>
!w = tensor<128x32xf32>
!y = tensor<64x32xf32>
func.func @main(%x: !x, %w: !w) -> !y attributes
    {{arg_names = ["x", "w"], result_names = ["y"]}} {{
  %0 = nn.exp %x : (!x) -> !x loc("grow"("net.py":4:1))
  %1 = nn.matmul %0, %w : (!x, !w) -> !y loc("block/product"("net.py":5:1))
  %2 = nn.softmax %1 axis 1 : (!y) -> !y loc("{HOSTILE}")
  func.return %2 : !y loc("main")
}} loc("main")
"""

LAYERS = """
!x = tensor<32x32xf32>
func.func @main(%x: !x, %w: !x, %v: !x) -> !x attributes
    {arg_names = ["x", "w", "v"], result_names = ["y"]} {
  %0 = nn.matmul %x, %w : (!x, !x) -> !x loc("first/matmul")
  %1 = nn.softmax %0 axis 1 : (!x) -> !x loc("first/softmax")
  %2 = nn.matmul %1, %v : (!x, !x) -> !x loc("second/matmul")
  %3 = nn.softmax %2 axis 1 : (!x) -> !x loc("second/softmax")
  func.return %3 : !x loc("main")
} loc("main")
"""

VIEWS = ("summary", "memory", "operations", "graph", "execution", "program", "provenance")


def written(folder: Path, *arguments: str, text: str = TEXT) -> Path:
    source = folder / "net.mlir"
    source.write_text(text)
    done = CliRunner().invoke(app, ["report", str(source), "-o", str(folder / "out"), *arguments])
    assert done.exit_code in (0, 3), done.output
    return folder / "out" / "index.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), "--target", "tiny:16", "--passes")


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("layers"), "--target", "tiny:8", text=LAYERS)


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    yield from chromium(1400, 900)


def opened(browser: WebDriver, page: Path, place: str = "") -> WebDriver:
    open_page(browser, f"{page.as_uri()}#{place}")
    return browser


def press(browser: WebDriver, keys: str) -> None:
    browser.find_element(By.TAG_NAME, "body").send_keys(keys)


def view_of(browser: WebDriver) -> str:
    return browser.execute_script("return document.body.dataset.view")


def column(browser: WebDriver, number: int) -> list[str]:
    return texts(browser, f".grid .row:not(.group) > span:nth-child({number}) em")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_opens_without_network_and_without_errors(browser, page, view, theme):
    opened(browser, page, view)
    script = "if (document.documentElement.dataset.theme !== arguments[0]) switchTheme()"
    browser.execute_script(script, theme)
    assert view_of(browser) == view
    assert any(texts(browser, "#view > *"))
    assert browser.get_log("browser") == []
    assert network_urls(browser) == []


@pytest.fixture(scope="module")
def unplanned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = LAYERS.replace("32x32", "2048x2048")
    return written(tmp_path_factory.mktemp("large"), "--target", "tiny:2", text=text)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_a_program_without_plans_says_what_is_known(browser, unplanned, view):
    opened(browser, unplanned, f"{view}&op=0")
    shown = " ".join(texts(browser, "#view > *"))
    if view in ("execution", "program"):
        assert shown.startswith("This view needs plans. not planned: ")
    else:
        assert "NaN" not in shown
        assert "undefined" not in shown
    assert texts(browser, "#card h2 span") == ["first/matmul"]
    assert browser.get_log("browser") == []


def test_figures_of_very_many_rows_have_a_largest_one(browser, page):
    opened(browser, page)
    script = "return highest(Array.from({ length: 1e6 }, (_, k) => k % 999983), x => 2 * x, 5)"
    assert browser.execute_script(script) == 2 * 999982
    assert browser.execute_script("return highest([], x => x, 5)") == 5


@pytest.mark.parametrize("tab", ["tiles", "time", "addresses", "variables"])
def test_every_tab_of_memory_opens(browser, page, tab):
    opened(browser, page, "memory")
    browser.find_element(By.CSS_SELECTOR, f"[data-tab={tab}]").click()
    assert browser.find_element(By.CSS_SELECTOR, f"[data-tab={tab}][aria-selected=true]")
    assert browser.get_log("browser") == []


def test_every_picture_is_reached_and_read_by_keyboard(browser, page):
    opened(browser, page, "execution&step=2")
    unreachable = "return canvases.filter(each => each.node.tabIndex < 0).length"
    assert browser.execute_script(unreachable) == 0
    for label, first in (("traffic", "tiles "), ("balance", "tile ")):
        chart = browser.find_element(By.CSS_SELECTOR, f"canvas[aria-label='{label}']")
        chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
        assert texts(browser, "#tip b")[0].startswith(first)
    tile = texts(browser, "#tip b")[0].removeprefix("tile ")
    chart.send_keys(Keys.ENTER)
    assert browser.execute_script("return place.tile") == int(tile)
    for view in VIEWS:
        opened(browser, page, view)
        assert browser.execute_script(unreachable) == 0
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("tab", ["time", "addresses"])
def test_any_tile_can_be_looked_at(browser, page, tab):
    opened(browser, page, "memory")
    browser.find_element(By.CSS_SELECTOR, f"[data-tab={tab}]").click()
    field = browser.find_element(By.ID, "oftile")
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, "15", Keys.ENTER)
    assert "tile 15 over time" in texts(browser, "#view h2")[0]
    assert browser.execute_script("return location.hash").endswith("tile=15")
    browser.find_element(By.CSS_SELECTOR, ".push button").click()
    fullest = browser.execute_script("return P.fullest_tile")
    assert f"tile {fullest} over time" in texts(browser, "#view h2")[0]
    assert browser.get_log("browser") == []


def test_boxes_of_a_tile_are_its_variables_and_their_lives(browser, page):
    opened(browser, page, "memory")
    script = """
        const fits = (tile, box) => {
          const v = VARIABLES[box.variable];
          return v.first_tile <= tile && tile < v.first_tile + v.tiles;
        };
        return [0, 7, 15].map(tile => [layoutOf(tile).length, layoutOf(tile).every(
          (box, k, all) => fits(tile, box) && all.every((other, j) => j === k
            || box.last < other.first || other.last < box.first
            || box.address + box.bytes <= other.address
            || other.address + other.bytes <= box.address
            || box.last === other.first || other.last === box.first))])"""
    for count, apart in browser.execute_script(script):
        assert count > 3
        assert apart, "two variables that live at the same time have places of their own"


def test_addresses_are_explored_by_keyboard(browser, page):
    opened(browser, page, "memory")
    browser.find_element(By.CSS_SELECTOR, "[data-tab=addresses]").click()
    chart = browser.find_element(By.CSS_SELECTOR, "canvas[aria-label='addresses over time']")
    chart.send_keys(Keys.ARROW_UP, Keys.ARROW_UP)
    (name,) = texts(browser, "#tip b")
    assert name in browser.execute_script("return VARIABLES.map(each => each.name)")
    chart.send_keys(Keys.ENTER)
    script = "return VARIABLES.find(each => each.name === arguments[0]).operation"
    assert browser.execute_script("return place.op") == browser.execute_script(script, name)
    assert browser.get_log("browser") == []


def test_numbers_lead_to_views_and_escape_closes_the_details(browser, page):
    opened(browser, page, "operations")
    for number, view in enumerate(VIEWS, 1):
        press(browser, str(number))
        assert view_of(browser) == view
    opened(browser, page, "operations&op=0")
    assert browser.find_element(By.ID, "card").is_displayed()
    press(browser, Keys.ESCAPE)
    assert not browser.find_element(By.ID, "card").is_displayed()


def test_operations_are_sorted_and_filtered(browser, page):
    opened(browser, page, "operations")
    heads = browser.find_elements(By.CSS_SELECTOR, ".grid .head button")
    next(each for each in heads if each.text == "cycles").click()
    cycles = [int(each.replace(",", "")) for each in column(browser, 4)]
    assert cycles == sorted(cycles, reverse=True)
    assert len(cycles) > 2
    browser.find_element(By.ID, "filter").send_keys("product")
    assert column(browser, 1) == ["block/product"]
    browser.find_element(By.ID, "filter").send_keys(" nothing")
    assert texts(browser, ".grid .none") == ["no operation has all these words"]


def test_operations_are_grouped_by_layer(browser, page):
    opened(browser, page, "operations")
    next(
        e for e in browser.find_elements(By.CSS_SELECTOR, ".tools button") if e.text == "by layer"
    ).click()
    groups = texts(browser, ".grid .group > span:first-child em")
    assert "▸ block  (1)" in groups
    assert column(browser, 1) == []
    browser.find_elements(By.CSS_SELECTOR, ".grid .group")[groups.index("▸ block  (1)")].click()
    assert [each.strip() for each in column(browser, 1)] == ["block/product"]


def rows_in(browser: WebDriver) -> list[str]:
    return [each.strip() for each in texts(browser, ".grid .row > span:first-child em")]


def test_equal_blocks_are_one_row_with_a_count(browser, layers):
    opened(browser, layers, "operations")
    cycles = dict(zip(column(browser, 1), column(browser, 3), strict=True))
    buttons = browser.find_elements(By.CSS_SELECTOR, ".tools button")
    next(each for each in buttons if each.text == "by block").click()
    assert rows_in(browser) == ["▸ first … second  (× 2)", "main"]
    browser.find_element(By.CSS_SELECTOR, ".grid .group").click()
    inside = ["▸ first/matmul  (× 2)", "▸ first/softmax  (× 2)"]
    assert rows_in(browser) == ["▾ first … second  (× 2)", *inside, "main"]
    shown = texts(browser, ".grid .group > span:nth-child(3) em")
    both = [int(cycles[f"{layer}/matmul"].replace(",", "")) for layer in ("first", "second")]
    assert shown[1] == f"{sum(both):,}"
    browser.find_elements(By.CSS_SELECTOR, ".grid .group")[1].click()
    assert column(browser, 1)[:2] == [" " * 8 + "first/matmul", " " * 8 + "second/matmul"]
    browser.find_element(By.ID, "filter").send_keys("second")
    assert rows_in(browser)[1:] == ["second/matmul", "second/softmax"]
    assert browser.get_log("browser") == []


def test_an_operation_leads_to_its_time_memory_program_and_source(browser, page):
    opened(browser, page, "operations")
    browser.find_element(By.ID, "filter").clear()
    row = next(
        e for e in browser.find_elements(By.CSS_SELECTOR, ".grid .row") if "block/product" in e.text
    )
    row.click()
    assert "net.py:5:1" in browser.find_element(By.ID, "card").text
    for name, view in (
        ("in time", "execution"),
        ("in memory", "memory"),
        ("in the program", "program"),
        ("in the graph", "graph"),
        ("source", "provenance"),
    ):
        next(
            e for e in browser.find_elements(By.CSS_SELECTOR, "#card .go button") if e.text == name
        ).click()
        assert view_of(browser) == view
        assert "block/product" in browser.find_element(By.CSS_SELECTOR, "#card h2").text
    browser.execute_script("history.back()")
    until(browser, lambda each: view_of(each) == "graph")
    assert browser.get_log("browser") == []


def names_in(browser: WebDriver, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return browser.execute_script(script, f".graph {selector} .name")


def test_an_operation_that_the_graph_leaves_out_has_details_there_too(browser, layers):
    opened(browser, layers, "operations")
    names = column(browser, 1)
    number = browser.execute_script("return OPS.find(op => op.name === 'main').operation")
    assert "main" in names
    opened(browser, layers, "graph")
    drawn = browser.execute_script("return data.graph.drawn")
    assert number not in drawn
    search = browser.find_element(By.ID, "query")
    search.send_keys("main", Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, "#card h2").text.startswith("main")
    assert "in the graph" not in texts(browser, "#card .go button")
    assert browser.get_log("browser") == []


def test_the_graph_unfolds_layers_and_opens_details_by_keyboard(browser, layers):
    opened(browser, layers, "graph")
    assert names_in(browser, ".node.group") == ["▸ first", "▸ second"]
    assert len(browser.find_elements(By.CSS_SELECTOR, ".graph .edge")) == 1
    focused = "return document.activeElement.getAttribute('aria-label')"
    browser.execute_script("document.querySelector('.graph [tabindex=\"0\"]').focus()")
    assert browser.execute_script(focused).startswith("unfold first, 2 operations")
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert browser.execute_script(focused).startswith("unfold second, 2 operations")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.execute_script(focused).startswith("fold second")
    assert names_in(browser, ".node.frame") == ["▾ second"]
    inside = ["matmul", "softmax"]
    assert names_in(browser, ".node.op") == inside
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, "#card h2").text.startswith("second/matmul")
    assert names_in(browser, ".node.on") == ["matmul"]
    browser.switch_to.active_element.send_keys("u")
    assert names_in(browser, ".node.op") == [*inside, *inside]
    browser.switch_to.active_element.send_keys("f")
    assert names_in(browser, ".node.group") == ["▸ first", "▸ second"]
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a model of PyTorch, with modules in modules and lines of Python."""
    model = Path(__file__).parents[2] / "importers/onnx/exported/dynamo.onnx"
    folder = tmp_path_factory.mktemp("modules")
    arguments = ["report", str(model), "--target", "tiny:4", "-o", str(folder / "out")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    return folder / "out" / "index.html"


def test_the_graph_folds_by_modules_and_opens_fitted_with_a_map(browser, modules):
    opened(browser, modules, "graph")
    assert names_in(browser, ".node.group")[:2] == ["▸ blocks.0", "▸ blocks.1"]
    in_sight = """
        const [all, box] = [".graph svg", ".graph"].map(
            each => document.querySelector(each).getBoundingClientRect());
        return all.top >= box.top && all.bottom <= box.bottom && all.right <= box.right"""
    assert browser.execute_script(in_sight)
    assert "1x8x4x4 float32" in texts_in(browser, ".shape")
    attributes = browser.execute_script("return OPS[0].attributes")
    assert attributes.startswith("stride")
    assert any("1x8x4x4 float32  ·  st" in each for each in texts_in(browser, ".node.op text"))
    press_on = "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    browser.execute_script(press_on, browser.find_element(By.CSS_SELECTOR, ".graph .node.group"))
    assert names_in(browser, ".node.frame") == ["▾ blocks.0"]
    assert {"▸ attn", "▸ mlp"} <= set(names_in(browser, ".node.group"))
    # The map shows what is in sight, and a press on it goes there.
    for _ in range(4):
        browser.find_element(By.CSS_SELECTOR, "[aria-label^='Larger']").click()
    height = "return Number(document.querySelector('.minimap .sight').getAttribute('height'))"
    assert (
        0
        < browser.execute_script(height)
        < browser.execute_script(
            "return document.querySelector('.graph svg').viewBox.baseVal.height"
        )
    )
    top = "return document.querySelector('.graph').scrollTop"
    browser.execute_script("document.querySelector('.graph').scrollTop = 0")
    shown = browser.find_element(By.CSS_SELECTOR, ".minimap")
    low = shown.size["height"] // 2 - 3
    ActionChains(browser).move_to_element_with_offset(shown, 0, low).click().perform()
    assert browser.execute_script(top) > 0
    assert browser.get_log("browser") == []


def test_the_line_of_python_is_beside_the_cost(browser, modules):
    opened(browser, modules, "operations&op=0")
    card = browser.find_element(By.ID, "card").text
    assert "export.py:56" in card
    assert "x = self.patch(image).flatten(2).transpose(1, 2)" in card
    heads = texts(browser, ".grid .head button")
    assert heads.index("line") + 1 == heads.index("cycles")
    browser.find_element(By.ID, "filter").send_keys("softmax(-1)")
    assert rows_in(browser)
    assert all("attn" in each for each in rows_in(browser))


def test_operations_of_a_line_of_python_are_one_row(browser, modules):
    opened(browser, modules, "operations")
    buttons = browser.find_elements(By.CSS_SELECTOR, ".tools button")
    next(each for each in buttons if each.text == "by line").click()
    lines = browser.execute_script("return [...new Set(OPS.map(op => op.line).filter(Boolean))]")
    rows = [each for each in rows_in(browser) if each.startswith("▸")]
    assert len(rows) == len(lines)
    assert any(each.startswith("▸ x = self.patch(image).flatten(2)") for each in rows)


def test_the_summary_and_a_superstep_show_the_line(browser, modules):
    opened(browser, modules, "summary")
    shown = texts(browser, ".costline code")
    assert shown
    assert all(each.startswith("export.py:") for each in shown)
    opened(browser, modules, "execution&step=1")
    told = texts(browser, ".panel code.source")
    assert told == ["export.py:56  x = self.patch(image).flatten(2).transpose(1, 2)"]
    assert browser.get_log("browser") == []


def texts_in(browser: WebDriver, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return browser.execute_script(script, f".graph {selector}")


def test_nodes_of_the_graph_do_not_overlap(browser, page):
    opened(browser, page, "graph")
    overlapping = """
        const boxes = [...document.querySelectorAll('.graph .node:not(.frame) .box')]
            .map(e => e.getBoundingClientRect());
        return boxes.flatMap((a, k) => boxes.slice(k + 1).filter(b => a.left < b.right
            && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length"""
    assert len(names_in(browser, ".node")) > 2
    assert browser.execute_script(overlapping) == 0


def test_keys_step_through_time_and_show_what_a_superstep_does(browser, page):
    opened(browser, page, "execution")
    chart = browser.find_element(By.CSS_SELECTOR, "canvas[tabindex='0']")
    for _ in range(3):
        chart.send_keys(Keys.ARROW_RIGHT)
    assert "step=2" in browser.execute_script("return location.hash")
    assert any("compute" in each for each in texts(browser, ".panel dt"))
    chart.send_keys("+")
    assert browser.get_log("browser") == []


def test_a_superstep_is_zoomed_to_the_vertices_of_a_tile(browser, page):
    opened(browser, page, "execution&step=0")
    script = "return STEPS.find(step => step.busy_tiles > 1 && step.compute_cycles).superstep"
    opened(browser, page, f"execution&step={browser.execute_script(script)}")
    critical = browser.execute_script("return STEPS[place.step].critical_tile")
    panel = browser.find_element(By.CSS_SELECTOR, "section[data-tile]")
    assert panel.get_attribute("data-tile") == str(critical)
    count = sum(int(each) for each in texts(browser, "section[data-tile] .row > span:nth-child(4)"))
    title = panel.find_element(By.TAG_NAME, "h2").text
    assert title.startswith(f"Tile {critical}: {count} vert")
    plan = browser.find_element(By.CSS_SELECTOR, "[aria-label='tiles of this superstep']")
    plan.send_keys(Keys.ARROW_RIGHT if critical < 15 else Keys.ARROW_LEFT)
    other = browser.execute_script("return place.tile")
    assert other != critical
    assert panel.get_attribute("data-tile") == str(other)
    assert f"tile={other}" in browser.execute_script("return location.hash")
    # The picture keeps the keyboard.
    assert browser.switch_to.active_element == plan
    assert browser.get_log("browser") == []


def test_names_with_markup_are_text(browser, page):
    opened(browser, page, "operations")
    assert HOSTILE in column(browser, 1)
    browser.find_element(By.ID, "query").send_keys("onerror")
    assert any(HOSTILE in each for each in texts(browser, "#hits button span"))
    for view in VIEWS:
        opened(browser, page, f"{view}&op={column_of(browser, HOSTILE)}")
        assert browser.find_elements(By.TAG_NAME, "img") == []
        assert "hacked" not in browser.title


def column_of(browser: WebDriver, name: str) -> int:
    return browser.execute_script("return OPS.find(op => op.name === arguments[0]).operation", name)


def test_search_finds_operations_supersteps_and_variables(browser, page):
    opened(browser, page)
    press(browser, "/")
    browser.switch_to.active_element.send_keys("product")
    kinds = [each.split(":")[0] for each in texts(browser, "#hits h3")]
    assert kinds[0] == "operations"
    assert set(kinds) >= {"operations", "variables"}
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert "block/product" in browser.find_element(By.CSS_SELECTOR, "#card h2").text


def test_the_page_of_the_passes_is_one_click_away_and_leads_back(browser, page):
    opened(browser, page, "operations&op=1")
    browser.find_element(By.LINK_TEXT, "what passes did").click()
    until(browser, lambda e: e.execute_script("return document.body.dataset.ready") == "yes")
    assert "passes/index.html" in browser.current_url
    assert browser.find_element(By.ID, "query").get_attribute("value") == "block/product"
    browser.find_element(By.ID, "report").click()
    until(browser, lambda each: "passes" not in each.current_url)
    until(browser, lambda e: e.execute_script("return document.body.dataset.ready") == "yes")
    assert view_of(browser) == "summary"


def test_a_program_that_does_not_fit_says_what_has_to_go(browser, tmp_path):
    small = "tiny:4,memory.bytes_per_tile=12000,memory.reserved_bytes=2000"
    found = written(tmp_path, "--target", small)
    opened(browser, found)
    assert any("does not fit" in each for each in texts(browser, ".figure.bad b"))
    browser.find_element(By.CSS_SELECTOR, ".warnings li.bad button").click()
    assert view_of(browser) == "memory"
    browser.find_element(By.CSS_SELECTOR, "[data-tab=time]").click()
    assert any("have to go" in each for each in texts(browser, ".greater"))
    assert browser.get_log("browser") == []


def test_a_comparison_lists_what_differs(browser, tmp_path):
    written(tmp_path, "--target", "tiny:16")
    (tmp_path / "out").rename(tmp_path / "was")
    found = written(tmp_path, str(tmp_path / "was"), "--target", "tiny:4")
    opened(browser, found, "compare")
    assert view_of(browser) == "compare"
    assert any("The targets differ" in each for each in texts(browser, "#view .greater"))
    assert "block/product" in column(browser, 1)
    shown = [each.replace("−", "-").replace(",", "") for each in column(browser, 4)]
    sizes = [0 if each == "=" else abs(int(each)) for each in shown]
    assert sizes == sorted(sizes, reverse=True)
    browser.find_element(By.CSS_SELECTOR, ".grid .row").click()
    assert browser.find_element(By.ID, "card").is_displayed()
    assert browser.get_log("browser") == []


def test_a_notebook_can_use_the_page(browser, tmp_path):
    shown = compile_model(convolutions(), target="tiny:8").report()._repr_html_()
    outer = tmp_path / "notebook.html"
    outer.write_text(f"<!DOCTYPE html><meta charset=utf-8><body data-ready=yes>{shown}")
    open_page(browser, outer.as_uri())
    browser.switch_to.frame(0)
    until(browser, lambda e: e.execute_script("return document.body.dataset.ready") == "yes")
    browser.find_element(By.CSS_SELECTOR, "[data-view=operations]").click()
    assert view_of(browser) == "operations"
    browser.find_element(By.CSS_SELECTOR, ".grid .row").click()
    assert browser.find_element(By.ID, "card").is_displayed()
    browser.switch_to.default_content()
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


def test_the_exchange_of_a_superstep_is_drawn(browser: WebDriver, page: Path):
    open_page(browser, f"{page.as_uri()}#execution")
    exchanges = browser.find_elements(By.CSS_SELECTOR, "[aria-label=Exchanges] .row")
    assert exchanges
    exchanges[0].click()
    until(browser, lambda b: "step=" in b.current_url)
    (picture,) = browser.find_elements(By.CSS_SELECTOR, "[aria-label^='lanes of this exchange']")
    colours = """
        const pen = arguments[0].getContext("2d"), { width, height } = arguments[0];
        const bytes = pen.getImageData(0, 0, width, height).data, found = new Set();
        for (let k = 0; k < bytes.length; k += 4) found.add(bytes.slice(k, k + 3).join());
        return found.size;
    """
    until(browser, lambda b: b.execute_script(colours, picture) > 16)
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
