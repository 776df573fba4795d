"""What goes wrong at the command line: one clear message, a status that tells the cause, nothing lost."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tailwise
from tailwise.cli import ExitCode
from tailwise.errors import DownloadError, MissingExtra

TEXT = ["-t", "title,body"]


def refused(result, code, *words):
    """The run failed with this status and one message without a traceback, which holds the words."""
    assert result.code == code, result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    message = result.err.splitlines()[-1] if code != ExitCode.USAGE else result.err
    if code != ExitCode.USAGE:
        assert message.startswith("tailwise: ")
    for word in words:
        assert word in message, message


def no_leftovers(folder):
    """No temporary file or folder is left behind."""
    assert not [path for path in Path(folder).iterdir() if path.name.startswith(".")]


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_missing_column(run, corpus, tmp_path):
    result = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-t", "title,abstract")
    refused(result, ExitCode.BAD_INPUT, "train.jsonl, line 1", "abstract", "title")
    refused(run("train", corpus / "train.jsonl", "-o", tmp_path / "m", *TEXT, "-l", "tags"), ExitCode.BAD_INPUT, "tags")
    assert list(tmp_path.iterdir()) == []


def test_missing_file(run, tmp_path):
    refused(run("train", tmp_path / "none.jsonl", "-o", tmp_path / "m"), ExitCode.BAD_INPUT, "none.jsonl")


def test_empty_texts_are_told_and_only_empty_texts_refused(run, corpus, tmp_path):
    rows = [json.loads(line) for line in (corpus / "train.jsonl").read_text().splitlines()]
    some = write(tmp_path / "some.jsonl", *rows, {"title": "", "body": " ", "labels": ["tax"]})
    result = run("train", some, "-o", tmp_path / "m", "-m", "centroid", *TEXT)
    assert result.code == 0, result.err
    assert "1 of 81 texts are empty" in result.err
    none = write(tmp_path / "none.jsonl", {"title": "", "body": "", "labels": ["tax"]})
    refused(
        run("train", none, "-o", tmp_path / "m2", "-m", "centroid", *TEXT),
        ExitCode.BAD_INPUT,
        "every text",
        "--text-columns",
    )
    assert not (tmp_path / "m2").exists()


def test_an_empty_text_gets_a_message(run, model):
    refused(run("suggest", model, "  "), ExitCode.BAD_INPUT, "the text is empty")
    refused(run("explain", model, "fish", stdin=""), ExitCode.BAD_INPUT, "the text is empty")


def test_empty_labels(run, tmp_path):
    rows = [{"title": "a", "body": "sea", "labels": ["x"]}, {"title": "c", "body": "sea cod", "labels": []}]
    result = run("train", write(tmp_path / "some.jsonl", *rows), "-o", tmp_path / "m", "-m", "centroid", *TEXT)
    assert result.code == 0, result.err
    assert "1 of 2 rows have no label" in result.err
    nothing = write(tmp_path / "none.jsonl", {"title": "a", "body": "b", "labels": []})
    refused(run("train", nothing, "-o", tmp_path / "n", "-m", "centroid", *TEXT), ExitCode.BAD_INPUT, "label")


def test_a_label_never_seen_in_training(run, corpus, model, tmp_path):
    unseen = write(tmp_path / "t.jsonl", {"title": "sea", "body": "cod", "labels": ["fish", "whale"]})
    result = run("evaluate", model, unseen, "--metrics", "recall@5", "--json", *TEXT)
    assert result.code == 0, result.err
    assert "1 of 2 labels in" in result.err
    assert "never seen in training" in result.err
    assert result.json["metrics"]["recall@5"]["value"] == 50.0
    usual = run("evaluate", model, unseen, "--json", *TEXT)
    assert usual.json["metrics"]["recall@5:unseen"]["value"] == 0.0
    refused(run("explain", model, "Fissh", "cod"), ExitCode.BAD_INPUT, "never seen in training", "The fish")


def test_duplicate_rows_are_told(run, corpus, tmp_path):
    rows = [json.loads(line) for line in (corpus / "train.jsonl").read_text().splitlines()]
    result = run(
        "train", write(tmp_path / "d.jsonl", *rows, rows[0], rows[1]), "-o", tmp_path / "m", "-m", "centroid", *TEXT
    )
    assert result.code == 0
    assert "2 texts occur more than once" in result.err


def test_a_label_twice_in_a_row_is_refused(run, tmp_path):
    twice = write(tmp_path / "d.jsonl", {"title": "a", "body": "b", "labels": ["x", "x"]})
    refused(run("train", twice, "-o", tmp_path / "m", *TEXT), ExitCode.BAD_INPUT, "'x' twice", "line 1")


@pytest.mark.parametrize("name", ["bad.jsonl", "bad.csv"])
def test_wrong_encoding(run, tmp_path, name):
    text = (
        '{"text": "ok", "labels": ["a"]}\n{"text": "Müll", "labels": ["a"]}\n'
        if "json" in name
        else "text,labels\nok,a\nMüll,a\n"
    )
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    refused(run("train", tmp_path / name, "-o", tmp_path / "m"), ExitCode.BAD_INPUT, "UTF-8", "line ")


def test_standard_input_in_a_wrong_encoding(run, model):
    refused(run("suggest", model, stdin="Müll".encode("latin-1")), ExitCode.BAD_INPUT, "standard input", "UTF-8")


def test_malformed_lines(run, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a", "labels": ["b"]}\n{"text": \n')
    refused(run("train", tmp_path / "x.jsonl", "-o", tmp_path / "m"), ExitCode.BAD_INPUT, "line 2")


def test_a_folder_that_is_not_a_model(run, tmp_path, corpus):
    refused(run("suggest", tmp_path, "text"), ExitCode.BAD_MODEL, "not a tailwise model")
    refused(run("suggest", tmp_path / "nowhere", "text"), ExitCode.BAD_MODEL, "does not exist")
    refused(run("info", tmp_path), ExitCode.BAD_MODEL, "not a tailwise model")
    refused(run("info", corpus), ExitCode.BAD_INPUT, "several training files (train.csv, train.jsonl)")


def test_a_model_of_another_version_or_damaged(run, corpus, tmp_path):
    path = tmp_path / "m"
    assert run("train", corpus / "train.jsonl", "-o", path, "-m", "centroid", *TEXT).code == 0
    manifest = path / "manifest.json"
    good = manifest.read_text()
    manifest.write_text(good.replace('"format_version": 2', '"format_version": 99'))
    refused(run("suggest", path, "text"), ExitCode.BAD_MODEL, "format version 99", "upgrade tailwise")
    manifest.write_text(good)
    array = next(path.glob("*.npy"))
    array.write_bytes(array.read_bytes()[:-1] + b"x")
    refused(run("suggest", path, "text"), ExitCode.BAD_MODEL, array.name, "corrupted")


def test_a_bare_model_is_refused_with_the_fix(run, tmp_path):
    tailwise.Popularity().fit([[1.0]], [[1, 0]]).save(tmp_path / "bare")
    refused(run("suggest", tmp_path / "bare", "text"), ExitCode.BAD_MODEL, "Popularity", "tailwise train")


@pytest.mark.parametrize("others", [[], ["manifest.json"]], ids=["", "with a manifest of its own"])
def test_an_existing_folder_is_never_overwritten(run, corpus, tmp_path, others):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    for name in others:
        (tmp_path / "precious" / name).write_text('{"name": "my web app"}')
    result = run("train", corpus / "train.jsonl", "-o", tmp_path / "precious", "-m", "centroid", *TEXT)
    refused(result, ExitCode.BAD_INPUT, "is not a tailwise model", "choose another")
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-m", "dismek"], ["model 'dismek'", "did you mean 'dismec'", "Choose auto"]),
        (["-m", "centroid", "--set", "C=1"], ["Centroid has no parameter 'C'", "n_jobs"]),
        (["-m", "centroid", "--set", "n_jobs=many"], ["an integer", "n_jobs"]),
        (["-m", "dismec", "--set", "loss=huber"], ["--set 'loss=huber'", "'squared_hinge', 'hinge', 'logistic'"]),
        (["-m", "dismec", "--set", "loss=logistics"], ["did you mean 'logistic'?"]),
        (["-m", "dismec", "--set", "los=hinge"], ["did you mean loss?"]),
        (["-m", "parabel", "--set", "n_trees=0"], ["n_trees=0 is outside [1, inf)", "the default is 3"]),
        (["--set", "C=-1"], ["C=-1"]),
        (["--set-features", "nothing=1"], ["--set-features 'nothing=1'", "TextFeatures has no parameter"]),
        (["--set-features", "word_ngrams=0"], ["word_ngrams=0 is outside [1, 10]"]),
        (["--seed", "-1"], ["random_state=-1"]),
    ],
)
def test_wrong_arguments_are_refused_before_any_data_is_read(run, tmp_path, monkeypatch, arguments, words):
    read = []
    monkeypatch.setattr("tailwise.cli.inputs.read_rows", lambda *given, **options: read.append(given))
    missing = tmp_path / "missing.jsonl"
    refused(run("train", missing, "-o", tmp_path / "m", *arguments, *TEXT), ExitCode.BAD_INPUT, *words)
    assert read == []
    assert list(tmp_path.iterdir()) == []


def test_usage_errors_have_status_2(run, corpus, tmp_path):
    assert run("train").code == ExitCode.USAGE
    assert run("nonsense").code == ExitCode.USAGE
    assert run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "--tail", "2").code == ExitCode.USAGE


def test_a_metric_that_is_not_known(run, corpus, model):
    refused(
        run("evaluate", model, corpus / "test.jsonl", "--metrics", "accuracy@5", *TEXT),
        ExitCode.BAD_INPUT,
        "accuracy@5",
    )


def full_disk(monkeypatch):
    """Every fsync of a file says that the disk is full, as a delayed write does."""

    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


def test_a_full_disk_keeps_the_old_model(run, corpus, tmp_path, monkeypatch):
    path = tmp_path / "m"
    arguments = ["train", corpus / "train.jsonl", "-o", path, *TEXT]
    assert run(*arguments, "-m", "centroid").code == 0
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with monkeypatch.context() as patch:
        full_disk(patch)
        refused(
            run(*arguments, "-m", "popularity", "--overwrite"),
            ExitCode.OUTPUT,
            "No space left on device",
            "nothing was changed",
        )
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    no_leftovers(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_told(run, corpus, model):
    for verb in (["predict", model, corpus / "test.jsonl"], ["report", model, corpus / "test.jsonl"]):
        refused(run(*verb, "-o", "/dev/full", *TEXT), ExitCode.OUTPUT, "/dev/full", "No space left on device")


def test_a_report_that_cannot_be_written_leaves_the_old_one(run, corpus, model, tmp_path, monkeypatch):
    target = tmp_path / "r.html"
    target.write_text("old")

    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        result = run("report", model, corpus / "test.jsonl", "-o", target, *TEXT)
    refused(result, ExitCode.OUTPUT, "r.html", "No space left", "nothing was changed")
    assert target.read_text() == "old"
    no_leftovers(tmp_path)


def test_control_c_leaves_nothing_half_written(run, corpus, tmp_path, monkeypatch):
    def interrupt(self, X, Y, weight):
        raise KeyboardInterrupt

    monkeypatch.setattr(tailwise.Centroid, "_fit", interrupt)
    result = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", *TEXT)
    assert result.code == ExitCode.INTERRUPTED
    assert "interrupted" in result.err
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


def wait_until_idle(process):
    """Until a process has taken no CPU time for half a second: on a busy machine it imports for longer."""
    before, stat = None, Path(f"/proc/{process.pid}/stat")
    while before is None or (stat.exists() and stat.read_text().split()[13:15] != before):
        before = stat.read_text().split()[13:15] if stat.exists() else []
        time.sleep(0.5)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_real_control_c(tmp_path):
    """The signal arrives while the command waits for its input."""
    code = "import sys; from tailwise.cli import main; print('ready', flush=True); sys.exit(main(sys.argv[1:]))"
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, "suggest", str(tmp_path / "m")]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout.readline() == "ready\n"
    wait_until_idle(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert out == ""
    assert err == "tailwise: interrupted; no file was left half-written\n"


# A stand-in for a long kernel: compiled code that lets other threads run and cannot be interrupted.
BUSY = """
import hashlib, sys, tailwise
from tailwise.atomic import temporary_folder
from tailwise.cli import main
from tailwise.parallel import map_blocks
def work(self, X, Y, weight):
    with temporary_folder(sys.argv[4] + "-scratch"):
        print("ready", flush=True)
        if self.n_jobs == 1:
            hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200_000_000)
        map_blocks(lambda block: hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200_000_000), range(9), n_jobs=2)
tailwise.Centroid._fit = work
sys.exit(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, ExitCode.INTERRUPTED, "interrupted"), (signal.SIGTERM, ExitCode.TERMINATED, "terminated")],
)
def test_a_busy_command_ends_within_a_second(corpus, tmp_path, number, code, said, n_jobs):
    pipe = subprocess.PIPE
    arguments = ["train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", *TEXT, "-q"]
    command = [sys.executable, "-c", BUSY, *map(str, arguments), "--set", f"n_jobs={n_jobs}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout.readline() == "ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    time.sleep(0.3)
    start = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    # A second, and two more for a machine with other things to do; the work itself takes a minute.
    assert time.monotonic() - start < 3
    assert process.returncode == code
    assert err == f"tailwise: {said}; no file was left half-written\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="streams of POSIX shells")
@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_streams_that_are_closed(model, closed):
    """Cron jobs and services may start without them."""
    command = f'exec "$0" -m tailwise.cli "$@" {closed}'

    def tailwise_with(*arguments):
        whole = ["sh", "-c", command, sys.executable, *map(str, arguments)]
        return subprocess.run(whole, capture_output=True, text=True, timeout=120)

    done = tailwise_with("suggest", model, "a levy on income", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 4
    done = tailwise_with("suggest", model, *(() if "<" in closed else ("",)))
    assert done.returncode == ExitCode.BAD_INPUT
    assert done.stdout == "" and ("2" in closed or "text is empty" in done.stderr)


def test_a_reader_that_leaves_early_is_no_error(run, corpus, model, monkeypatch):
    """``tailwise predict … | head`` closes the pipe."""

    def leave(text):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr("tailwise.cli.output.emit", leave)
    result = run("predict", model, corpus / "test.jsonl", *TEXT)
    assert result.code == 0
    assert result.err == ""


def test_a_real_pipe_that_closes_early(corpus, model):
    command = [sys.executable, "-m", "tailwise.cli"]
    for arguments in (["predict", model, corpus / "test.jsonl", *TEXT], ["labels", model, "--json"], ["--help"]):
        ears, mouth = os.pipe()
        os.close(ears)
        done = subprocess.run([*command, *map(str, arguments)], stdout=mouth, stderr=subprocess.PIPE, check=False)
        os.close(mouth)
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_failed_download_and_a_missing_package_have_their_own_status(run, corpus, tmp_path, monkeypatch):
    def no_network(name):
        raise DownloadError("eurlex-4k could not be fetched: no index can be reached")

    def no_torch(*arguments, **options):
        raise MissingExtra("GLaS needs torch; install it with: pip install 'tailwise[neural]'")

    monkeypatch.setattr("tailwise.data.fetch", no_network)
    refused(run("datasets", "fetch", "eurlex-4k"), ExitCode.DOWNLOAD, "could not be fetched")
    monkeypatch.setattr("tailwise.cli.training.make_model", no_torch)
    result = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", *TEXT)
    refused(result, ExitCode.MISSING_EXTRA, "pip install 'tailwise[neural]'")


def test_an_unknown_data_set(run):
    refused(run("datasets", "info", "imagenet"), ExitCode.BAD_INPUT, "imagenet", "eurlex-4k")


def test_too_little_memory_is_told(run, corpus, tmp_path, monkeypatch):
    def exhaust(self, X, Y, weight):
        raise MemoryError

    monkeypatch.setattr(tailwise.Centroid, "_fit", exhaust)
    result = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", *TEXT)
    refused(result, ExitCode.BAD_INPUT, "not enough memory", "--model parabel")


def test_a_bug_keeps_its_traceback(run, corpus, tmp_path, monkeypatch):
    def fail(self, X, Y, weight):
        raise RuntimeError("unexpected")

    monkeypatch.setattr(tailwise.Centroid, "_fit", fail)
    with pytest.raises(RuntimeError, match="unexpected"):
        run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", *TEXT)
    assert list(tmp_path.iterdir()) == []
