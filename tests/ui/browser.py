"""A headless Chromium controlled by a test."""

import json
import os
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

try:
    from selenium import webdriver
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = By = Keys = None

# As Puppeteer and Playwright start Chromium: no throttling of invisible windows or of frequent events.
AWAKE = ("--allow-pre-commit-input", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
         "--disable-hang-monitor", "--disable-ipc-flooding-protection", "--disable-renderer-backgrounding")
PATIENCE_S = 120  # Only a hanging browser takes that long.
OFTEN_S = 0.05


def missing():
    """The missing requirements of the test; empty if there are none."""
    if webdriver is None:
        return "python3-selenium"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return program
    return ""


def with_system_python():
    """Continues in the system's Python if this one has no selenium: distributions install it only there."""
    system = "/usr/bin/python3"
    if webdriver is None and os.path.exists(system) and os.path.realpath(sys.executable) != os.path.realpath(system):
        os.execv(system, [system, *sys.argv])


class Failure(Exception):
    pass


class Browser:
    def __init__(self, address):
        self.address = address.rstrip("/")
        options = Options()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", *AWAKE):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.size(1360, 820)

    def close(self):
        self.driver.quit()

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def dark(self, is_dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]})

    def open(self, hash_):
        """Opens the page as in a new tab: no selection, no stored columns."""
        self.driver.get(self.address + "/missing-page-for-storage")
        self.run("localStorage.clear(); sessionStorage.clear();")
        self.driver.get(f"{self.address}/{hash_}")

    def go(self, hash_):
        """Runs a script in the page."""
        self.run("location.hash = arguments[0]", hash_)

    def reload(self):
        self.driver.refresh()

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def until(self, what, call, wanted=None):
        """Waits until a call returns something, or the expected value, and returns it."""
        end = time.monotonic() + PATIENCE_S
        found = None
        while time.monotonic() < end:
            try:
                found = call()
            except StaleElementReferenceException:
                found = None
            if (found if wanted is None else found == wanted):
                return found
            time.sleep(OFTEN_S)
        raise Failure(f"{what}: found {found!r}" + (f", not {wanted!r}" if wanted is not None else ""))

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        """An element, once it exists and is visible."""
        return self.until(selector, lambda: next((one for one in self.all(selector) if one.is_displayed()), None))

    def texts(self, selector):
        """The texts of all elements, including invisible ones."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def text(self, selector):
        found = self.texts(selector)
        return found[0] if found else None

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def actions(self):
        return ActionChains(self.driver)

    def let_go(self):
        """Releases every key and button."""
        ActionChains(self.driver).reset_actions()

    def click(self, selector):
        self.one(selector).click()

    def double_click(self, element):
        """Marks the second click as part of a double click, as a busy machine may delay it too much."""
        x, y = self.run("const one = arguments[0]; one.scrollIntoView({ block: 'nearest' }); const box = one.getBoundingClientRect();"
                        "return [box.left + box.width / 2, box.top + box.height / 2]", element)
        for clicks in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": clicks})

    def requests(self, part):
        """The addresses requested by the page that contain this text."""
        return [name for name in self.run("return performance.getEntriesByType('resource').map((one) => one.name)") if part in name]

    def forget_requests(self):
        self.run("performance.clearResourceTimings()")

    def complaints(self):
        """The browser's messages about failed scripts and violations of the content security policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and "Failed to load resource" not in entry["message"]]


class Api:
    """Requests the expected content of the page directly from the server."""

    def __init__(self, address):
        self.address = address.rstrip("/")

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.address}/api/{path}?{urllib.parse.urlencode(query)}", timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def error(self, path, **query):
        try:
            self.get(path, **query)
        except urllib.error.HTTPError as error:
            return json.load(error)["error"]
        raise Failure(f"{path} {query} is not an error")

    def names(self, **query):
        return [run["name"] for run in self.get("runs", **query)["runs"]]
