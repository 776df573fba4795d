"""What holds for every page: the model, languages, phones, colours, and what axe-core finds."""

import pytest

from serving.pages.small_world import TEXT


def test_the_text_survives_a_visit_to_the_model(page, home):
    page.click("#bar nav li:nth-child(2) a")
    page.until(lambda: page.run("return document.body.dataset.ready === 'yes'"), "the model's page")
    assert page.text("#name") == "Subjects"
    page.click("#bar nav li:nth-child(1) a")
    page.until(lambda: page.all("#results li"), "suggestions")
    assert page.find("#text").get_attribute("value") == TEXT


def test_the_model_page_shows_what_it_learnt_from_and_how_good_it_is(browser, home):
    browser.show(f"{home}/models/subjects")
    facts = dict(zip(browser.texts("#facts dt"), browser.texts("#facts dd"), strict=True))
    assert facts["labels"] == "8" and int(facts["training records"]) > 200
    assert [one.split("-h")[0] for one in browser.texts("#evaluation h2")] == [
        "Metrics",
        "Calibration",
        "Coverage",
        "Glossary",
    ]
    assert browser.run("return document.querySelectorAll('#evaluation svg.chart').length") == 3
    rows = browser.texts("#metrics tbody tr")
    recall = next(row for row in rows if row.startswith("recall@5"))
    assert recall.count("[") == 4, "the interval of all, head, torso and tail"
    browser.choose("#interface", "de")
    assert browser.texts("#evaluation h2") == ["Kennzahlen", "Kalibrierung", "Abdeckung", "Begriffe"]
    said = browser.text("#evaluation")
    for english in ("rows", "labels", "score", "percent", "The ", "training"):
        assert english not in said, english


def test_the_interface_is_shown(browser, home):
    browser.show(f"{home}/docs")
    assert len(browser.all(".operation")) >= 9
    browser.run("document.querySelectorAll('.operation').forEach(e => e.open = true)")
    assert any("threshold" in text for text in browser.texts(".operation"))


def test_german_is_whole(browser, home):
    both = """Promise.all(['en', 'de'].map((code) => import(`/static/words-${code}.js`)))
        .then((found) => arguments[0](found.map((words) => words.default)))"""
    browser.show(f"{home}/", language="de")
    english, german = browser.driver.execute_async_script(both)
    assert english.keys() == german.keys()
    holes = lambda said: sorted("".join(said).split("{")[1:])  # noqa: E731
    for key in english:
        assert len(holes(english[key])) == len(holes(german[key])), key
        assert isinstance(english[key], list) == isinstance(german[key], list), key
    used = browser.run("return [...document.querySelectorAll('[data-t]')].map(e => e.dataset.t)")
    assert set(used) <= english.keys()
    browser.write(TEXT)
    assert browser.names()[0] == "Fischerei", "names follow the interface until they are chosen"
    assert browser.text("#labels-h") == "Vorschläge"
    assert browser.run("return document.documentElement.lang") == "de"
    browser.choose("#interface", "en")
    assert browser.text("#labels-h") == "Suggestions"


@pytest.mark.parametrize("path", ["/", "/models/subjects", "/review/check", "/docs"])
def test_a_phone_needs_no_sideways_scrolling(browser, home, path):
    browser.show(home + path, width=360, language="de")
    if path == "/":
        browser.write(TEXT)
        browser.click("#results li:nth-child(1) .label")
        browser.until(lambda: browser.all(".why"), "the explanation")
    assert not browser.scrolls_sideways()
    small = browser.run(
        """return [...document.querySelectorAll('main button, main select, main input[type=range]')]
            .filter(e => e.offsetParent && e.getBoundingClientRect().height < 24).map(e => e.outerHTML)"""
    )
    assert small == [], "fingers find every control"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(browser, home, scheme):
    found, rules = {}, ["color-contrast"] if scheme == "dark" else None
    browser.show(f"{home}/", scheme=scheme)
    found["empty"] = browser.violations(rules)
    browser.write(TEXT)
    browser.click("#results li:nth-child(2) .label")
    browser.until(lambda: browser.all(".why"), "the explanation")
    browser.click("#results li:nth-child(3) .exclude")
    browser.find("#add").send_keys("wi")
    browser.until(lambda: browser.all("#add-0"), "found")
    found["suggestions"] = browser.violations(rules)
    browser.drop("a.csv", "id,text\n1,fish\n2,wine")
    browser.until(lambda: browser.all("#table-rows tr"), "the table")
    found["table"] = browser.violations(rules)
    browser.press("?")
    browser.until(lambda: browser.all("dialog[open]"), "the list of keys")
    found["keys"] = browser.violations(rules)
    browser.show(f"{home}/models/subjects", scheme=scheme)
    found["model"] = browser.violations(rules)
    browser.show(f"{home}/docs", scheme=scheme)
    browser.run("document.querySelectorAll('.operation:nth-of-type(2)').forEach(e => e.open = true)")
    found["docs"] = browser.violations(rules)
    browser.show(f"{home}/review/check", scheme=scheme)
    found["who"] = browser.violations(rules)
    browser.find("#reviewer").send_keys(f"looker {scheme}\n")
    browser.until(lambda: browser.run("return document.querySelector('#question').offsetParent"), "a question")
    found["review"] = browser.violations(rules)
    said = "\n".join(f"{name}: {one}" for name, ones in found.items() for one in ones)
    assert not said, said


def test_a_service_that_does_not_answer_is_told(page):
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/suggest"]})
    page.choose("#tail", "0.5")
    page.until(lambda: "does not answer" in page.told(), "the message")
    page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    assert all("ERR_BLOCKED_BY_CLIENT" in one for one in page.complaints())


def test_light_and_dark_follow_the_reader(browser, home):
    sums = {}
    for scheme in ("light", "dark"):
        browser.show(f"{home}/", scheme=scheme)
        sums[scheme] = browser.run(
            "const c = s => s.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0);"
            "const style = getComputedStyle(document.body); return [c(style.backgroundColor), c(style.color)];"
        )
    assert sums["light"][0] > 700 > 200 > sums["light"][1]
    assert sums["dark"][0] < 100 < 600 < sums["dark"][1]
