"""Requests that are wrong on purpose: never a 5xx, always a problem that says what is wrong."""

import json

import pytest

from tailwise.serving.batching import Question
from tailwise.serving.problems import MEDIA_TYPE

from .conftest import client_of

PROJECT = "/v1/projects/subjects"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        (JSON, b"", "not JSON"),
        (JSON, b"{", "not JSON"),
        (JSON, b"[]", 'is not of type "object"'),
        (JSON, b'{"text": NaN}', "NaN is no number"),
        (JSON, b'{"text": "\xff"}', "not UTF-8"),
        (JSON, b'{"text": "\\ud800"}', "half of a surrogate pair"),
        (JSON, b'{"text": 1e999}', 'is not of type "string"'),
        (JSON, b"[" * 100_000, "not JSON"),
        (JSON, b'{"text": "a", "limit": ' + b"9" * 5000 + b"}", "not JSON"),
        (JSON, b'{"text": "a", "tail": 2}', "maximum of 1"),
        (JSON, b'{"text": "a", "exclude": "b"}', 'is not of type "array"'),
        (FORM, b"text=%ff", "not URL-encoded UTF-8"),
        (FORM, "text=ä".encode(), "not URL-encoded UTF-8"),
        (FORM, b"&".join(b"a%d=1" % i for i in range(2000)), "more than 1000 fields"),
        ("multipart/form-data", b"text", "multipart"),
        ("multipart/form-data; boundary=b", b"--b\r\nX: \r\n\r\n\xff", "multipart"),
    ],
)
def test_bodies_that_are_no_requests(client, kind, body, said):
    found = client.post(f"{PROJECT}/suggest", content=body, headers={"Content-Type": kind})
    assert (found.status_code, found.headers["content-type"]) == (400, MEDIA_TYPE)
    assert said in found.json()["detail"]


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "\n\n\n", "𝔘𝔫𝔦", "İİİ ß ﬁ", "x" * 200_000, "\u202e cod", "\r\n"])
def test_texts_of_any_characters_are_answered_and_explained(client, text):
    for path, more in (("suggest", {}), ("explain", {"uri": "http://example.org/fish"}), ("similar", {})):
        found = client.post(f"{PROJECT}/{path}", json={"text": text, **more})
        assert found.status_code == 200
    assert client.post(f"{PROJECT}/suggest", data={"text": text}).status_code == 200


def test_a_body_that_is_too_large(models):
    with client_of(models, max_body=1000) as small:
        for body in (b"text=" + b"a" * 2000, b"text=" + b"a" * 9000):
            found = small.post(f"{PROJECT}/suggest", content=body, headers={"Content-Type": FORM})
            assert (found.status_code, found.headers["content-type"]) == (413, MEDIA_TYPE)
        chunked = small.post(
            f"{PROJECT}/suggest", content=iter([b"text=", b"a" * 2000]), headers={"Content-Type": FORM}
        )
        assert chunked.status_code == 413


def test_a_full_queue_says_when_to_come_again(models):
    with client_of(models, max_waiting=2) as small:
        documents = [{"text": "cod"}] * 3
        found = small.post(f"{PROJECT}/suggest-batch", json={"documents": documents})
        assert (found.status_code, found.headers["retry-after"]) == (503, "1")
        assert small.post(f"{PROJECT}/suggest-batch", json={"documents": documents[:2]}).status_code == 200


def test_what_breaks_is_logged_and_told_to_nobody(client, monkeypatch, caplog):
    def broken(self):
        raise RuntimeError("a secret")

    monkeypatch.setattr(Question, "group", property(broken))
    found = client.post(f"{PROJECT}/suggest", data={"text": "cod"})
    assert found.status_code == 500
    assert "secret" not in found.text
    assert "a secret" in caplog.text


@pytest.mark.parametrize("asked", [True, False])
def test_texts_are_logged_where_that_is_asked_for(models, caplog, asked):
    caplog.set_level("INFO", logger="tailwise")
    with client_of(models, log_texts=asked) as one:
        assert one.post(f"{PROJECT}/suggest", data={"text": "a rare cod"}).status_code == 200
    assert [record.texts for record in caplog.records if record.msg == "texts"] == [["a rare cod"]] * asked


@pytest.mark.parametrize("quiet", [True, False])
def test_requests_are_logged_unless_the_service_is_quiet(models, caplog, quiet):
    caplog.set_level("INFO", logger="tailwise")
    with client_of(models, quiet=quiet) as one:
        assert one.post(f"{PROJECT}/suggest", data={"text": "a rare cod"}).status_code == 200
    assert [record.status for record in caplog.records if record.msg == "request"] == [200] * (not quiet)


def test_one_wrong_text_does_not_spoil_the_batch(client, monkeypatch):
    from tailwise import Tagger

    rank = Tagger.predict_topk

    def failing(self, texts, k=5, **more):
        if any("poison" in text for text in texts):
            raise RuntimeError("poison")
        return rank(self, texts, k, **more)

    monkeypatch.setattr(Tagger, "predict_topk", failing)
    found = client.post(f"{PROJECT}/suggest-batch", json={"documents": [{"text": "cod"}]})
    assert found.status_code == 200
    assert client.post(f"{PROJECT}/suggest", data={"text": "poison"}).status_code == 500


def test_tokens(models):
    bearer = {"Authorization": "Bearer 0123456789"}
    with client_of(models, token="0123456789", allow_learn=True) as guarded:
        assert guarded.get("/v1/projects").status_code == 200
        refused = guarded.post(f"{PROJECT}/learn", json=[])
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        for wrong in ("Bearer 012345678", "Basic 0123456789", "Bearer é".encode()):
            assert guarded.post(f"{PROJECT}/learn", json=[], headers={"Authorization": wrong}).status_code == 401
        assert guarded.post(f"{PROJECT}/learn", json=[], headers=bearer).status_code == 204
        assert guarded.post("/v1/audits/x/answers", json={}).status_code == 401
    with client_of(models, token="0123456789", private=True) as closed:
        assert closed.get("/v1/projects").status_code == 401
        assert closed.get("/metrics").status_code == 401
        assert closed.get("/v1/projects", headers=bearer).status_code == 200
        assert closed.get("/healthz").status_code == 200
    with client_of(models) as read_only:
        assert read_only.post(f"{PROJECT}/learn", json=[]).status_code == 403
        assert json.loads(read_only.get("/readyz").text)["status"] == "ready"
