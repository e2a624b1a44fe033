"""Starts Chromium for tests of HTML pages."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.remote.webdriver import WebDriver  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
CHROMEDRIVER = shutil.which("chromedriver")

IN_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or CHROMEDRIVER is None,
        reason="no chromium or no chromedriver: nothing to open the page with",
    ),
    # One browser for all tests: workers of pytest-xdist take files whole.
    pytest.mark.xdist_group("chromium"),
]


def chromium(width: int, height: int) -> Iterator[WebDriver]:
    """A headless browser with a window of this size in pixels. It ends with its fixture."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    options.binary_location = CHROMIUM or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Selenium must not go and look for drivers.
    os.environ["SE_OFFLINE"] = "true"
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    yield driver
    driver.quit()


def open_page(browser: WebDriver, url: str) -> float:
    """Open a page with empty logs. Returns the seconds until it is ready."""
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    start = time.perf_counter()
    browser.get(url)
    until(browser, lambda each: each.execute_script("return document.body.dataset.ready") == "yes")
    return time.perf_counter() - start


def until(browser: WebDriver, holds: Callable[[WebDriver], object]) -> None:
    """Wait until the condition holds, for a few seconds at most."""
    WebDriverWait(browser, 20).until(holds)


def texts(browser: WebDriver, selector: str) -> list[str]:
    """The texts of the elements that a CSS selector finds."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return browser.execute_script(script, selector)


def network_urls(browser: WebDriver) -> list[str]:
    """What the browser has asked of a network since `open_page`."""
    log = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    sent = [each["params"] for each in log if each["method"] == "Network.requestWillBeSent"]
    urls = [each["request"]["url"] for each in sent]
    return [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))]
