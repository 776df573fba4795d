"""The operations of Annif's REST API: shapes, defaults and what is refused."""

import pytest

from tailwise import load
from tailwise.serving.problems import MEDIA_TYPE

SUGGEST = "/v1/projects/subjects/suggest"


def test_information(client):
    assert set(client.get("/v1/").json()) == {"title", "version"}
    projects = client.get("/v1/projects").json()["projects"]
    assert [one["project_id"] for one in projects] == ["other", "subjects"]
    one = client.get("/v1/projects/subjects").json()
    assert one["backend"] == {"backend_id": "tailwise"}
    assert one["vocab"] == {"vocab_id": "subjects", "languages": ["de", "en"], "size": 5, "loaded": True}
    assert one["is_trained"] is True
    assert one["modification_time"].endswith("Z")
    assert client.get("/v1/vocabs").json()["vocabs"][1] == one["vocab"]


def test_suggestions_are_the_librarys(client, models):
    text = "On fish\ncod trawler quota and a bottle"
    found = client.post(SUGGEST, data={"text": text}).json()["results"]
    expected = load(models / "subjects").suggest([text], 10, language="de")[0]
    assert [(one["uri"], one["label"], one["score"]) for one in found] == [(s.id, s.name, s.score) for s in expected]
    assert found[0]["notation"] == "1.1"


def test_limit_threshold_and_language(client):
    text = "On fish\ncod trawler quota and a bottle"
    whole = client.post(SUGGEST, data={"text": text, "language": "en"}).json()["results"]
    assert whole[0]["label"] == "fish"
    assert client.post(SUGGEST, data={"text": text, "language": "en", "limit": "2"}).json()["results"] == whole[:2]
    assert client.post(SUGGEST, data={"text": text, "limit": "0"}).json()["results"] == []
    bound = whole[1]["score"]
    kept = client.post(SUGGEST, data={"text": text, "language": "en", "threshold": str(bound)}).json()["results"]
    assert kept == whole[:2]


def test_multipart_forms(client):
    plain = client.post(SUGGEST, data={"text": "cod", "limit": "1"})
    parts = client.post(SUGGEST, files={"text": (None, "cod"), "limit": (None, "1")})
    assert parts.json() == plain.json()
    assert client.post(SUGGEST, files={"text": ("text.txt", b"cod"), "limit": (None, "1")}).json() == plain.json()


def test_metadata_take_the_place_of_fields(client):
    whole = client.post(SUGGEST, data={"text": "On fish\ngrape"}).json()
    assert client.post(SUGGEST, data={"text": "grape", "metadata_title": "On fish"}).json() == whole
    assert client.post(SUGGEST, data={"text": "On fish\ngrape", "metadata_colour": "red"}).json() == whole


def test_batches(client):
    documents = [{"text": "cod", "document_id": "a"}, {"text": "", "metadata": {"title": "grape"}}, {"text": "iron"}]
    found = client.post("/v1/projects/subjects/suggest-batch?limit=1&language=en", json={"documents": documents}).json()
    assert [one["document_id"] for one in found] == ["a", None, None]
    assert [one["results"][0]["label"] for one in found] == ["fish", "wine", "steel"]
    assert client.post("/v1/projects/subjects/suggest-batch", json={"documents": []}).json() == []
    many = client.post("/v1/projects/subjects/suggest-batch", json={"documents": [{"text": ""}] * 33})
    assert many.status_code == 400
    assert "has more than 32 items" in many.json()["detail"]


def test_languages_are_detected(client):
    asked = {"text": "Das Recht der See und der Schiffe", "languages": ["en", "de"]}
    found = client.post("/v1/detect-language", json=asked).json()["results"]
    assert found[0]["language"] == "de"
    assert sum(one["score"] for one in found) == pytest.approx(1)
    empty = client.post("/v1/detect-language", json={"text": "", "languages": ["en"]}).json()["results"]
    assert empty[0] == {"language": None, "score": 1.0}
    unknown = client.post("/v1/detect-language", json={"text": "abc", "languages": ["xx"]})
    assert (unknown.status_code, unknown.json()["detail"]) == (400, "unsupported candidate languages")


@pytest.mark.parametrize(
    ("path", "data", "status", "said"),
    [
        ("/v1/projects/none/suggest", {"text": "a"}, 404, "Project 'none' not found"),
        (SUGGEST, {}, 400, '"text" is a required property'),
        (SUGGEST, {"text": "a", "limit": "-1"}, 400, "limit: -1 is less than the minimum of 0"),
        (SUGGEST, {"text": "a", "limit": "many"}, 400, 'limit: "many" is not of type "integer"'),
        (SUGGEST, {"text": "a", "threshold": "1.5"}, 400, "threshold: 1.5 is greater than the maximum of 1"),
        (SUGGEST, {"text": "a", "threshold": "nan"}, 400, 'threshold: "nan" is not of type "number"'),
        (SUGGEST, {"text": "a", "language": "fr"}, 400, 'language "fr" not supported by vocabulary'),
    ],
)
def test_wrong_requests_are_told(client, path, data, status, said):
    found = client.post(path, data=data or {"limit": "1"})
    assert found.status_code == status
    assert found.headers["content-type"] == MEDIA_TYPE
    assert said in found.json()["detail"]
    assert set(found.json()) == {"type", "title", "status", "detail"}


def test_other_paths_and_methods_are_problems_too(client):
    assert client.get("/nowhere").headers["content-type"] == MEDIA_TYPE
    wrong = client.get(SUGGEST)
    assert (wrong.status_code, wrong.headers["content-type"]) == (405, MEDIA_TYPE)
    assert client.post(SUGGEST, content=b"x", headers={"Content-Type": "image/png"}).status_code == 415


def test_cors(client):
    asked = {"Origin": "http://elsewhere", "Access-Control-Request-Method": "POST"}
    assert client.options(SUGGEST, headers=asked).headers["access-control-allow-origin"] == "*"
    assert client.get("/v1/", headers={"Origin": "http://elsewhere"}).headers["access-control-allow-origin"] == "*"
