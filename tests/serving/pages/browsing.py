"""A browser for the tests of pages: found where one is installed, and what tests do with it."""

import json
import shutil
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --lang=en-US"
)


def start(profile: Path) -> "Browser":
    """A browser with nothing in its profile; skipped where none is installed."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed: pip install 'tailwise[dev]'"
    )
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with chromedriver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*_FLAGS.split(), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"intl.accept_languages": "en"})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return Browser(webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER)))


class Browser:
    """A page and what a person does with it."""

    def __init__(self, driver):
        from selenium.webdriver import ActionChains, Keys
        from selenium.webdriver.support.ui import WebDriverWait

        self.driver, self.keys = driver, Keys
        self.run = driver.execute_script
        self._wait = lambda seconds: WebDriverWait(driver, seconds, 0.03)
        self._chain = lambda: ActionChains(driver)

    def show(self, address, width=1280, scheme="light", language="en"):
        """Opens a page with nothing remembered but the language, and waits until it is ready."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get(address)
        self.run(
            "localStorage.clear(); sessionStorage.clear(); localStorage.setItem('tailwise-interface', arguments[0])",
            language,
        )
        self.driver.get(address)
        self.until(lambda: self.run("return document.body.dataset.ready === 'yes'"), "the page is ready")

    def until(self, true, what, seconds=10):
        """Waits until ``true()`` is."""
        return self._wait(seconds).until(lambda _: true(), f"waited for: {what}")

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector):
        """The texts of all that match, as one reads them."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())", selector)

    def text(self, selector):
        return self.texts(selector)[0]

    def click(self, selector, place=0):
        element = self.all(selector)[place]
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def choose(self, selector, value):
        """Chooses an option as a person does."""
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true}));",
            selector,
            value,
        )

    def press(self, *keys):
        """Keys for whatever has the focus."""
        self._chain().send_keys(*keys).perform()

    def press_with(self, modifier, key):
        self._chain().key_down(modifier).send_keys(key).key_up(modifier).perform()

    def focused(self):
        return self.run("const e = document.activeElement; return e.id || e.className || e.tagName")

    def told(self):
        """The message that is shown."""
        return self.run("return document.querySelector('#told.shown')?.innerText ?? ''")

    def write(self, text):
        """A text as if pasted, until it has suggestions."""
        script = (
            "const e = document.querySelector('#text'); e.value = arguments[0]; e.dispatchEvent(new Event('input'))"
        )
        self.run(script, text)
        self.until(lambda: self.all("#results li") and not self.busy(), "suggestions")

    def busy(self):
        return self.run("return document.querySelector('#results').hasAttribute('aria-busy')")

    def names(self):
        """The labels that are suggested."""
        return self.texts("#results .label")

    def taken(self):
        return self.texts("#results li.taken .label")

    def drop(self, name, content):
        """Drops a file on the page."""
        self.run(
            """const files = new DataTransfer(); files.items.add(new File([arguments[1]], arguments[0]));
            for (const kind of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent(
                new DragEvent(kind, {dataTransfer: files, bubbles: true, cancelable: true}));""",
            name,
            content,
        )

    def scrolls_sideways(self):
        return self.run("return document.documentElement.scrollWidth > window.innerWidth")

    def violations(self, rules=None):
        """What axe-core finds by all or by some of its rules, in a line each."""
        if not self.run("return 'axe' in window"):
            self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
        found = self.driver.execute_async_script(
            """const options = {resultTypes: ['violations'], ...(arguments[0] ? {runOnly: arguments[0]} : {})};
            axe.run(document, options).then(found => arguments[1](found.violations))""",
            rules,
        )
        return [f"{one['id']}: {node['html'][:200]} {node['failureSummary']}" for one in found for node in one["nodes"]]

    def complaints(self):
        """What the console says since it was last asked."""
        return [f"{entry['level']} {entry['message']}" for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that were asked for since this was last asked."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
