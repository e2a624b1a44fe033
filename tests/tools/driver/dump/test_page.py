"""The page in a browser: opened from its file, without a network."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import IN_BROWSER, chromium, network_urls, open_page, texts, until
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from abele.tools.debug.opt import Options, optimise
from abele.tools.extensions import load_extensions

pytestmark = IN_BROWSER

TEXT = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes
    {arg_names = ["x"], result_names = ["y"]} {
  %0 = nn.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("unread")
  %1 = nn.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("clamp"("net.py":12:3))
  %2 = nn.softmax %1 axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("probabilities")
  func.return %2 : tensor<4x8xf32> loc("main")
} loc("main")
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    source = folder / "net.mlir"
    source.write_text(TEXT)
    options = Options(target="tiny", dump=folder / "dump")
    optimise(str(source), "nn,partition,tile,exchange", options, load_extensions(()))
    return folder / "dump" / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    yield from chromium(1400, 900)


def opened(browser: WebDriver, page: Path, place: str = "") -> WebDriver:
    open_page(browser, f"{page.as_uri()}{place}")
    return browser


def number_of(browser: WebDriver, name: str) -> int:
    return next(i for i, each in enumerate(texts(browser, "#list .name")) if each.endswith(name))


def until_said(browser: WebDriver, selector: str, text: str) -> None:
    until(browser, lambda each: any(text in found for found in texts(each, selector)))


def test_it_opens_from_its_file_without_network_and_without_errors(browser, page):
    opened(browser, page)
    assert browser.get_log("browser") == []
    assert network_urls(browser) == []


def test_passes_are_listed_in_order_and_those_that_changed_nothing_are_dimmed(browser, page):
    opened(browser, page)
    names = [each[2:] for each in texts(browser, "#list .name")]
    assert names[:2] == ["input", "decompose"]
    assert names[-1] == "convert-tile-to-exchange"
    dimmed = {each[2:] for each in texts(browser, "#list li.same .name")}
    files = {each.name[3:-5] for each in page.parent.glob("*.mlir")}
    assert dimmed
    assert dimmed == set(names) - files


def test_every_place_has_its_figures_and_every_pass_its_seconds(browser, page):
    opened(browser, page)
    rows = browser.find_elements(By.CSS_SELECTOR, "#list li")
    for number, row in enumerate(rows):
        seconds, *figures = [each.text for each in row.find_elements(By.CSS_SELECTOR, ".n")]
        assert bool(seconds) == (number > 0)
        assert all(int(each.replace(",", "")) > 0 for each in figures)
        assert len(figures) == 3
    # What is computed where it is read costs no superstep of its own.
    row = rows[number_of(browser, "fuse-chains")]
    assert row.find_element(By.CSS_SELECTOR, ".d.less").text.startswith("−")
    # What nobody reads goes from every program that is built: that has no price.
    row = rows[number_of(browser, "eliminate-dead")]
    assert row.find_elements(By.CSS_SELECTOR, ".d.less") == []


def test_the_diff_shows_each_operation_beside_its_replacement(browser, page):
    opened(browser, page, "#pass=1")
    assert any("nn.softmax" in each for each in texts(browser, ".split .cell:first-child .code"))
    after = texts(browser, ".split .cell:last-child.new .code")
    assert any("nn.reduce" in each for each in after)
    unchanged = texts(browser, ".split .cell:not(.new):not(.gone):not(.was):not(.is) .code")
    assert any("nn.relu" in each for each in unchanged)


def test_where_the_level_changes_each_operation_is_beside_what_was_made_from_it(browser, page):
    number = number_of(opened(browser, page), "convert-nn-to-partition")
    opened(browser, page, f"#pass={number}")
    assert texts(browser, "#tab-diff") == ["Each operation and what was made from it"]
    until_said(browser, "#list .on", "lines")
    pairs = browser.execute_script(
        "return [...document.querySelectorAll('.row.family')].map("
        "row => [...row.children].map(cell => cell.textContent))"
    )
    (relu,) = [pair for pair in pairs if "nn.relu" in pair[0]]
    assert "partition." in relu[1]
    assert texts(browser, ".gone .code, .new .code, .was .code, .is .code") == []
    before = len(browser.find_elements(By.CSS_SELECTOR, ".row"))
    browser.find_element(By.CSS_SELECTOR, ".fold").click()
    assert len(browser.find_elements(By.CSS_SELECTOR, ".row")) > before
    assert any(each.startswith("#") for each in texts(browser, ".split .code"))


def test_an_operation_of_another_level_still_has_its_card(browser, page):
    number = number_of(opened(browser, page), "convert-nn-to-partition")
    opened(browser, page, f"#pass={number}")
    browser.find_element(By.CSS_SELECTOR, ".cell.from .code").click()
    assert "nn." in texts(browser, "#card h2")[0] or "func." in texts(browser, "#card h2")[0]


def test_a_narrow_page_shows_what_was_made_from_an_operation_below_it(browser, page):
    number = number_of(opened(browser, page), "convert-nn-to-partition")
    browser.set_window_size(800, 900)
    try:
        opened(browser, page, f"#pass={number}")
        lines = texts(browser, ".cell.from .code, .cell.into .code")
        at = next(k for k, each in enumerate(lines) if "nn.relu" in each)
        assert any("partition." in each for each in lines[at + 1 : at + 4])
    finally:
        browser.set_window_size(1400, 900)


def test_changed_words_are_marked(browser, page):
    opened(browser, page)
    opened(browser, page, f"#pass={number_of(browser, 'plan-splits')}")
    assert any("plan" in each for each in texts(browser, ".is w"))
    assert "nn.relu" not in texts(browser, ".is w")


def test_values_that_are_only_numbered_anew_are_unchanged(browser, page):
    opened(browser, page)
    opened(browser, page, f"#pass={number_of(browser, 'eliminate-dead')}")
    assert any("nn.exp" in each for each in texts(browser, ".gone .code"))
    assert texts(browser, ".is, .new") == []


def test_one_steps_through_single_rewrites_forward_and_back(browser, page):
    opened(browser, page, "#pass=1&view=steps")
    assert texts(browser, "#rule") == ["decompose nn.softmax"]
    assert texts(browser, "#source")[0].startswith("composite.py:")
    gone, new = texts(browser, ".row .gone .code"), texts(browser, ".row .new .code")
    assert any("nn.softmax" in each for each in gone)
    assert any("nn.exp" in each for each in new)
    dead = number_of(browser, "convert-tile-to-exchange")
    opened(browser, page, f"#pass={dead}&view=steps")
    first = texts(browser, ".row .gone .code")
    keys = ActionChains(browser)
    keys.send_keys(Keys.ARROW_RIGHT).perform()
    assert texts(browser, "#count")[0].startswith("2 of ")
    assert texts(browser, ".row .gone .code") != first
    keys = ActionChains(browser)
    keys.send_keys(Keys.ARROW_LEFT).perform()
    assert texts(browser, "#count")[0].startswith("1 of ")
    assert texts(browser, ".row .gone .code") == first


def test_the_last_rewrite_leaves_the_program_after_the_pass(browser, page):
    opened(browser, page)
    script = """
      return stages.filter(stage => stage.changes.length).map(stage => {
        const rows = stepItems(stage, stage.changes.length - 1).flatMap(row => row.fold || [row]);
        const left = rows.filter(row => row.kind !== "gone").map(row => shape(row.b.text));
        return [left, stage.program.map(line => shape(line.text))];
      })"""
    compared = browser.execute_script(script)
    assert len(compared) > 2
    for left, program in compared:
        assert left == program


def test_search_finds_nodes_in_all_passes_and_goes_there(browser, page):
    opened(browser, page)
    browser.find_element(By.ID, "query").send_keys("clamp")
    until_said(browser, "#hits h3", "convert-tile-to-exchange")
    assert any("nn.relu" in each for each in texts(browser, "#hits button"))
    browser.find_element(By.ID, "query").send_keys(Keys.ENTER)
    assert any("nn.relu" in each for each in texts(browser, ".flash .code"))


def test_search_finds_rules(browser, page):
    opened(browser, page)
    browser.find_element(By.ID, "query").send_keys("decompose nn.softmax")
    until_said(browser, "#hits button", "rewrite 1: decompose nn.softmax")
    browser.find_element(By.CSS_SELECTOR, "#hits button").click()
    assert texts(browser, "#rule") == ["decompose nn.softmax"]


def test_hovering_tells_an_operation_s_origin_and_leads_to_other_levels(browser, page):
    opened(browser, page, "#pass=0")
    lines = browser.find_elements(By.CSS_SELECTOR, ".row .code")
    line = next(each for each in lines if "nn.relu" in each.text)
    ActionChains(browser).move_to_element(line).perform()
    until_said(browser, "#card .from", "clamp")
    assert "net.py:12:3" in texts(browser, "#card dl")[0]
    buttons = browser.find_elements(By.CSS_SELECTOR, "#card td button")
    levels = {each.text.split(".")[0] for each in buttons}
    assert levels == {"nn", "partition", "tile", "exchange"}
    next(each for each in buttons if each.text.startswith("partition")).click()
    assert any("partition." in each for each in texts(browser, ".flash .cell:last-child .code"))


def test_unchanged_runs_fold_and_unfold(browser, page):
    opened(browser, page)
    opened(browser, page, f"#pass={number_of(browser, 'convert-tile-to-exchange')}&view=steps")
    folds = browser.find_elements(By.CSS_SELECTOR, ".fold")
    before = browser.execute_script("return items.length")
    folds[-1].click()
    assert browser.execute_script("return items.length") > before


def test_only_the_rows_in_sight_are_in_the_document(browser, page):
    opened(browser, page)
    opened(browser, page, f"#pass={len(texts(browser, '#list li')) - 1}&view=program")
    browser.execute_script("items = Array.from({length: 5000}, () => items[0]); paint(true)")
    assert len(texts(browser, ".row")) < 100


def test_passes_can_be_hidden_for_longer_lines(browser, page):
    opened(browser, page)
    before = browser.execute_script("return room")
    browser.find_element(By.ID, "wide").click()
    assert browser.execute_script("return room") > before
    browser.find_element(By.ID, "wide").click()
    assert browser.execute_script("return room") == before


def test_marked_words_stay_in_sight_where_a_line_is_too_long(browser, page):
    opened(browser, page)
    opened(browser, page, f"#pass={number_of(browser, 'allocate')}")
    script = """
      return [...document.querySelectorAll(".is .code:has(w)")].map(code => {
        const word = code.querySelector("w");
        return word.getBoundingClientRect().right <= code.getBoundingClientRect().right;
      })"""
    seen = browser.execute_script(script)
    assert seen
    assert all(seen)


def test_the_card_of_an_operation_says_what_it_costs(browser, page):
    opened(browser, page, f"#pass={number_of(opened(browser, page), 'input')}&view=program")
    softmax = next(
        each
        for each in browser.find_elements(By.CSS_SELECTOR, ".cell .code")
        if "nn.softmax" in each.text
    )
    softmax.click()
    until_said(browser, "#card .cost", " cycles in a run (exchange ")
    (text,) = texts(browser, "#card .cost")
    assert re.search(r"^[1-9][\d,]* cycles .* [\d,]+ bytes exchanged, by \d+ operations of", text)
    last = number_of(browser, "convert-tile-to-exchange")
    opened(browser, page, f"#pass={last}&view=program")
    vertices = next(
        each
        for each in browser.find_elements(By.CSS_SELECTOR, ".cell .code")
        if "exchange.compute" in each.text
    )
    vertices.click()
    until_said(browser, "#card .cost", "result: ")
    (text,) = texts(browser, "#card .cost")
    assert re.search(r"exchange 0, compute [1-9][\d,]*\), 0 bytes exchanged; result: \d+ b", text)
