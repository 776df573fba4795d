"""Reviewing over HTTP: questions, answers, undo and history of an audit that several share."""

import numpy as np
import pytest

import tailwise as tw

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'tailwise[serve]'")
pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install 'tailwise[audit]'")

from starlette.testclient import TestClient

from tailwise.audit import Audit, Origin, plan_audit
from tailwise.errors import InvalidInput
from tailwise.serving.app import create_app
from tailwise.serving.service import Service
from tailwise.serving.settings import Settings


@pytest.fixture(scope="module")
def world():
    data = tw.make_longtail(800, 400, 60, test_fraction=0, random_state=0)
    plan = plan_audit(tw.Centroid(n_jobs=1), data.X_train, data.Y_train, n_questions=25, doubles=0.3)
    names = [f"label {i}" for i in range(60)]
    origin = Origin("digest of a model", "made up", [f"L{i}" for i in range(60)], names)
    return data, plan, origin


@pytest.fixture
def audit(world, tmp_path):
    data, plan, origin = world
    texts = [f"Title of record {row}\nIts text." for row in range(data.X_train.shape[0])]
    with Audit.create(tmp_path / "audit", plan, origin, texts) as made:
        yield made


@pytest.fixture
def client(audit):
    service = Service(Settings(audits={"mine": audit.where}))
    with TestClient(create_app(service)) as made:
        yield made


def ask(client, reviewer):
    return client.post("/v1/audits/mine/next", json={"reviewer": reviewer}).json()


def answer(client, reviewer, question, verdict="yes"):
    body = {"question": question, "reviewer": reviewer, "answer": verdict}
    return client.post("/v1/audits/mine/answers", json=body)


def test_the_list_and_the_progress_say_how_far_it_is(client, world):
    _, plan, _ = world
    wanted = plan.questions.rows.size + int(plan.questions.double.sum())
    found = client.get("/v1/audits").json()
    told = {"id": "mine", "questions": plan.questions.rows.size, "wanted": wanted, "answered": 0}
    assert found == {"audits": [told | {"model": "digest of a model"}]}
    for verdict in ("yes", "no", "unsure"):
        assert answer(client, "anna", ask(client, "anna")["question"]["id"], verdict).status_code == 204
    assert client.get("/v1/audits/mine").json() == told | {
        "answered": 3,
        "by_answer": {"no": 1, "yes": 1, "unsure": 1},
        "reviewers": [{"name": "anna", "answered": 3}],
    }


def test_a_question_shows_the_record_and_its_other_labels_but_not_whether_it_is_recorded(client, world):
    data, plan, _ = world
    seen = {True: 0, False: 0}
    while (question := ask(client, "anna")["question"]) is not None:
        number = question["id"]
        row, label = int(plan.questions.rows[number]), int(plan.questions.labels[number])
        assert question["text"] == f"Title of record {row}\nIts text."
        assert (question["uri"], question["label"]) == (f"L{label}", f"label {label}")
        recorded = data.Y_train[[row]].indices.tolist()
        assert [one["uri"] for one in question["recorded"]] == [f"L{one}" for one in sorted(recorded) if one != label]
        assert set(question) == {"id", "text", "label", "uri", "recorded"}
        seen[label in recorded] += 1
        answer(client, "anna", number)
    assert seen[True] and seen[False]


def test_two_reviewers_share_doubles_alone(client, world):
    _, plan, _ = world
    given = {"anna": [], "ben": []}
    while given:
        for name in list(given):
            question = ask(client, name)["question"]
            if question is None:
                given.setdefault("", []).append(set(given.pop(name)))
            else:
                given[name].append(question["id"])
                assert answer(client, name, question["id"]).status_code == 204
        if set(given) == {""}:
            one, other = given[""]
            break
    assert one & other == set(np.flatnonzero(plan.questions.double).tolist())
    assert one | other == set(range(plan.questions.rows.size))


def test_what_is_handed_to_one_cannot_be_answered_by_another(client, world):
    _, plan, _ = world
    question = ask(client, "anna")["question"]["id"]
    while plan.questions.double[question]:
        answer(client, "anna", question)
        question = ask(client, "anna")["question"]["id"]
    assert ask(client, "ben")["question"]["id"] != question
    refused = answer(client, "ben", question)
    assert refused.status_code == 409
    assert "another reviewer" in refused.json()["detail"]
    assert refused.headers["content-type"] == "application/problem+json"
    assert answer(client, "anna", question).status_code == 204
    assert "undo" in answer(client, "anna", question).json()["detail"]


def test_undo_adds_a_withdrawal_and_gives_the_question_back(client, audit):
    first = ask(client, "anna")["question"]
    answer(client, "anna", first["id"], "no")
    assert ask(client, "anna")["question"]["id"] != first["id"]
    undone = client.post("/v1/audits/mine/undo", json={"reviewer": "anna"}).json()
    assert undone["question"] == first
    assert undone["progress"]["answered"] == 0
    assert ask(client, "anna")["question"] == first
    answer(client, "anna", first["id"], "yes")
    assert [one.verdict for one in audit.history()] == ["no", "retracted", "yes"], "nothing is ever deleted"
    told = client.get("/v1/audits/mine/history", params={"reviewer": "anna"}).json()["answers"]
    assert [(one["answer"], one["withdrawn"]) for one in told] == [("yes", False), ("no", True)]
    assert told[0]["reviewer"] == "anna"
    assert told[0]["time"] == audit.history()[-1].time
    assert told[0]["label"] == first["label"]
    client.post("/v1/audits/mine/undo", json={"reviewer": "anna"})
    assert client.post("/v1/audits/mine/undo", json={"reviewer": "anna"}).json()["question"] is None


def test_the_history_is_of_one_or_of_all_and_newest_first(client):
    for name in ("anna", "ben", "anna"):
        answer(client, name, ask(client, name)["question"]["id"])
    everyone = client.get("/v1/audits/mine/history").json()["answers"]
    assert [one["reviewer"] for one in everyone] == ["anna", "ben", "anna"]
    assert len(client.get("/v1/audits/mine/history?reviewer=ben").json()["answers"]) == 1
    assert len(client.get("/v1/audits/mine/history?limit=2").json()["answers"]) == 2


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("next", {}, 400, '"reviewer" is a required property'),
        ("next", {"reviewer": " "}, 400, "1 to 200"),
        ("next", {"reviewer": "a" * 201}, 400, "is longer than 200 characters"),
        ("undo", {"reviewer": 7}, 400, "reviewer: 7"),
        ("answers", {"reviewer": "anna", "question": 0, "answer": "maybe"}, 400, 'not one of "yes", "no" or "unsure"'),
        ("answers", {"reviewer": "anna", "question": True, "answer": "yes"}, 400, "question: true is not"),
        ("answers", {"reviewer": "anna", "question": 10**30, "answer": "yes"}, 400, "must be a number"),
        ("answers", {"reviewer": "", "question": 0, "answer": "yes"}, 400, "is shorter than 1 character"),
        ("answers", ["yes"], 400, 'of type "object"'),
    ],
)
def test_what_is_wrong_is_said(client, path, body, status, said):
    refused = client.post(f"/v1/audits/mine/{path}", json=body)
    assert refused.status_code == status
    assert said in refused.json()["detail"]


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 9000, b'{"reviewer": NaN}'])
def test_bytes_that_are_no_json_are_refused(client, raw):
    assert client.post("/v1/audits/mine/next", content=raw).status_code == 400


def test_unknown_audits_and_limits(client):
    missing = client.get("/v1/audits/other")
    assert missing.status_code == 404
    assert "mine" in missing.json()["detail"]
    for limit in ("0", "-1", "x", "1001", "9" * 50, "²"):
        assert client.get("/v1/audits/mine/history", params={"limit": limit}).status_code == 400


def test_strange_names_do_no_harm(client):
    for name in (b"a\\u0000", b"\\u202e", b"a\\ud800", b"<script>"):
        said = client.post("/v1/audits/mine/next", content=b'{"reviewer": "%b"}' % name)
        assert said.status_code in (200, 400), said.json()


def test_answers_need_the_token_where_there_is_one_and_reads_do_not(audit):
    service = Service(Settings(audits={"mine": audit.where}, token="a long secret"))
    with TestClient(create_app(service)) as client:
        assert client.post("/v1/audits/mine/next", json={"reviewer": "anna"}).status_code == 401
        assert client.get("/v1/audits/mine").status_code == 200
        known = {"Authorization": "Bearer a long secret"}
        assert client.post("/v1/audits/mine/next", json={"reviewer": "anna"}, headers=known).status_code == 200


def test_without_audits_the_list_is_empty(tmp_path):
    with TestClient(create_app(Service(Settings()))) as client:
        assert client.get("/v1/audits").json() == {"audits": []}
    with pytest.raises(InvalidInput, match="audit plan"):
        Service(Settings(audits={"mine": str(tmp_path)}))
