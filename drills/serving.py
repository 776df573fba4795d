"""Does the service stand ten minutes of reloads, bad requests and killed workers, without a 5xx and without a leak?

``python -m drills serving --minutes 10``: clients ask without a pause, some of them nonsense; every few seconds another
version of the model is saved, sometimes a broken one, and the youngest worker is killed. Every answer must be of one of
the two versions, every nonsense a 4xx, a dropped connection is asked again and must then be answered, and the memory of
the worker that was never killed must not grow.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drills.harness import Outcome
from tailwise import DiSMEC, Tagger, TextFeatures, load

COUNT = 10
"""Minutes."""
MODEST = 1
_CLIENTS = 6
_RELOAD_SECONDS = 4.0
_KILL_SECONDS = 9.0
_GROWTH = 1.15
"""The memory of the last third of the time, beside that of the second one, may be so many times as much."""
_WORDS = ("income duty levy revenue", "sea cod trawler quota", "iron furnace coal mill", "grape vineyard bottle cellar")
_ASKED = {"text": "cod and grape from the mill", "limit": 4}
_NONSENSE = (
    (b"{", "application/json"),
    (b'{"text": 7}', "application/json"),
    (b'{"text": "\xff"}', "application/json"),
    (b"text=%ff", "application/x-www-form-urlencoded"),
    (b"limit=3", "application/x-www-form-urlencoded"),
    (b"text=a&limit=-1", "application/x-www-form-urlencoded"),
    (b"--", "multipart/form-data; boundary=b"),
    (b"x", "image/png"),
)


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    versions = [_tagger(C) for C in (1.0, 0.01)]
    versions[0].save(folder / "model")
    shutil.copytree(folder / "model", folder / "whole")
    known = [[s.score for s in load(folder / "whole").suggest([_ASKED["text"]], 4)[0]]]
    known.append([s.score for s in versions[1].suggest([_ASKED["text"]], 4)[0]])
    answers, nonsense = Outcome("answers"), Outcome("nonsense is refused")
    reloads, memory = Outcome("reloads and kills"), Outcome("memory of one worker")
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", "tailwise.cli", "serve", str(folder / "model"), "--port", "0", "--workers", "2"],
        stderr=log,
        stdout=log,
    )
    try:
        port = _port(folder / "log", process)
        _until(lambda: len(_workers(process.pid)) == 2)
        oldest = _workers(process.pid)[0]
        stop, lock = threading.Event(), threading.Lock()
        threads = [
            threading.Thread(target=_ask_on, args=(port, stop, lock, known, answers, nonsense, seed), daemon=True)
            for seed in range(_CLIENTS)
        ]
        for one in threads:
            one.start()
        sizes = _disturb(process.pid, oldest, folder / "model", versions, 60.0 * count, reloads)
        stop.set()
        for one in threads:
            one.join()
        third = len(sizes) // 3
        before, after = (statistics.median(part) for part in (sizes[third : 2 * third], sizes[2 * third :]))
        flat = after <= _GROWTH * before
        memory.name += f", {before:.0f} then {after:.0f} MB"
        memory.count("intact" if flat else "broken", f"grew from {before:.0f} to {after:.0f} MB")
    finally:
        process.send_signal(signal.SIGTERM)
        ended = process.wait(60)
        log.close()
    reloads.count("intact" if ended == 0 else "broken", f"the service ended with status {ended}")
    yield from (answers, nonsense, reloads, memory)


def _tagger(C: float) -> Tagger:
    texts = [f"{_WORDS[i % 4]} {_WORDS[i // 4 % 4]} {i}" for i in range(240)]
    labels = [sorted({str(i % 4), str(i // 4 % 4)}) for i in range(240)]
    return Tagger(DiSMEC(C=C), features=TextFeatures(min_df=1)).fit(texts, labels)


def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    _until(lambda: "serving" in log.read_text() or process.poll() is not None)
    found = re.search(r"http://[^:]+:(\d+)/", log.read_text())
    if found is None:
        raise RuntimeError(log.read_text())
    return int(found[1])


def _until(holds: Any, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.1)


def _workers(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def _ask_on(
    port: int,
    stop: threading.Event,
    lock: threading.Lock,
    known: list[list[float]],
    answers: Outcome,
    nonsense: Outcome,
    seed: int,
) -> None:
    """Ask until told to stop; one of eight requests is nonsense."""
    draw = random.Random(seed)
    while not stop.is_set():
        wrong = draw.random() < 0.125
        body, kind = draw.choice(_NONSENSE) if wrong else (json.dumps(_ASKED).encode(), "application/json")
        status, found = _answer(port, body, kind)
        with lock:
            if wrong:
                nonsense.count("refused" if 400 <= status < 500 else "broken", f"{body!r} got {status}")
            elif status == 503:
                answers.count("refused")
            else:
                scores = [one["score"] for one in json.loads(found)["results"]] if status == 200 else None
                answers.count("intact" if scores in known else "broken", f"status {status}: {found[:200]!r}")


def _answer(port: int, body: bytes, kind: str) -> tuple[int, bytes]:
    """Status and body; a connection that a killed worker dropped is tried again a few times."""
    for _ in range(5):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("POST", "/v1/projects/model/suggest", body, {"Content-Type": kind})
            found = connection.getresponse()
            return found.status, found.read()
        except (TimeoutError, OSError, http.client.HTTPException):
            time.sleep(0.1)
        finally:
            connection.close()
    return 0, b"no connection"


def _disturb(
    pid: int, oldest: int, model: Path, versions: list[Tagger], seconds: float, reloads: Outcome
) -> list[float]:
    """Save, break and kill for so many seconds; the memory of the oldest worker, looked at all the time, in MB."""
    end, next_reload, next_kill = time.monotonic() + seconds, 0.0, time.monotonic() + _KILL_SECONDS
    sizes, turn = [], 0
    while (now := time.monotonic()) < end:
        if now >= next_reload:
            turn += 1
            versions[turn % 2].save(model)
            if turn % 5 == 0:
                manifest = model / "manifest.json"
                manifest.write_text(manifest.read_text().replace('"tailwise_version": "', '"tailwise_version": "9', 1))
            os.kill(pid, signal.SIGHUP)
            reloads.count("intact")
            next_reload = time.monotonic() + _RELOAD_SECONDS
        if now >= next_kill:
            victims = [worker for worker in _workers(pid) if worker != oldest]
            if victims:
                os.kill(victims[-1], signal.SIGKILL)
                reloads.count("intact")
            next_kill = time.monotonic() + _KILL_SECONDS
        sizes.append(_megabytes(oldest))
        time.sleep(0.25)
    if oldest not in _workers(pid):
        reloads.count("broken", "a worker died that nobody killed")
    return sizes


def _megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:"))
