"""A headless Chromium that looks at the status page."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from processes import ROOT
from waiting import until

#: Where screenshots go: what is to be kept of a run of the checks.
PICTURES = Path(os.environ.get("CI_OUTPUT") or ROOT / ".build") / "screenshots"

DESKTOP = (1280, 900)
PHONE = (390, 844)


class Page:
    """A status page in a browser."""

    def __init__(self, driver: webdriver.Chrome):
        self.driver = driver

    def open(self, url: str) -> "Page":
        self.driver.get(url)
        self.until("the page has drawn its data", "return document.querySelectorAll('#tiles .tile').length === 6")
        return self

    def run(self, script: str, *arguments: object):
        return self.driver.execute_script(script, *arguments)

    def until(self, what: str, script: str, *arguments: object, timeout: float = 30):
        return until(what, lambda: self.run(script, *arguments), timeout, pause=0.1)

    def text(self, selector: str) -> str:
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def all(self, selector: str) -> list[str]:
        return [found.text for found in self.driver.find_elements(By.CSS_SELECTOR, selector)]

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def size(self, size: tuple[int, int]) -> None:
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def theme(self, theme: str) -> None:
        """What the system asks for: `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, name: str, whole: bool = False) -> Path:
        """Keeps a screenshot of what is seen, or of the whole page."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        if whole:
            width = self.run("return window.innerWidth")
            height = min(4000, self.run("return document.documentElement.scrollHeight"))
            self.size((width, height))
            self.until("it has drawn itself anew", "return window.innerHeight === arguments[0]", height)
        path.unlink(missing_ok=True)
        assert self.driver.save_screenshot(str(path))
        return path

    def complaints(self) -> list[str]:
        """What the browser holds against the page: errors, and what its policy forbade."""
        return [f"{line['level']} {line['message']}" for line in self.driver.get_log("browser")]


@contextmanager
def browser() -> Iterator[Page]:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--disable-extensions", "--disable-background-networking", f"--window-size={DESKTOP[0]},{DESKTOP[1]}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        page = Page(driver)
        page.size(DESKTOP)
        yield page
    finally:
        driver.quit()
