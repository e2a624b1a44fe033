"""The health of a training run as a view of the report's page, in a browser."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import IN_BROWSER, chromium, open_page, texts
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from some_steps import LARGE
from typer.testing import CliRunner

from abele.tools.cli import app

pytestmark = IN_BROWSER


SELECT = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    yield from chromium(1400, 1000)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("health")
    (folder / "m.mlir").write_text(LARGE)
    x = np.full((8, 4), 2.0**-18, np.float32)
    x[5] = 1.0
    np.savez(folder / "data.npz", x=x, target=np.zeros((8, 2), np.float32))
    words = ["train", str(folder / "m.mlir"), "--data", str(folder / "data.npz"), "--steps", "4"]
    words += ["--target", "mk2:2", "--loss", "mean_square", "--precision", "float16"]
    words += ["--rounding", "nearest", "--training", "learning-rate=0"]
    words += ["--training", "scaling=automatic", "--health", str(folder / "h.html")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return folder / "h.html"


def column(browser: WebDriver, number: int) -> list[str]:
    return texts(browser, f".grid .row > span:nth-child({number}) em")


def test_the_operations_are_shown_with_phase_line_and_loss_scale(browser: WebDriver, page: Path):
    open_page(browser, f"{page.as_uri()}#health")
    names, phases, lines = (column(browser, number) for number in (1, 3, 4))
    assert len(names) > 5
    assert set(phases) == {"forward", "backward", "update"}
    assert "net.py:7:1" in lines
    assert any("loss scale" in each for each in texts(browser, "#view h2"))
    assert browser.get_log("browser") == []


def test_the_operation_that_overflows_comes_first(browser: WebDriver, page: Path):
    open_page(browser, f"{page.as_uri()}#health")
    choose = browser.find_element(By.CSS_SELECTOR, "select[aria-label=Measure]")
    for measure in ("zeros", "subnormals", "largest", "near", "overflow"):
        browser.execute_script(SELECT, choose, measure)
        assert len(column(browser, 1)) > 5
    # Gradients overflow, and the forward pass does not.
    assert column(browser, 3)[0] == "backward"
    assert browser.get_log("browser") == []


def test_a_report_without_a_run_has_no_such_view(browser: WebDriver, tmp_path: Path):
    (tmp_path / "m.mlir").write_text(LARGE)
    words = ["report", str(tmp_path / "m.mlir"), "-o", str(tmp_path / "out"), "--target", "tiny:2"]
    assert CliRunner().invoke(app, words).exit_code == 0
    open_page(browser, (tmp_path / "out" / "index.html").as_uri())
    assert "Health" not in texts(browser, "#tabs button")
