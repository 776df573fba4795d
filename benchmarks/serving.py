"""How many suggestions a second does the service give, and how fast, beside Annif with omikuji Bonsai in the same run?

Both serve TIBKAT models of one language with as many workers as there are cores, are asked over HTTP with the same
forms (a dev record's title and abstract, limit 10) by a client on the same machine, 1, 8 and 64 at a time, in five
rounds of a few seconds that take turns; before that the memory of 1 and of 4 workers, and the time from the start of
the process to the first answer, each server alone::

    python -m benchmarks serving                                # prepares what is missing, then measures
    python -m benchmarks serving --ours bonsai,best=../run/m-en --seconds 10
    python -m benchmarks serving --prepare                      # trains what is missing, and measures nothing

``--ours`` are models: ``bonsai`` is trained here, as Annif's omikuji is; ``NAME=FOLDER`` is one that is there.
Annif runs under gunicorn with uvicorn's workers, as its documentation sets it up. Annif is in ``.venv-annif``
(``make peers``), the records are in ``../shared/data``; without Annif ours are measured alone, without records nothing.
CPU-ms are of the server's processes, for each answer: what stays the same on a busy machine.
"""

from __future__ import annotations

import json
import lzma
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from benchmarks import annif_peer
from benchmarks.harness import RESULTS, ROOT, save_results
from tailwise import load
from tailwise.display import describe

QUESTION = "How many suggestions a second does the service give, beside Annif with omikuji Bonsai?"
CLIENTS = (1, 8, 64)
_TEXTS = 400
_ROUNDS = 5
_START_SECONDS = 120.0
_ANSWER_SECONDS = 60.0


def main(arguments: list[str]) -> None:
    language = _option(arguments, "--language", "en")
    seconds = float(_option(arguments, "--seconds", "4"))
    workers = int(_option(arguments, "--workers", str(os.cpu_count() or 1)))
    folder = Path(_option(arguments, "--folder", str(RESULTS / "serving" / language))).resolve()
    records = {part: annif_peer._DATA / f"tibkat-{language}-{part}.jsonl.xz" for part in ("train", "dev")}
    if not records["train"].exists():
        print(f"{records['train']} is not at hand; nothing was measured")
        return
    folder.mkdir(parents=True, exist_ok=True)
    ours = dict(_named(one, folder) for one in _option(arguments, "--ours", "bonsai").split(",") if one)
    prepare(folder, language, records, ours)
    if "--prepare" in arguments:
        return
    texts = _texts(records["dev"])
    figures: dict[str, Any] = {"language": language, "workers": workers, "seconds": seconds}
    servers = {f"tailwise {name}": (_start_ours, path, name) for name, path in ours.items()}
    if (folder / "data" / "projects" / "bonsai").is_dir():
        servers["annif omikuji"] = (_start_annif, folder, "bonsai")
    else:
        print("Annif is not at hand (make peers): ours alone")
    for name, path in ours.items():
        # What a folder holds is told by the folder, not by the name it was given here.
        figures[f"tailwise {name} is"] = describe(load(path).model_)
        print(f"tailwise {name} is {figures[f'tailwise {name} is']}", flush=True)
    for name, server in servers.items():
        figures[name] = alone(name, server, texts)
    for name, rounds in together(servers, texts, workers, seconds).items():
        figures[name] |= rounds
    _print_ratios(figures, servers)
    save_results(f"serving_{language}", figures)


def _named(one: str, folder: Path) -> tuple[str, Path]:
    name, equals, path = one.partition("=")
    return name, Path(path).resolve() if equals else folder / f"{name}-model"


def _option(arguments: list[str], name: str, default: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else default


def prepare(folder: Path, language: str, records: dict[str, Path], ours: dict[str, Path]) -> None:
    """Train what is missing: our models, and Annif's project."""
    annif = annif_peer._ANNIF.exists() and not (folder / "data" / "projects" / "bonsai").is_dir()
    missing = {name: path for name, path in ours.items() if not (path / "manifest.json").exists()}
    if (annif or missing) and not (folder / "gnd.csv").exists():
        annif_peer._write_corpora(folder, records)
    for name, path in missing.items():
        print(f"training tailwise --model {name}", flush=True)
        train = ["train", str(records["train"]), "-o", str(path), "--vocab", "gnd.csv", "--model", name]
        annif_peer._run(folder, Path(sys.executable).parent / "tailwise", train)
    if annif:
        print("training Annif's omikuji Bonsai", flush=True)
        stemmer = annif_peer._STEMMERS[language]
        (folder / "projects.cfg").write_text(annif_peer._PROJECTS.format(language=language, stemmer=stemmer))
        annif_peer._stand_in_for_punkt(folder / "nltk_data")
        annif_peer._annif(folder, "load-vocab", "gnd", "gnd.csv")
        annif_peer._annif(folder, "train", "bonsai", "train.tsv.gz", "-j", "1")


def _texts(path: Path) -> list[bytes]:
    """Requests' bodies: records of the dev part."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for _, line in zip(range(_TEXTS), lines, strict=False)]
    return [urlencode({"text": f"{one['title']}\n{one['abstract'] or ''}", "limit": 10}).encode() for one in found]


@contextmanager
def _running(command: list[Any], folder: Path, **environment: str) -> Iterator[Server]:
    """A server that runs as long as the block does, in a session of its own, and ends with all that it started."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            yield Server(process, log)
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                process.send_signal(number)
                try:
                    process.wait(20)
                    break
                except subprocess.TimeoutExpired:
                    continue


class Server(NamedTuple):
    """A process and what it says."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def check(self) -> None:
        """End with what it said where it has ended."""
        if self.process.poll() is not None:
            self.log.seek(0)
            sys.exit(f"the server ended: {self.log.read()[-2000:].decode(errors='replace')}")


def _start_ours(model: Path, project: str, port: int, workers: int) -> Any:
    command = [
        Path(sys.executable).parent / "tailwise",
        "serve",
        model,
        "--port",
        port,
        "--workers",
        workers,
        "--quiet",
    ]
    return _running(command, ROOT), f"/v1/projects/{model.name}/suggest"


def _start_annif(folder: Path, project: str, port: int, workers: int) -> Any:
    command = [
        annif_peer._ANNIF.parent / "gunicorn", "-k", "uvicorn.workers.UvicornWorker", "-w", workers,
        "-b", f"127.0.0.1:{port}", "--timeout", "600", "annif:create_app()",
    ]  # fmt: skip
    where = {"NLTK_DATA": str(folder / "nltk_data"), "ANNIF_DATADIR": str(folder / "data"), "OMP_NUM_THREADS": "1"}
    return _running(command, folder, **where), f"/v1/projects/{project}/suggest"


def alone(name: str, server: tuple[Any, Path, str], texts: list[bytes]) -> dict[str, Any]:
    """One server with nothing beside it: the time to its first answer, and its memory with 1 and 4 workers."""
    start, path, project = server
    found: dict[str, Any] = {"start to first answer": []}
    for workers in (1, 4, os.cpu_count() or 1):
        port = _free_port()
        begun = time.perf_counter()
        running, target = start(path, project, port, workers)
        with running as process:
            _first_answer(process, port, target, texts[0])
            found["start to first answer"].append(time.perf_counter() - begun)
            _warm(port, target, texts, workers)
            found[f"MB of {workers} workers"] = _megabytes(process.process.pid)
    times = "/".join(f"{value:.2f}" for value in found["start to first answer"])
    memory = f"memory of 1 worker {found['MB of 1 workers']:,.0f} MB, of 4 {found['MB of 4 workers']:,.0f} MB"
    print(f"{name:24} start to first answer {times} s; {memory}", flush=True)
    return found


def together(
    servers: dict[str, tuple[Any, Path, str]], texts: list[bytes], workers: int, seconds: float
) -> dict[str, Any]:
    """Rounds in which every server is asked in turn, so that what else the machine does falls on all of them alike."""
    found: dict[str, Any] = {name: {f"{clients} clients": [] for clients in CLIENTS} for name in servers}
    with ExitStack() as stack:
        at = {}
        for name, (start, path, project) in servers.items():
            port = _free_port()
            running, target = start(path, project, port, workers)
            process = stack.enter_context(running)
            _first_answer(process, port, target, texts[0])
            _warm(port, target, texts, workers)
            at[name] = (process.process.pid, port, target)
        for clients in CLIENTS:
            for _ in range(_ROUNDS):
                for name, (pid, port, target) in at.items():
                    used = _cpu_seconds(pid)
                    figures = _load(port, target, texts, clients, seconds)
                    figures["CPU-ms"] = 1000 * (_cpu_seconds(pid) - used) / max(1, figures["answers"])
                    found[name][f"{clients} clients"].append(figures)
            for name in servers:
                print(f"{name:24} {clients:3} clients  {_said(found[name][f'{clients} clients'])}", flush=True)
    return found


def _said(rounds: list[dict[str, Any]]) -> str:
    """Medians of the rounds, and how far requests a second lie apart."""
    middle = {key: float(np.median([one[key] for one in rounds])) for key in rounds[0]}
    rates = [one["requests/s"] for one in rounds]
    return (
        f"{middle['requests/s']:8.1f} ({min(rates):.0f}-{max(rates):.0f}) requests/s  p50 {middle['p50 ms']:6.1f} ms  "
        f"p99 {middle['p99 ms']:6.1f} ms  {middle['CPU-ms']:6.2f} CPU-ms  {sum(one['failed'] for one in rounds)} failed"
    )


def _print_ratios(figures: dict[str, Any], servers: dict[str, Any]) -> None:
    """Requests a second beside Annif's in the same round: the median, the least and the most."""
    peer = "annif omikuji"
    for name in servers:
        if name == peer or peer not in servers:
            continue
        said = []
        for clients in CLIENTS:
            key = f"{clients} clients"
            pairs = zip(figures[name][key], figures[peer][key], strict=True)
            ratios = [one["requests/s"] / other["requests/s"] for one, other in pairs]
            figures[name][f"{key}, beside Annif"] = ratios
            said.append(f"{np.median(ratios):.1f}× ({min(ratios):.1f}-{max(ratios):.1f}) at {clients}")
        print(f"{name}: requests a second beside Annif's: {', '.join(said)} clients")


def _request(target: str, body: bytes) -> bytes:
    head = (
        f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _load(port: int, target: str, texts: list[bytes], clients: int, seconds: float) -> dict[str, Any]:
    """So many clients, each asking again when it is answered, on connections that stay open.

    Plain sockets and one selector: the cores are shared with the server, and what the client takes is missing there.
    """
    requests = [_request(target, text) for text in texts]
    times: list[float] = []
    failed = 0
    waiting: dict[socket.socket, Asked] = {}
    with selectors.DefaultSelector() as ready:

        def ask(number: int, connection: socket.socket | None = None, place: int = 0) -> None:
            if connection is None:
                connection = socket.create_connection(("127.0.0.1", port))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(connection, selectors.EVENT_READ)
            waiting[connection] = Asked(number, place, time.perf_counter(), bytearray())
            connection.sendall(requests[(7919 * number + place) % len(requests)])

        def leave(connection: socket.socket) -> None:
            ready.unregister(connection)
            connection.close()

        begun = time.perf_counter()
        end, patience = begun + seconds, begun + seconds + _ANSWER_SECONDS
        for number in range(clients):
            ask(number)
        while waiting and (now := time.perf_counter()) < patience:
            for key, _ in ready.select(patience - now):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                asked = waiting.pop(connection)
                try:
                    came = connection.recv(1 << 20)
                except OSError:
                    came = b""
                asked.got.extend(came)
                status = _status(asked.got)
                if came and status is None:
                    waiting[connection] = asked
                    continue
                now = time.perf_counter()
                if status == 200:
                    times.append(now - asked.since)
                else:
                    failed += 1
                if not came:
                    leave(connection)
                if now < end:
                    ask(asked.number, connection if came else None, asked.place + 1)
                elif came:
                    leave(connection)
        failed += len(waiting)
        for connection in waiting:
            leave(connection)
    wall = time.perf_counter() - begun
    milliseconds = 1000 * np.array(times or [np.nan])
    return {
        "answers": len(times),
        "failed": failed,
        "requests/s": len(times) / wall,
        "p50 ms": float(np.percentile(milliseconds, 50)),
        "p99 ms": float(np.percentile(milliseconds, 99)),
    }


class Asked(NamedTuple):
    """A request that waits for its answer on a connection."""

    number: int
    """of the client"""
    place: int
    """of the request among the client's"""
    since: float
    got: bytearray


def _status(got: bytearray) -> int | None:
    """The status of an answer that is whole; None where more is to come."""
    head, found, body = got.partition(b"\r\n\r\n")
    if not found:
        return None
    lowered = head.lower()
    if b"content-length:" in lowered:
        if len(body) < int(lowered.split(b"content-length:")[1].split(b"\r\n")[0]):
            return None
    elif not body.endswith(b"0\r\n\r\n"):
        return None
    return int(head.split(b" ", 2)[1])


def _first_answer(server: Server, port: int, target: str, body: bytes) -> None:
    deadline = time.perf_counter() + _START_SECONDS
    while time.perf_counter() < deadline:
        server.check()
        try:
            status = _once(port, target, body)
        except OSError:
            time.sleep(0.02)
            continue
        if status == 200:
            return
        time.sleep(0.05)
    sys.exit(f"nothing answered at {target} within {_START_SECONDS:g} s")


def _once(port: int, target: str, body: bytes) -> int:
    """The status of one request on a connection of its own."""
    got = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=_START_SECONDS) as connection:
        connection.sendall(_request(target, body))
        while (status := _status(got)) is None:
            came = connection.recv(1 << 20)
            if not came:
                raise ConnectionError("the connection was closed before the answer was whole")
            got.extend(came)
    return status


def _warm(port: int, target: str, texts: list[bytes], workers: int) -> None:
    """Have every worker answer: new connections, until each will have had some."""
    for place in range(12 * workers):
        _once(port, target, texts[place % len(texts)])


def _tree(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _tree(int(child)))]


def _cpu_seconds(pid: int) -> float:
    ticks = 0
    for one in _tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    """Memory of a process and all that it started, shared pages counted once."""
    lines = [line for one in _tree(pid) for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
