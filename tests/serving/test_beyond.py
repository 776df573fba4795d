"""What is asked beyond Annif: wishes, explanations with places, similar records, type-ahead, cards."""

import pytest

from tailwise import load
from tailwise.data import Rows
from tailwise.experiments.report import kept
from tailwise.judging import judge
from tailwise.label_lists import indicator
from tailwise.label_sets import N_CANDIDATES

from .conftest import client_of, records, uri

PROJECT = "/v1/projects/subjects"
TEXT = "On fish\nCod, trawler and a bottle of 𝔤 wine; COD!"


def suggest(client, **body):
    return client.post(f"{PROJECT}/suggest", json={"text": TEXT} | body)


def test_results_say_count_rarity_and_link(client, models):
    tagger = load(models / "subjects")
    found = suggest(client, language="en").json()
    assert found["language"] == "en"
    for one in found["results"]:
        column = tagger.find_label(one["uri"])
        assert one["count"] == tagger.label_counts_[column]
        assert one["link"] == one["uri"]
        assert one["rarity"] in ("head", "torso", "tail")


def test_names_in_several_languages(client):
    found = suggest(client, languages=["de", "en"], limit=1).json()["results"][0]
    assert found["labels"] == {"de": "Fisch", "en": "fish"}
    assert suggest(client, languages=["fr"]).status_code == 400


def test_language_of_names_is_that_of_the_text(client):
    german = client.post(f"{PROJECT}/suggest", json={"text": "Das ist ein Text über die Fischerei und das Meer"}).json()
    english = client.post(
        f"{PROJECT}/suggest", json={"text": "This is a text about the catch of cod in the sea"}
    ).json()
    assert (german["language"], english["language"]) == ("de", "en")
    assert english["results"][0]["label"] == "fish"


def test_exclude_leaves_no_gap(client):
    whole = suggest(client, limit=3).json()["results"]
    without = suggest(client, limit=2, exclude=[whole[0]["uri"], "http://unknown"]).json()["results"]
    assert without == whole[1:3]


def test_tail_ranks_by_gain_and_keeps_scores(client, models):
    tagger = load(models / "subjects")
    plain = {one["uri"]: one["score"] for one in suggest(client).json()["results"]}
    assert [one["uri"] for one in suggest(client, tail=0).json()["results"]] == list(plain)
    found = suggest(client, tail=1).json()["results"]
    assert {one["uri"]: one["score"] for one in found} == plain
    propensity = tagger.propensity_.propensity_
    gains = [one["score"] / propensity[tagger.find_label(one["uri"])] for one in found]
    assert gains == sorted(gains, reverse=True)


def test_assign_marks_what_the_library_assigns(client, models):
    tagger = load(models / "subjects")
    for rule in ("f1", "precision>=0.8"):
        expected = tagger.predict([TEXT], assign=rule).indices
        found = suggest(client, assign=rule, limit=N_CANDIDATES).json()["results"]
        assert {one["uri"] for one in found if one["assigned"]} == {tagger.label_ids_[l] for l in expected}
    assert suggest(client, assign="luck").status_code == 400


def test_fields(client):
    title, rest = TEXT.split("\n")
    by_field = client.post(f"{PROJECT}/suggest", json={"fields": {"abstract": rest, "title": title}}).json()
    assert by_field["results"] == suggest(client).json()["results"]
    wrong = client.post(f"{PROJECT}/suggest", json={"fields": {"body": rest}})
    assert "its fields are: title, abstract" in wrong.json()["detail"]
    assert client.post(f"{PROJECT}/suggest", json={"fields": {"title": ""}, "text": ""}).status_code == 400
    assert client.post(f"{PROJECT}/suggest", json={}).status_code == 400


def test_explanations_have_places(client):
    found = client.post(f"{PROJECT}/explain", json={"text": TEXT, "uri": uri("fish"), "limit": 50}).json()
    assert 0 < found["score"] <= 1
    words = {part["text"]: part for part in found["parts"] if part["part"] == "word"}
    assert [TEXT[a:b] for a, b in words["cod"]["spans"]] == ["Cod", "COD"]
    assert words["cod"]["contribution"] > 0 > words["bottle"]["contribution"]
    # Behind a character of two UTF-16 units places still count code points.
    against = client.post(f"{PROJECT}/explain", json={"text": TEXT, "uri": uri("wine"), "limit": 50}).json()
    assert [TEXT[a:b] for part in against["parts"] if part["text"] == "wine" for a, b in part["spans"]] == ["wine"]


def test_explanations_by_fields_count_in_the_joined_text(client):
    fields = {"title": "", "abstract": "the cod"}
    found = client.post(f"{PROJECT}/explain", json={"fields": fields, "uri": uri("fish")}).json()
    assert next(part["spans"] for part in found["parts"] if part["text"] == "cod") == [[4, 7]]


def test_explaining_what_is_not_there(client):
    assert client.post(f"{PROJECT}/explain", json={"text": TEXT, "uri": "http://none"}).status_code == 404


def test_similar_records(client):
    found = client.post(f"{PROJECT}/similar", json={"text": "On fish number5\ncod quota", "limit": 3}).json()["results"]
    assert len(found) == 3
    assert all(one["labels"][0]["uri"] == uri("fish") for one in found)
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    assert "cod" in found[0]["text"].split()
    without = client.post("/v1/projects/other/similar", json={"text": "cod"})
    assert without.status_code == 409
    assert "--keep-training-data" in without.json()["detail"]


def test_labels_are_found_as_they_are_typed(client):
    def found(q, **more):
        return [one["label"] for one in client.get(f"{PROJECT}/labels", params={"q": q, **more}).json()["results"]]

    assert found("stahl", language="de") == ["Stähle"]
    assert found("FI", language="en") == ["fish"]
    assert found("e", language="de", limit=1) == ["Stähle"]
    unseen = client.get(f"{PROJECT}/labels", params={"q": "tea", "language": "en"}).json()["results"]
    assert unseen == [{"uri": uri("tea"), "label": "tea", "notation": "4.1", "count": 0, "rarity": "unseen"}]
    assert len(found("")) == 5


def test_cards(client, models, copied):
    card = client.get(f"{PROJECT}/card").json()
    assert card["trained"]["rows"] == 240
    assert card["trained"]["labels_by_rarity"]["unseen"] == 0
    assert (card["fields"], card["languages"]) == (["title", "abstract"], ["de", "en"])
    assert (card["tail"], card["assign"], card["similar"], card["learn"]) == (True, True, True, False)
    assert card["evaluation"] is None


def test_a_card_shows_what_a_report_kept(copied):
    tagger = load(copied / "subjects")
    texts, labels = records(60)
    Y, ids = indicator(labels)
    trial = judge({"subjects": tagger}, Rows("held out", texts, Y, ids, ids), 20)
    kept.keep(trial, trial.models[0], copied / "subjects", 3)
    (copied / "other" / kept.FILE).write_text("{}")
    with client_of(copied) as judged:
        shown = judged.get(f"{PROJECT}/card").json()["evaluation"]
        assert judged.get("/v1/projects/other/card").json()["evaluation"] is None, "damaged, and logged"
    assert (shown["data"], shown["rows"], shown["k"], shown["current"]) == ("held out", 60, 3, True)
    assert shown["metrics"]["p@3"]["low"] <= shown["metrics"]["p@3"]["value"] <= shown["metrics"]["p@3"]["high"]
    assert [part["id"] for part in shown["sections"]] == ["metrics", "calibration", "coverage", "glossary"]


@pytest.mark.parametrize("path", ["/", "/models/subjects", "/review/x", "/docs"])
def test_pages_are_html_without_inline_script(client, path):
    found = client.get(path)
    assert found.status_code == 200
    assert found.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in found.headers["content-security-policy"]
    assert "onclick" not in found.text and "style=" not in found.text
