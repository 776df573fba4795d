"""``tailwise serve`` as a process: workers, replacement while serving, signals, metrics, slow and hostile clients."""

import json
import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

from tailwise import DiSMEC

from .conftest import tagger

SUGGEST = "/v1/projects/subjects/suggest"


def until(holds, seconds=60):
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def workers_of(service):
    return [
        int(pid) for pid in Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
    ]


def counted(service, line):
    text = service.ask("/metrics")[1].decode()
    return sum(float(found.rpartition(" ")[2]) for found in text.splitlines() if found.startswith(line))


def scores(body):
    return [one["score"] for one in json.loads(body)["results"]]


def test_replacing_models_under_load_fails_no_request_and_mixes_no_answer(copied, live):
    text = {"text": "cod and grape", "limit": 4, "language": "en"}
    versions = {name: tagger(DiSMEC(C=C)) for name, C in (("old", 1.0), ("new", 0.01))}
    versions["old"].save(copied / "subjects")
    expected = [[s.score for s in one.suggest(["cod and grape"], 4)[0]] for one in versions.values()]
    assert expected[0] != expected[1]
    service = live(copied, "--workers", 2)
    stop, answers, failures = threading.Event(), [], []

    def ask():
        while not stop.is_set():
            try:
                status, body = service.ask(SUGGEST, text)
                (answers if status == 200 else failures).append(body)
            except OSError as error:
                failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    try:
        for name in ("new", "old", "new"):
            versions[name].save(copied / "subjects")
            wanted = expected[list(versions).index(name)]
            # Whichever worker answers: one that opens its models only now has none to replace.
            until(lambda: all(scores(service.ask(SUGGEST, text)[1]) == wanted for _ in range(20)))  # noqa: B023
    finally:
        stop.set()
        for one in threads:
            one.join()
    assert not failures
    found = [scores(body) for body in answers]
    assert all(one in expected for one in found)
    assert all(one in found for one in expected)
    maps = [Path(f"/proc/{pid}/maps").read_text() for pid in workers_of(service)]
    assert len(maps) == 2
    # Files of versions that are gone are mapped no more.
    assert not any("(deleted)" in line and ".npy" in line for text in maps for line in text.splitlines())


def test_a_broken_model_is_refused_and_the_old_one_goes_on(copied, live):
    service = live(copied, "--workers", 1)
    before = service.ask(SUGGEST, {"text": "cod"})
    manifest = copied / "subjects" / "manifest.json"
    broken = manifest.read_text().replace("0.2", "0.3", 1)
    manifest.write_text(broken)
    os.kill(service.process.pid, signal.SIGHUP)
    until(lambda: any(line.get("project") == "subjects" and line["level"] == "error" for line in service.lines()))
    assert service.ask(SUGGEST, {"text": "cod"}) == before
    assert "goes on" in next(line["message"] for line in service.lines() if line["level"] == "error")
    shutil.copytree(copied / "other", copied / "third")
    until(lambda: service.ask("/v1/projects/third")[0] == 200)
    shutil.rmtree(copied / "third")
    until(lambda: service.ask("/v1/projects/third")[0] == 404)


def test_killed_workers_come_back_and_counts_stay_right(models, live):
    service = live(models, "--workers", 2)
    for _ in range(10):
        assert service.ask(SUGGEST, {"text": "cod"})[0] == 200
    assert counted(service, 'tailwise_requests_total{operation="suggest",status="200"') == 10
    victim = workers_of(service)[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(workers_of(service)) == 2 and victim not in workers_of(service))
    for _ in range(10):
        assert service.ask(SUGGEST, {"text": "cod"})[0] == 200
    assert counted(service, 'tailwise_requests_total{operation="suggest",status="200"') == 20
    assert service.stop() == 0


def test_logs_are_lines_of_json_without_texts(one_worker):
    service = one_worker
    service.ask(SUGGEST, {"text": "a secret about cod"})
    until(lambda: service.lines())
    line = service.lines()[-1]
    assert (line["message"], line["status"], line["path"]) == ("request", 200, SUGGEST)
    assert "secret" not in service.log.read_text()


def test_a_slow_client_neither_stalls_others_nor_stays(one_worker):
    service = one_worker
    host, port = service.url.split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(20)]
    for one in slow:
        one.sendall(b"POST /v1/projects/subjects/suggest HTTP/1.1\r\nHost: x\r\n")
    body = socket.create_connection((host, int(port)))
    body.sendall(
        b"POST /v1/projects/subjects/suggest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    start = time.monotonic()
    assert service.ask(SUGGEST, {"text": "cod"})[0] == 200
    assert time.monotonic() - start < 5
    for one in slow:
        one.settimeout(20)
        assert one.recv(1000) == b""
        one.close()
    body.close()


def test_texts_of_20_megabytes(one_worker):
    service = one_worker
    word = b"cod" * 7_000_000
    assert service.ask(SUGGEST, b"text=" + word, kind="application/x-www-form-urlencoded")[0] == 200
    words = "the cod and the s\u00e9a ".encode() * 1_000_000
    status, found = service.ask(SUGGEST, json.dumps({"text": words.decode(), "limit": 1, "language": "en"}).encode())
    assert (status, json.loads(found)["results"][0]["label"]) == (200, "fish")
    head = b'--b\r\nContent-Disposition: form-data; name="text"\r\n\r\n'
    parts = head + words + b"\r\n--b--\r\n"
    assert service.ask(SUGGEST, parts, kind="multipart/form-data; boundary=b")[0] == 200
    status, found = service.ask(SUGGEST, b"text=" + b"a" * 64_000_001, kind="application/x-www-form-urlencoded")
    assert (status, json.loads(found)["status"]) == (413, 413)


def test_ctrl_c_ends_it(models, live):
    service = live(models, "--workers", 1)
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(20) == 0
    assert service.log.read_text().rstrip().endswith("ended")
