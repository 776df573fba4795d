"""Learning from records that clients send: queued, applied in the background, taken up; and what cannot learn."""

import json

import pytest

from tailwise import load
from tailwise.serving.learning import QUEUE, REFUSED, alone, enqueue, learn_queued, queued

from .conftest import client_of, uri
from .test_live import until

LEARN = "/v1/projects/subjects/learn"
TEA = [{"text": f"oolong leaves in a cup {i}", "subjects": [{"uri": uri("tea"), "label": "tea"}]} for i in range(3)]


def test_records_are_learnt_and_the_new_model_answers(copied):
    with client_of(copied, allow_learn=True, watch_seconds=0.1) as client:
        before = client.get("/v1/projects/subjects/card").json()
        assert before["learn"] is True
        assert client.post(LEARN, json=TEA).status_code == 204

        def learnt():
            asked = {"text": "oolong leaves", "language": "en"}
            found = client.post("/v1/projects/subjects/suggest", json=asked).json()["results"]
            return found[0]["label"] == "tea"

        until(learnt, 120)
        after = client.get("/v1/projects/subjects/card").json()
    assert after["trained"]["rows"] == before["trained"]["rows"] + 3
    assert not queued(copied / "subjects")


def test_a_record_learnt_again_changes_nothing(copied):
    model = copied / "subjects"
    records = [{"text": "oolong cup", "labels": {uri("tea"): "tea"}}]
    for _ in range(2):
        enqueue(model, records)
        assert learn_queued(model) == 1
    assert load(model).n_samples_ == 241


def test_what_cannot_be_learnt_is_put_aside_and_the_rest_is_learnt(copied):
    model = copied / "other"
    enqueue(model, [{"text": "oolong", "labels": {uri("tea"): None}}])
    before = (model / "manifest.json").read_bytes()
    assert learn_queued(model) == 0
    assert (model / "manifest.json").read_bytes() == before
    assert len(list((model / QUEUE / REFUSED).iterdir())) == 1
    assert not queued(model)


def test_one_process_learns_at_a_time(copied):
    enqueue(copied / "subjects", [])
    with alone(copied / "subjects") as first, alone(copied / "subjects") as second:
        assert (first, second) == (True, False)


@pytest.mark.parametrize("project", ["other"])
def test_a_model_without_records_cannot_learn(copied, project):
    with client_of(copied, allow_learn=True) as client:
        found = client.post(f"/v1/projects/{project}/learn", json=TEA)
        assert found.status_code == 409
        assert "--keep-training-data" in found.json()["detail"]
        assert client.post(LEARN, json=[{"text": "no subjects"}, {}]).status_code == 204
        assert not queued(copied / "subjects")
        assert json.loads(client.post(LEARN, json={"text": "a"}).text)["status"] == 400
