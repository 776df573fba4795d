"""The site in a real browser, from the disk: nothing cut, plots readable in the dark, a menu of versions."""

import shutil

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
if not (BROWSER and DRIVER):
    pytest.skip("no Chromium with chromedriver is installed", allow_module_level=True)
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

CUT = """
const cut = [];
for (const e of document.querySelectorAll('.bd-article :is(pre, table, img, math, p, dt)')) {
  const box = e.getBoundingClientRect();
  let p = e;
  while (p && !['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) p = p.parentElement;
  const hidden = p ? p.scrollWidth > p.clientWidth + 1 && innerWidth > 1000 : box.right > innerWidth + 1;
  if (box.width && hidden) cut.push(e.tagName + ': ' + e.textContent.trim().slice(0, 60));
}
return [document.documentElement.scrollWidth > innerWidth, cut.slice(0, 3)];
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run",
                 "disable-background-networking", f"user-data-dir={tmp_path_factory.mktemp('profile')}"):  # fmt: skip
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def show(browser, path, width=1280, scheme="light"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(path.as_uri())


@pytest.mark.parametrize("width", [1280, 390])
def test_no_code_and_no_table_is_cut(browser, site, width):
    """On a wide screen nothing scrolls sideways; on a phone what is wider scrolls in a box of its own."""
    pages = sorted(page for page in site.rglob("*.html") if not {"_static", "search.html"} & set(page.parts))
    found = {}
    for page in pages:
        show(browser, page, width)
        wider, cut = browser.execute_script(CUT)
        if wider or cut:
            found[str(page.relative_to(site))] = cut
    assert len(pages) > 30 and found == {}


def test_plots_are_light_ink_on_a_dark_page(browser, site):
    look = "const s = getComputedStyle(document.querySelector('.bd-article img')); return [s.filter, s.backgroundColor]"
    show(browser, site / "missing-labels.html")
    assert browser.execute_script(look)[0] == "none"
    show(browser, site / "missing-labels.html", scheme="dark")
    filters, paper = browser.execute_script(look)
    assert filters.startswith("invert(1)") and paper == "rgba(0, 0, 0, 0)"


def test_the_menu_leads_to_the_same_page_of_another_version(browser, site):
    other = site.parent / "0.2" / "methods"
    other.mkdir(parents=True, exist_ok=True)
    (other / "bonsai.html").write_text("<title>the other</title>")
    listed = site.parent / "versions.js"
    before = listed.read_text()
    try:
        listed.write_text('window.tailwiseVersions = ["0.2", "dev"];')
        show(browser, site / "methods" / "bonsai.html")
        menu = "const menu = document.querySelector('.version-menu select');"
        assert browser.execute_script(f"{menu} return [menu.value, ...[...menu.options].map(o => o.value)]") == [
            "dev", "0.2", "dev",
        ]  # fmt: skip
        browser.execute_script(f"{menu} menu.value = '0.2'; menu.dispatchEvent(new Event('change'))")
        assert browser.title == "the other" and browser.current_url.endswith("/0.2/methods/bonsai.html")
        listed.unlink()
        show(browser, site / "methods" / "bonsai.html")
        assert browser.execute_script(f"{menu} return menu.value") == "dev", "alone, it names itself"
    finally:
        listed.write_text(before)
