"""The pages in a real browser, over the real service: suggest, explain, copy, tables, the model, by mouse and by key."""

import csv
import json
import threading

import pytest

for _module, _extra in (("starlette", "serve"), ("uvicorn", "serve"), ("sqlalchemy", "audit"), ("selenium", "dev")):
    pytest.importorskip(_module, reason=f"{_module} is not installed: pip install 'tailwise[{_extra}]'")

from serving.browsing import CHROMIUM, DRIVER, Keys, start
from serving.small_world import SUBJECTS, TEXT, make_world, uri

if not (CHROMIUM and DRIVER):
    pytest.skip("no Chromium with chromedriver is installed", allow_module_level=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def home(world):
    """The address of a service that runs in this process."""
    import uvicorn

    from tailwise.audit import Audit
    from tailwise.serving import review
    from tailwise.serving.app import create_app
    from tailwise.serving.service import Service
    from tailwise.serving.settings import ModelSource, Settings

    service = Service(Settings(models={"subjects": ModelSource(world / "subjects", name="Subjects")}))
    service.shelf.open()
    with Audit.open(world / "check") as audit:
        app = create_app(service, more=review.routes({"check": audit}))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the service did not start"
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = start(tmp_path_factory.mktemp("profile"))
    yield made
    made.driver.quit()


@pytest.fixture(autouse=True)
def _no_complaints(browser, home):
    """After every test: nothing in the console, and nothing was asked of anybody else."""
    browser.complaints(), browser.requests()
    yield
    assert browser.complaints() == []
    assert not [url for url in browser.requests() if not url.startswith((home, "data:", "blob:", "about:", "chrome:"))]


@pytest.fixture
def page(browser, home):
    """The page at ``/`` with suggestions for the text."""
    browser.show(f"{home}/")
    write(browser, TEXT)
    return browser


def write(browser, text):
    """As if pasted."""
    browser.run(
        "const e = document.querySelector('#text'); e.value = arguments[0]; e.dispatchEvent(new Event('input'))", text
    )
    browser.until(lambda: browser.all("#results li") and not busy(browser), "suggestions")


def busy(browser):
    return browser.run("return document.querySelector('#results').hasAttribute('aria-busy')")


def names(browser):
    return browser.texts("#results .label")


def taken(browser):
    return browser.texts("#results li.taken .label")


def test_a_text_gets_suggestions_with_bars_marks_notations_and_links(page):
    assert names(page)[0] == "fisheries"
    assert set(names(page)) == set(SUBJECTS)
    lines = page.run(
        """return [...document.querySelectorAll('#results li')].map(li => ({
            name: li.querySelector('.label').innerText, told: li.querySelector('.score .unseen').innerText,
            bar: li.querySelector('.bar-of span').getBoundingClientRect().width,
            track: li.querySelector('.bar-of').getBoundingClientRect().width,
            rarity: li.querySelector('.rarity').dataset.rarity, full: li.querySelectorAll('.rarity .full').length,
            notation: li.querySelector('.notation').innerText, link: li.querySelector('a').href}))"""
    )
    by_name = {line["name"]: line for line in lines}
    for name, (_, notation, count, _) in SUBJECTS.items():
        line = by_name[name]
        share = int(line["told"].split()[-2].removeprefix("<")) / 100
        assert abs(line["bar"] / line["track"] - share) < 0.02, name
        rarity, full = ("head", 3) if count >= 100 else ("torso", 2) if count >= 20 else ("tail", 1)
        assert (line["rarity"], line["full"]) == (rarity, full)
        assert (line["notation"], line["link"]) == (notation, uri(name))
    assert by_name["fisheries"]["bar"] > by_name["wine"]["bar"]


def test_names_follow_the_chosen_language(page):
    page.choose("#names", "de")
    page.until(lambda: names(page)[0] == "Fischerei", "German names")
    assert set(names(page)) == {facts[0] for facts in SUBJECTS.values()}


def test_the_slider_ranks_anew_while_it_moves(page):
    assert names(page).index("fisheries") < names(page).index("whaling")
    page.choose("#tail", "1")
    page.until(lambda: names(page)[0] == "whaling", "the rare label first")
    assert "100" in page.find("#tail").get_attribute("aria-valuetext")
    page.choose("#tail", "0")
    page.until(lambda: names(page)[0] == "fisheries", "the frequent label first")


def test_how_many_are_taken_is_chosen_by_expected_f1_or_by_number_or_by_hand(page):
    assert page.find("#how-many").get_attribute("value") == "f1"
    assert taken(page) and taken(page) == names(page)[: len(taken(page))]
    page.choose("#how-many", "3")
    page.until(lambda: len(taken(page)) == 3, "three labels")
    page.click("#results li:nth-child(2) input")
    assert taken(page) == [names(page)[0], names(page)[2]]
    assert page.text("#taken") == "2 labels taken"
    page.choose("#how-many", "5")
    page.until(lambda: len(taken(page)) == 4, "what was left stays so")


def test_a_click_shows_which_words_spoke_for_a_label(page):
    page.click("#results li:nth-child(2) .label")
    assert names(page)[1] == "whaling"
    page.until(lambda: page.all("#results .why"), "the explanation")
    marked = page.texts("#mirror mark")
    assert "harpoon" in page.texts("#mirror mark.for3")
    assert page.run("return document.querySelector('#mirror').textContent") == f"{TEXT}\n"
    assert {word.lower() for word in marked} <= {"cod", "whales", "catch", "trawler", "quota", "harpoon", "blubber", "reef", "the", "of", "and", "for", "in", "law", "a"}  # fmt: skip
    assert "harpoon" in page.text(".why")
    over = page.run(
        """const field = document.querySelector('#text'), mirror = document.querySelector('#mirror');
        const [a, b] = [field, mirror].map(e => { const s = getComputedStyle(e); return [s.font, s.padding, s.lineHeight,
            s.letterSpacing, s.whiteSpace, s.overflowWrap, e.clientWidth, e.scrollHeight].join(); }); return [a, b]"""
    )
    assert over[0] == over[1], "the marks lie under their words"
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("#mirror mark"), "no marks")
    assert not page.all(".why")


def test_editing_the_text_takes_the_marks_away(page):
    page.click("#results li:nth-child(1) .label")
    page.until(lambda: page.all("#mirror mark"), "marks")
    page.find("#text").send_keys("!")
    assert not page.all("#mirror mark")


def test_an_excluded_label_is_not_suggested_until_it_is_allowed_again(page):
    page.click("#results li:nth-child(1) .exclude")
    page.until(lambda: "fisheries" not in names(page), "it is gone")
    assert "fisheries" in page.told()
    assert page.texts("#excluded-list button") == ["fisheries ↺"]
    page.click("#excluded-list button")
    page.until(lambda: names(page)[0] == "fisheries", "it is back")


def test_a_label_is_added_by_a_part_of_its_name(page):
    page.choose("#how-many", "1")
    page.until(lambda: len(taken(page)) == 1, "one label")
    page.find("#add").send_keys("LEUCHTT")
    page.until(
        lambda: not page.find("#add-list").get_attribute("hidden") and page.all("#add-list [role=option]"), "found"
    )
    page.find("#add").send_keys(Keys.ESCAPE)
    page.find("#add").send_keys("house")
    page.until(
        lambda: [one.split("\n")[0] for one in page.texts("#add-list [role=option]")] == ["lighthouses"], "found"
    )
    assert page.find("#add").get_attribute("aria-activedescendant") == "add-0"
    page.press(Keys.ENTER)
    page.until(lambda: "lighthouses" in taken(page), "taken")
    assert page.find("#add").get_attribute("value") == ""
    page.find("#add").send_keys("nothing is called so")
    page.until(lambda: page.texts("#add-list li") == ["No label is called so."], "nothing found")


def test_labels_are_copied_in_every_format(page, home):
    page.choose("#how-many", "3")
    page.until(lambda: len(taken(page)) == 3, "three labels")
    page.click("#preview summary")
    copied = {}
    for name in ("list", "tsv", "marc650", "marc689", "json"):
        page.choose("#format", name)
        copied[name] = page.run("return document.querySelector('#preview-text').textContent")
    first, second, third = taken(page)
    assert copied["list"] == f"{first}\n{second}\n{third}"
    cells = [line.split("\t") for line in copied["tsv"].split("\n")]
    assert [line[:3] for line in cells] == [[name, uri(name), SUBJECTS[name][1]] for name in taken(page)]
    assert all(0 <= float(line[3]) <= 1 for line in cells)
    assert copied["marc650"].split("\n")[0] == f"=650  \\4$a{first}$0{uri(first)}"
    assert [line[:8] for line in copied["marc689"].split("\n")] == ["=689  00", "=689  01", "=689  02"]
    assert [one["label"] for one in json.loads(copied["json"])] == [first, second, third]
    page.driver.execute_cdp_cmd(
        "Browser.grantPermissions", {"origin": home, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    page.choose("#format", "list")
    page.click("#copy")
    page.until(lambda: page.told() == "3 labels copied.", "the message")
    read = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert read == copied["list"]


def test_marc_knows_authorities_and_escapes(page):
    made = page.driver.execute_async_script(
        """const done = arguments[0]; import('/static/formats.js').then(({FORMATS}) => { const labels = [
            {label: 'Fischerei', uri: 'gnd:4017310-0'}, {label: 'Fisheries', uri: 'http://id.loc.gov/authorities/subjects/sh85048748'},
            {label: 'US$ {x}', uri: 'plain'}, {label: '=1+1', uri: 'https://d-nb.info/gnd/118540238', score: 0.5}];
            done([FORMATS.marc650(labels), FORMATS.marc689(labels), FORMATS.tsv(labels)]); })"""
    )
    assert made[0].split("\n") == [
        r"=650  \7$aFischerei$0(DE-588)4017310-0$2gnd",
        r"=650  \0$aFisheries$0http://id.loc.gov/authorities/subjects/sh85048748",
        r"=650  \4$aUS{dollar} {lcub}x{rcub}",
        r"=650  \7$a=1+1$0(DE-588)118540238$2gnd",
    ]
    assert made[1].split("\n")[0] == "=689  00$Ds$aFischerei$0(DE-588)4017310-0$2gnd"
    assert made[2].split("\n")[3].startswith("'=1+1\t")


def test_a_dropped_table_gets_labels_for_every_line_and_is_downloaded(page, tmp_path):
    rows = [
        ["7", "Cod quotas", 'The catch of a "trawler";\nand cod, fish'],
        ["8", "Grapes", "vineyard and bottle and cellar"],
        ["9", "", ""],
    ]
    lines = "".join(";".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) + "\r\n" for row in rows)
    page.run(
        """const files = new DataTransfer(); files.items.add(new File([arguments[0]], 'records.csv', {type: 'text/csv'}));
        for (const kind of ['dragenter', 'dragover', 'drop'])
            document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: files, bubbles: true, cancelable: true}));""",
        "\ufeffid;Title;Abstract\r\n" + lines,
    )
    page.until(lambda: page.text("#table-state") == "3 of 3 records have suggestions", "the table")
    assert page.text("#table-h") == "records.csv: 3 records"
    boxes = page.run("return [...document.querySelectorAll('#column-boxes input')].map(e => e.checked)")
    assert boxes == [False, True, True]
    cells = page.texts("#table-rows td:last-child")
    assert cells[0].startswith("fisheries") and cells[1].startswith("wine") and cells[2] == "–"
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.click("#download")
    file = tmp_path / "records.labels.csv"
    page.until(lambda: file.exists() and file.stat().st_size, "the download")
    with file.open(encoding="utf-8-sig", newline="") as opened:
        head, *body = csv.reader(opened)
    assert head == ["id", "Title", "Abstract", "suggested labels", "suggested ids", "suggested scores"]
    assert [line[:3] for line in body] == rows
    assert body[0][3].split("; ")[0] == "fisheries" and body[0][4].split("; ")[0] == uri("fisheries")
    page.click("#table-rows button", 1)
    assert page.find("#text").get_attribute("value") == "Grapes\nvineyard and bottle and cellar"
    page.click("#results li:nth-child(1) input")
    page.press_with(Keys.ALT, Keys.ARROW_UP)
    assert page.text("#step-place") == "Record 1 of 3"
    page.click("#to-table")
    assert not page.texts("#table-rows td:last-child")[1].startswith("wine"), "what was decided stays"


def test_a_table_that_cannot_be_read_says_why(page):
    read = """const done = arguments[1]; import('/static/tables.js').then(({parseTable}) => {
        try { done(parseTable(arguments[0])); } catch (error) { done(error.message); } })"""
    ask = page.driver.execute_async_script
    assert ask(read, "a,b\n1,2\n\n3\n") == {"columns": ["a", "b"], "rows": [["1", "2"], ["3", ""]]}
    assert ask(read, 'a\tb\n"x ""y""\tz"\t,;\n') == {"columns": ["a", "b"], "rows": [['x "y"\tz', ",;"]]}
    assert "never closed" in ask(read, 'a,b\n1,"2\n')
    assert "3 columns" in ask(read, "a,b\n1,2,3\n")
    assert "no lines" in ask(read, "a,b\n")


def test_a_dropped_text_is_read_in_its_encoding(page, tmp_path):
    for name, raw in (("latin.txt", "Öl und Wein".encode("latin-1")), ("wide.txt", "Öl und Wein".encode("utf-16"))):
        (tmp_path / name).write_bytes(raw)
        page.find("#file").send_keys(str(tmp_path / name))
        page.until(lambda: page.find("#text").get_attribute("value") == "Öl und Wein", name)
        page.click("#clear")


def test_everything_is_reached_by_keys(page):
    page.run("document.activeElement.blur()")
    page.press("t")
    assert page.focused() == "text"
    page.press_with(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: not busy(page), "suggestions")
    page.press(Keys.ESCAPE, "l", Keys.ARROW_DOWN)
    second = names(page)[1]
    assert page.run("return document.activeElement.innerText") == second
    was = second in taken(page)
    page.press(" ")
    assert (second in taken(page)) is not was
    assert page.run("return document.activeElement.innerText") == second, "the focus stays"
    page.press(Keys.ENTER)
    page.until(lambda: page.all("#mirror mark"), "marks")
    page.press("x")
    page.until(lambda: second not in names(page), "excluded")
    assert page.focused() == "label", "the focus is on the next label"
    page.press("/", "lightho")
    page.until(lambda: page.all("#add-0"), "found")
    page.press(Keys.ENTER)
    assert "lighthouses" in taken(page)
    page.press(Keys.TAB)
    page.press("]")
    assert float(page.find("#tail").get_attribute("value")) == pytest.approx(0.1)
    page.press("c")
    page.until(lambda: "copied" in page.told(), "copied")
    page.press("?")
    page.until(lambda: page.all("dialog[open]"), "the list of keys")
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("dialog"), "closed")


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
    both = "const done = arguments[0]; Promise.all(['en', 'de'].map(l => import(`/static/words-${l}.js`))).then(m => done(m.map(x => x.default)))"  # fmt: skip
    browser.show(f"{home}/", language="de")
    english, german = browser.driver.execute_async_script(both)
    assert english.keys() == german.keys()
    holes = lambda said: sorted("".join(said).split("{")[1:])  # noqa: E731
    for key in english:
        assert len(holes(english[key])) == len(holes(german[key])), key
        assert isinstance(english[key], list) == isinstance(german[key], list), key
    used = browser.run("return [...document.querySelectorAll('[data-t]')].map(e => e.dataset.t)")
    assert set(used) <= english.keys()
    write(browser, TEXT)
    assert names(browser)[0] == "Fischerei", "names follow the interface until they are chosen"
    assert browser.text("#labels-h") == "Vorschläge"
    assert browser.run("return document.documentElement.lang") == "de"
    browser.choose("#interface", "en")
    assert browser.text("#labels-h") == "Suggestions"


@pytest.mark.parametrize("path", ["/", "/models/subjects", "/review/check", "/docs"])
def test_a_phone_needs_no_sideways_scrolling(browser, home, path):
    browser.show(home + path, width=360, language="de")
    if path == "/":
        write(browser, TEXT)
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
    found = {}
    browser.show(f"{home}/", scheme=scheme)
    found["empty"] = browser.violations()
    write(browser, TEXT)
    browser.click("#results li:nth-child(2) .label")
    browser.until(lambda: browser.all(".why"), "the explanation")
    browser.click("#results li:nth-child(3) .exclude")
    browser.find("#add").send_keys("wi")
    browser.until(lambda: browser.all("#add-0"), "found")
    found["suggestions"] = browser.violations()
    browser.run(
        """const files = new DataTransfer(); files.items.add(new File(['id,text\\n1,fish\\n2,wine'], 'a.csv'));
        document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));"""
    )
    browser.until(lambda: browser.all("#table-rows tr"), "the table")
    found["table"] = browser.violations()
    browser.press("?")
    browser.until(lambda: browser.all("dialog[open]"), "the list of keys")
    found["keys"] = browser.violations()
    browser.show(f"{home}/models/subjects", scheme=scheme)
    found["model"] = browser.violations()
    browser.show(f"{home}/docs", scheme=scheme)
    browser.run("document.querySelectorAll('.operation').forEach(e => e.open = true)")
    found["docs"] = browser.violations()
    browser.show(f"{home}/review/check", scheme=scheme)
    found["who"] = browser.violations()
    browser.find("#reviewer").send_keys(f"looker {scheme}\n")
    browser.until(lambda: browser.run("return document.querySelector('#question').offsetParent"), "a question")
    found["review"] = browser.violations()
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


@pytest.fixture
def review(browser, home, request):
    """The review page with a first question for a reviewer of this test."""
    browser.show(f"{home}/review/check")
    browser.find("#reviewer").send_keys(f"{request.node.name[:40]}\n")
    browser.until(lambda: browser.run("return document.querySelector('#question').offsetParent"), "a question")
    return browser


def asked(browser):
    return browser.text("#label"), browser.text("#record-title"), browser.text("#record-text")


def answer(browser, key, count):
    browser.press(key)
    browser.until(lambda: len(browser.all("#answers time")) == count, f"{count} answers")


def test_pairs_are_answered_by_key_one_at_a_time(review):
    pairs = [asked(review)]
    for count, key in enumerate(("y", "n", "u", "j"), start=1):
        answer(review, key, count)
        pairs.append(asked(review))
    assert len(set(pairs)) == 5, "each pair came once"
    assert review.texts("#answers td:first-child") == ["Yes", "Unsure", "No", "Yes"]
    assert review.texts("#answers td:nth-child(2)") == [label for label, *_ in pairs[3::-1]]
    who = set(review.texts("#answers td:nth-child(4)"))
    assert who == {"test_pairs_are_answered_by_key_one_at_a_"}
    assert "4 answers" in review.text("#me")
    assert review.run("return document.querySelector('#progress').value") > 0
    times = review.run(
        "return [...document.querySelectorAll('#answers time')].map(e => Date.now() - new Date(e.dateTime))"
    )
    assert all(0 <= age < 60_000 for age in times)


def test_undo_brings_the_question_back_and_shows_what_was_taken_back(review):
    first = asked(review)
    answer(review, "n", 1)
    second = asked(review)
    assert second != first
    review.press("z")
    review.until(lambda: asked(review) == first, "the first question")
    assert review.told() == f"Taken back: No for {first[0]}."
    assert review.texts("#answers tr.withdrawn td:first-child") == ["No (taken back)"]
    answer(review, "y", 2)
    assert review.texts("#answers td:first-child") == ["Yes", "No (taken back)"]
    review.click("#undo")
    review.until(lambda: asked(review) == first, "the first question again")
    review.press("z")
    review.until(lambda: "no answer of yours" in review.told(), "nothing is left to take back")


def test_buttons_and_german_do_the_same(review):
    first = asked(review)
    review.choose("#interface", "de")
    assert review.texts("[data-answer]") == ["Ja\nJ", "Nein\nN", "Unsicher\nU"]
    assert asked(review) == first
    review.click("[data-answer=unsure]")
    review.until(lambda: review.texts("#answers td:first-child") == ["Unsicher"], "the answer")


def test_the_name_is_remembered_and_can_be_changed(review, home):
    first = asked(review)
    review.driver.refresh()
    review.until(lambda: review.run("return document.querySelector('#question').offsetParent"), "the question")
    assert asked(review) == first
    review.click("#not-me")
    assert review.focused() == "reviewer"
    review.press("y")
    assert not review.complaints()


def test_whoever_has_answered_all_is_thanked(review):
    for _ in range(60):
        if review.run("return document.querySelector('#question').hidden"):
            break
        before = review.text("#progress-text")
        review.press("u")
        review.until(lambda before=before: review.text("#progress-text") != before, "the next question")
    assert review.text("#done") == "No question is left for you. Thank you."
