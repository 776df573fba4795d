"""The report in a real browser: no console errors, plots drawn, readable on a phone, usable by keyboard."""

import json
import shutil

import pytest

from tailwise.experiments.report import build_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
if not (BROWSER and DRIVER):
    pytest.skip("no Chromium with chromedriver is installed", allow_module_level=True)
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(trial, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(build_report(trial), encoding="utf-8")
    return path.as_uri()


def show(browser, address, width=1200, scheme="light"):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(address)


def test_no_console_messages_and_only_the_file_is_requested(browser, address):
    browser.get_log("performance")
    show(browser, address)
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert address in asked
    assert not [url for url in asked if url.startswith(("http:", "https:", "ws:", "wss:"))]


def test_every_plot_is_drawn(browser, address):
    show(browser, address)
    charts = browser.execute_script(
        """return [...document.querySelectorAll('svg.chart')].map(svg => {
            const box = svg.getBoundingClientRect();
            const marks = svg.querySelectorAll('.line, .bar, .dot');
            const drawn = [...marks].filter(m => { const b = m.getBBox(); return b.width + b.height > 0; });
            return [box.width, box.height, drawn.length, svg.querySelector('title').textContent];
        })"""
    )
    assert len(charts) >= 12
    for width, height, drawn, title in charts:
        assert width > 200, title
        assert height > 100, title
        assert drawn > 0, title


def test_a_phone_needs_no_sideways_scrolling_and_text_stays_readable(browser, address):
    show(browser, address, width=360)
    wide, inner = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= inner
    heights = browser.execute_script(
        "return [...document.querySelectorAll('svg.chart text.tick')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(heights) >= 8


def test_light_and_dark_follow_the_reader(browser, address):
    colours = {}
    for scheme in ("light", "dark"):
        show(browser, address, scheme=scheme)
        colours[scheme] = browser.execute_script(
            "const c = s => (s.match(/\\d+/g) || []).slice(0, 3).reduce((a, b) => a + +b, 0);"
            "const style = getComputedStyle(document.body); return [c(style.backgroundColor), c(style.color)];"
        )
    paper, ink = colours["light"]
    assert paper > 700
    assert ink < 200
    paper, ink = colours["dark"]
    assert paper < 100
    assert ink > 600


def test_the_keyboard_reaches_links_tables_and_details(browser, address):
    from selenium.webdriver.common.keys import Keys

    show(browser, address)
    reached = set()
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(
            browser.execute_script("return document.activeElement.tagName + '.' + document.activeElement.className")
        )
    assert {"A.skip", "A.", "DIV.scroll", "SUMMARY."} <= reached
    browser.execute_script("document.querySelector('details > summary').focus()")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.execute_script("return document.querySelector('details').open")


def test_a_phone_shows_that_tables_go_on(browser, address):
    show(browser, address, width=360)
    widths, images = browser.execute_script(
        """const all = [...document.querySelectorAll('.scroll')];
        return [all.map(d => d.scrollWidth > d.clientWidth), all.map(d => getComputedStyle(d).backgroundAttachment)]"""
    )
    assert any(widths)
    assert set(images) == {"local, local, scroll, scroll"}
