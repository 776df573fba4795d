"""Stems by language, and the parts that compounds are put together with."""

import pytest

from tailwise.text.stemming import ALGORITHMS, LINKS, base_language, stem


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("de", "fisch", "fische"),
        ("de-AT", "haus", "häuser"),
        ("en", "library", "libraries"),
        ("fr", "poisson", "poissons"),
        ("no", "fisk", "fisken"),
        ("nb", "fisk", "fisken"),
    ],
)
def test_endings_do_not_matter(language, one, other):
    assert stem(one, language) == stem(other, language)


def test_a_word_of_an_unknown_language_stays_as_it_is():
    assert [stem("books", language) for language in ("", "xx", "tlh-QO")] == ["books"] * 3
    assert stem("", "de") == "" and stem("c", "en") == "c"


def test_tags_lead_to_languages():
    assert [base_language(tag) for tag in ("de", "DE-at", "")] == ["de", "de", ""]


def test_every_language_has_its_stemmer_and_compounds_may_touch():
    for language in ALGORITHMS:
        assert stem("abc", language)
    assert LINKS.keys() <= ALGORITHMS.keys() and all("" in links for links in LINKS.values())
