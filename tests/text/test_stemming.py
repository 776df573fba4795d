"""Stems by language, and the parts that compounds are put together with."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tailwise.text import stemming
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


def test_threads_do_not_disturb_each_other():
    words = [f"{start}{end}" for start in ("buch", "fischerei", "haus", "recht") for end in ("es", "en", "ungen", "er")]
    expected = [stem(word, "de") for word in words]
    patience = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for _ in range(30):
                stemming._stem.cache_clear()
                found = list(pool.map(lambda word: stem(word, "de"), words * 8))
                assert found == expected * 8
    finally:
        sys.setswitchinterval(patience)
