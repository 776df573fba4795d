"""Languages of texts."""

import pytest

from tailwise.errors import InvalidInput
from tailwise.text import detect_language, detect_languages

pytest.importorskip("py3langid")


def test_languages_are_told_apart():
    texts = {
        "de": "Die Wirkung von Zusagenentscheidungen im Zivilprozess und der Zugang zu Informationen",
        "en": "The size and morphology of precipitated particles is a major issue for many industries",
        "fr": "Les effets de la lumière sur les plantes dans les forêts du nord de la France",
        "fi": "Kirjaston aineistojen automaattinen sisällönkuvailu ja asiasanat",
    }
    assert detect_languages(list(texts.values())) == list(texts)
    assert detect_languages([t.upper() for t in texts.values()]) == list(texts)
    assert detect_language("") == detect_language("123 – a b") == ""


def test_a_choice_of_languages_is_kept():
    short = "Informatik"
    assert detect_language(short, ["de", "en"]) in ("de", "en")
    assert detect_language("Les effets de la lumière", ["de", "en"]) in ("de", "en")
    assert detect_language("Les effets de la lumière") == "fr", "one choice does not change another"
    with pytest.raises(InvalidInput, match=r"languages=\['xx'\] has \['xx'\], which is not known"):
        detect_language("text here", ["xx"])
