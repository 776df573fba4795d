"""Suggestions in a real browser: ranking, explaining, excluding, adding, copying, by mouse and by key."""

import json
import re

import pytest

from serving.pages.small_world import SUBJECTS, TEXT, uri


def test_a_text_gets_suggestions_with_bars_marks_notations_and_links(page):
    assert page.names()[0] == "fisheries"
    assert set(page.names()) == set(SUBJECTS)
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
    page.until(lambda: page.names()[0] == "Fischerei", "German names")
    assert set(page.names()) == {facts[0] for facts in SUBJECTS.values()}


def test_the_slider_ranks_anew_while_it_moves(page):
    assert page.names().index("fisheries") < page.names().index("whaling")
    page.choose("#tail", "1")
    page.until(lambda: page.names()[0] == "whaling", "the rare label first")
    assert "100" in page.find("#tail").get_attribute("aria-valuetext")
    page.choose("#tail", "0")
    page.until(lambda: page.names()[0] == "fisheries", "the frequent label first")


def test_how_many_are_taken_is_chosen_by_expected_f1_or_by_number_or_by_hand(page):
    assert page.find("#how-many").get_attribute("value") == "f1"
    assert page.taken() and page.taken() == page.names()[: len(page.taken())]
    page.choose("#how-many", "3")
    page.until(lambda: len(page.taken()) == 3, "three labels")
    page.click("#results li:nth-child(2) input")
    assert page.taken() == [page.names()[0], page.names()[2]]
    assert page.text("#taken") == "2 labels taken"
    page.choose("#how-many", "5")
    page.until(lambda: len(page.taken()) == 4, "what was left stays so")


def test_a_click_shows_which_words_spoke_for_a_label(page):
    page.click("#results li:nth-child(2) .label")
    assert page.names()[1] == "whaling"
    page.until(lambda: page.all("#results .why"), "the explanation")
    marked = page.texts("#mirror mark")
    assert "harpoon" in page.texts("#mirror mark.for3")
    assert page.run("return document.querySelector('#mirror').textContent") == f"{TEXT}\n"
    assert {word.lower() for word in marked} <= set(re.findall(r"\w+", TEXT.lower())), "whole words"
    assert "harpoon" in page.text(".why")
    over = page.run(
        """return ['#text', '#mirror'].map((name) => { const e = document.querySelector(name), s = getComputedStyle(e);
            return [s.font, s.padding, s.lineHeight, s.letterSpacing, s.whiteSpace, s.overflowWrap, e.clientWidth,
                e.scrollHeight].join(); })"""
    )
    assert over[0] == over[1], "the marks lie under their words"
    page.press(page.keys.ESCAPE)
    page.until(lambda: not page.all("#mirror mark"), "no marks")
    assert not page.all(".why")


def test_editing_the_text_takes_the_marks_away(page):
    page.click("#results li:nth-child(1) .label")
    page.until(lambda: page.all("#mirror mark"), "marks")
    page.find("#text").send_keys("!")
    assert not page.all("#mirror mark")


def test_an_excluded_label_is_not_suggested_until_it_is_allowed_again(page):
    page.click("#results li:nth-child(1) .exclude")
    page.until(lambda: "fisheries" not in page.names(), "it is gone")
    assert "fisheries" in page.told()
    assert page.texts("#excluded-list button") == ["fisheries ↺"]
    page.click("#excluded-list button")
    page.until(lambda: page.names()[0] == "fisheries", "it is back")


def test_a_label_is_added_by_a_part_of_its_name(page):
    page.choose("#how-many", "1")
    page.until(lambda: len(page.taken()) == 1, "one label")
    page.find("#add").send_keys("LEUCHTT")
    page.until(
        lambda: not page.find("#add-list").get_attribute("hidden") and page.all("#add-list [role=option]"), "found"
    )
    page.find("#add").send_keys(page.keys.ESCAPE)
    page.find("#add").send_keys("house")
    page.until(
        lambda: [one.split("\n")[0] for one in page.texts("#add-list [role=option]")] == ["lighthouses"], "found"
    )
    assert page.find("#add").get_attribute("aria-activedescendant") == "add-0"
    page.press(page.keys.ENTER)
    page.until(lambda: "lighthouses" in page.taken(), "taken")
    assert page.find("#add").get_attribute("value") == ""
    page.find("#add").send_keys("nothing is called so")
    page.until(lambda: page.texts("#add-list li") == ["No label is called so."], "nothing found")


def test_labels_are_copied_in_every_format(page, home):
    page.choose("#how-many", "3")
    page.until(lambda: len(page.taken()) == 3, "three labels")
    page.click("#preview summary")
    copied = {}
    for name in ("list", "tsv", "marc650", "marc689", "json"):
        page.choose("#format", name)
        copied[name] = page.run("return document.querySelector('#preview-text').textContent")
    first, second, third = page.taken()
    assert copied["list"] == f"{first}\n{second}\n{third}"
    cells = [line.split("\t") for line in copied["tsv"].split("\n")]
    assert [line[:3] for line in cells] == [[name, uri(name), SUBJECTS[name][1]] for name in page.taken()]
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


def test_everything_is_reached_by_keys(page):
    page.run("document.activeElement.blur()")
    page.press("t")
    assert page.focused() == "text"
    page.press_with(page.keys.CONTROL, page.keys.ENTER)
    page.until(lambda: not page.busy(), "suggestions")
    page.press(page.keys.ESCAPE, "l", page.keys.ARROW_DOWN)
    second = page.names()[1]
    assert page.run("return document.activeElement.innerText") == second
    was = second in page.taken()
    page.press(" ")
    assert (second in page.taken()) is not was
    assert page.run("return document.activeElement.innerText") == second, "the focus stays"
    page.press(page.keys.ENTER)
    page.until(lambda: page.all("#mirror mark"), "marks")
    page.press("x")
    page.until(lambda: second not in page.names(), "excluded")
    assert page.focused() == "label", "the focus is on the next label"
    page.press("/", "lightho")
    page.until(lambda: page.all("#add-0"), "found")
    page.press(page.keys.ENTER)
    assert "lighthouses" in page.taken()
    page.press(page.keys.TAB)
    page.press("]")
    assert float(page.find("#tail").get_attribute("value")) == pytest.approx(0.1)
    page.press("c")
    page.until(lambda: "copied" in page.told(), "copied")
    page.press("?")
    page.until(lambda: page.all("dialog[open]"), "the list of keys")
    page.press(page.keys.ESCAPE)
    page.until(lambda: not page.all("dialog"), "closed")
