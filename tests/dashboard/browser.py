"""Debian's chromium, driven by selenium, as a person has it: pages, what they asked for, what their
console said, and the rules of axe-core."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = "chromium", "chromedriver"
OTHER_HOST = "evil.example"
"""A name that the browser believes to be this host's."""
CLICKS_MAX = 20
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--window-size=1280,1000",
    f"--host-resolver-rules=MAP {OTHER_HOST} 127.0.0.1",
)


class Browser:
    """A window of a browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Load a page."""
        self.driver.get(url)

    @property
    def words(self) -> str:
        """Text that a person reads on the page now; empty between two pages, without a body."""
        return str(self.run("return document.body ? document.body.innerText : ''"))

    def run(self, code: str, *arguments: object) -> Any:
        """Run JavaScript in the page and return its value."""
        return self.driver.execute_script(code, *arguments)

    def click(self, selector: str) -> None:
        """Click what the selector finds first.

        A page that changes may replace the element before the click: it is found again then, since
        nothing was clicked.
        """
        from selenium.common.exceptions import StaleElementReferenceException

        for _ in range(CLICKS_MAX - 1):
            with contextlib.suppress(StaleElementReferenceException):
                self.driver.find_element("css selector", selector).click()
                return
        self.driver.find_element("css selector", selector).click()

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        from selenium.webdriver import ActionChains

        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def asked_for(self) -> list[str]:
        """Return the addresses that were asked for since this was called last."""
        found = [json.loads(each["message"])["message"] for each in self._log("performance")]
        return [
            each["params"]["request"]["url"]
            for each in found
            if each["method"] == "Network.requestWillBeSent"
        ]

    def console(self) -> list[str]:
        """Return what the console said since this was called last, refusals by policy included."""
        return [str(each["message"]) for each in self._log("browser")]

    def _log(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.driver.get_log(name)
        return found

    def colours(self, scheme: str) -> None:
        """Prefer "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def width(self, pixels: int) -> None:
        """Make the window as wide as a phone; 0: as it was."""
        if not pixels:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            return
        metrics = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def broken_rules(self) -> list[str]:
        """Return what axe-core finds wrong with the page: the rule, and where."""
        import axe_core_python

        if not self.run("return typeof axe !== 'undefined'"):
            script = Path(axe_core_python.__file__).parent / "axe.min.js"
            self.run(script.read_text())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then(done, (e) => done({violations: [{id: "
            "String(e), nodes: []}]}))"
        )
        return [
            f"{rule['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for rule in found["violations"]
            for node in rule["nodes"] or [{"html": ""}]
        ]


@contextlib.contextmanager
def opened(timeout_s: float) -> Iterator[Browser]:
    """A browser until the end of the block; skips the test where there is none."""
    pytest.importorskip("selenium", reason="selenium is not installed (the extra `browser`)")
    pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    paths = [shutil.which(each) for each in (CHROMIUM, DRIVER)]
    if None in paths:
        pytest.skip("chromium is not installed: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for each in _OPTIONS:
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(paths[1]))
    driver.set_script_timeout(timeout_s)
    driver.set_page_load_timeout(timeout_s)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
