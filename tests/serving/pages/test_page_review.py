"""Reviewing in a real browser: one pair at a time, keys, undo, who and when."""

import pytest


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


def test_the_token_is_asked_for_once_and_kept(browser, guarded):
    browser.show(f"{guarded}/review/check")
    browser.find("#reviewer").send_keys("guest\n")
    browser.until(lambda: browser.all("dialog[open] #token"), "the question for the token")
    browser.press("wrong", browser.keys.ENTER)
    browser.until(
        lambda: browser.all("dialog[open] #token") and not browser.find("#token").get_attribute("value"), "again"
    )
    assert browser.violations() == []
    browser.press("a long secret", browser.keys.ENTER)
    browser.until(lambda: browser.run("return document.querySelector('#question').offsetParent"), "a question")
    answer(browser, "u", 1)
    said = browser.complaints()
    assert all("401" in one for one in said), said
