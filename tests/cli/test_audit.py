"""The whole of an audit at the command line: plan, sheets, estimate, evaluate, apply."""

import csv
import json
import random

import pytest

from tailwise.cli import main
from tailwise.parallel import set_progress

WORDS = [f"word{i}" for i in range(40)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Records of two to five labels, of which half were forgotten: folder, the complete labels."""
    rng, folder = random.Random(0), tmp_path_factory.mktemp("audit")
    complete = []
    with (folder / "train.jsonl").open("w") as file:
        for number in range(600):
            labels = sorted({min(int(rng.expovariate(0.12)), 39) for _ in range(rng.randint(2, 5))})
            words = [f"{WORDS[label]} sign{label}" for label in labels for _ in range(3)]
            kept = [f"L{label}" for label in labels if rng.random() < 0.5]
            complete.append({f"L{label}" for label in labels})
            file.write(json.dumps({"text": f"{' '.join(words)} record {number}", "labels": kept}) + "\n")
    arguments = ["train", folder / "train.jsonl", "-o", folder / "model", "-m", "centroid", "-q"]
    assert main(list(map(str, arguments))) == 0
    set_progress(None)
    return folder, complete


@pytest.fixture
def planned(texts, tmp_path, run):
    folder, complete = texts
    done = run(
        "audit", "plan", folder / "model", folder / "train.jsonl", "-o", tmp_path / "audit", "--questions", "120",
        "--width", "20", "--seed", "3",
    )  # fmt: skip
    assert done.code == 0, done.err
    return tmp_path / "audit", folder, complete, done


def fill(path, complete, but=()):
    """Answer a sheet by the truth."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for place, row in enumerate(rows):
            right = row["label_id"] in complete[int(row["record"])]
            writer.writerow(row | {"verdict": "" if place in but else "Yes" if right else "n"})
    return rows


def test_the_loop(planned, tmp_path, run):
    audit, folder, complete, done = planned
    assert "upper bound" in done.out and (audit / "plan.json").exists()
    sheets = {}
    for name, count in (("anna", 60), ("ben", None)):
        sheet = tmp_path / f"{name}.csv"
        extra = [] if count is None else ["--count", count]
        assert run("audit", "export", audit, "-o", sheet, "--reviewer", name, *extra).code == 0
        sheets[name] = fill(sheet, complete, but=(0,) if name == "anna" else ())
    assert "text" in sheets["anna"][0] and "recorded" not in sheets["anna"][0]
    assert run("audit", "import", audit, tmp_path / "anna.csv").out.startswith(
        "59 answers added, 0 changed, 0 known, 1 open"
    )
    assert run("audit", "import", audit, tmp_path / "anna.csv").out.startswith("0 answers added, 0 changed, 59 known")
    assert run("audit", "import", audit, tmp_path / "ben.csv", "--json").json["added"] == len(sheets["ben"])
    assert run("evaluate", folder / "model", folder / "train.jsonl", "--propensity", audit).code == 3
    status = run("audit", "status", audit, "--json").json
    assert status["by reviewer"]["anna"] == 59 and status["answers"] == 59 + len(sheets["ben"])
    estimated = run("audit", "estimate", audit)
    assert estimated.code == 0 and "kappa" in estimated.out and "in truth" in estimated.out
    assert "<svg" in (audit / "audit.html").read_text() and "<script" not in (audit / "audit.html").read_text()
    judged = run("evaluate", folder / "model", folder / "train.jsonl", "--propensity", audit)
    assert judged.code == 0 and "Jain's guess" in judged.out and "from the audit" in judged.out, judged.err
    as_json = run("evaluate", folder / "model", folder / "train.jsonl", "--propensity", audit, "--json").json
    assert set(as_json["metrics with Jain's guess"]) == {"psp@1", "psp@3", "psp@5", "psndcg@5"}


def test_apply_adds_what_was_confirmed_and_tells_who_said_so(planned, tmp_path, run):
    audit, folder, complete, _ = planned
    sheet = tmp_path / "anna.csv"
    run("audit", "export", audit, "-o", sheet, "--reviewer", "anna")
    fill(sheet, complete)
    run("audit", "import", audit, sheet)
    done = run("audit", "apply", audit, folder / "train.jsonl", "-o", tmp_path / "better.jsonl", "--unchecked", "50")
    assert done.code == 0, done.err
    before, after = (
        [set(json.loads(line)["labels"]) for line in path.read_text().splitlines()]
        for path in (folder / "train.jsonl", tmp_path / "better.jsonl")
    )
    with (tmp_path / "better.changes.csv").open(newline="") as file:
        changes = list(csv.DictReader(file))
    added = {(int(c["record"]), c["label_id"]) for c in changes if c["change"] == "added"}
    assert added and all(c["reviewers"] == "anna" and c["times"].endswith("+00:00") for c in changes)
    gained = {(row, label) for row, (old, new) in enumerate(zip(before, after, strict=True)) for label in new - old}
    assert gained == added and all(label in complete[row] for row, label in gained)
    assert all(old <= new for old, new in zip(before, after, strict=True)), "no recorded label was wrong"
    with (tmp_path / "better.unchecked.csv").open(newline="") as file:
        listed = list(csv.DictReader(file))
    assert len(listed) == 50
    assert [float(one["chance"]) for one in listed] == sorted((float(one["chance"]) for one in listed), reverse=True)
    judged = {(int(c["record"]), c["label_id"]) for c in changes}
    assert not judged & {(int(one["record"]), one["label_id"]) for one in listed}
    lines = (folder / "train.jsonl").read_text().splitlines()
    (tmp_path / "other.jsonl").write_text("\n".join(lines[1:]) + "\n")
    other = run("audit", "apply", audit, tmp_path / "other.jsonl", "-o", tmp_path / "no.jsonl")
    assert other.code == 3 and "other rows than the audit was planned for" in other.err
    assert not (tmp_path / "no.jsonl").exists()


def test_apply_keeps_every_column(texts, tmp_path, run):
    folder, complete = texts
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    with (tmp_path / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["shelf", "text", "labels", "note"])
        writer.writerows([f"s{n}", row["text"], "; ".join(row["labels"]), f"n, {n}"] for n, row in enumerate(rows))
    place = tmp_path / "audit"
    run("audit", "plan", folder / "model", tmp_path / "in.csv", "-o", place, "--questions", "60", "--width", "20")
    run("audit", "export", place, "-o", tmp_path / "a.csv", "--reviewer", "anna")
    fill(tmp_path / "a.csv", complete)
    run("audit", "import", place, tmp_path / "a.csv")
    done = run("audit", "apply", place, tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--json")
    assert done.code == 0 and done.json["added"] > 5, done.err
    before, after = (list(csv.DictReader((tmp_path / f"{name}.csv").open(newline=""))) for name in ("in", "out"))
    gained = 0
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        assert old | {"labels": ""} == new | {"labels": ""}
        assert set(filter(None, new["labels"].split("; "))) <= complete[number]
        gained += len(new["labels"]) > len(old["labels"])
    assert 0 < gained <= done.json["added"]
    plain = run("audit", "apply", place, tmp_path / "in.csv", "-o", tmp_path / "out.parquet")
    assert plain.code == 0 and "texts and labels alone" in plain.err


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["question,verdict,reviewer", "0,maybe,anna"], "line 2: found the verdict 'maybe'"),
        (["question,verdict,reviewer", "0,yes,anna", "x,no,anna"], "line 3: found the question 'x'"),
        (["question,verdict,reviewer", "0,yes,anna", "9999,no,anna"], "line 3: found the question 9999"),
        (["question,verdict", "0,yes"], "line 2: found no reviewer"),
        (["a,b", "1,2"], "the columns question and verdict"),
        (["question,verdict,reviewer", "0,yes,anna", "0,no,anna"], "question 0 twice"),
        (["question,verdict,reviewer"], "no rows"),
    ],
)
def test_a_wrong_sheet_is_refused_whole(planned, tmp_path, run, lines, message):
    audit = planned[0]
    (tmp_path / "sheet.csv").write_text("\n".join(lines) + "\n")
    done = run("audit", "import", audit, tmp_path / "sheet.csv")
    assert done.code == 3 and message in done.err
    assert run("audit", "status", audit, "--json").json["answers"] == 0


def test_a_changed_mind_is_kept_too(planned, tmp_path, run):
    from tailwise.audit import Audit

    sheet = tmp_path / "sheet.csv"
    for verdict in ("yes", "no"):
        sheet.write_text(f"question;verdict;reviewer\n0;{verdict};anna\n")
        done = run("audit", "import", planned[0], sheet, "--json").json
    assert done == {"added": 0, "changed": 1, "known": 0, "empty": 0}
    with Audit.open(planned[0]) as audit:
        assert [one.verdict for one in audit.history()] == ["yes", "retracted", "no"]


def test_groups_from_a_file(planned, tmp_path, run):
    audit, _, complete, _ = planned
    run("audit", "export", audit, "-o", tmp_path / "a.csv", "--reviewer", "anna")
    fill(tmp_path / "a.csv", complete)
    run("audit", "import", audit, tmp_path / "a.csv")
    (tmp_path / "groups.csv").write_text("label,group\nL0,few\nL1,few\nL2,more\n")
    done = run("audit", "estimate", audit, "--groups", tmp_path / "groups.csv", "-o", tmp_path / "out", "--json").json
    assert [one["labels"] for one in done["labels"]] == ["head", "torso", "tail", "few", "more"]
    (tmp_path / "groups.csv").write_text("label,group\nnone,few\n")
    assert "the label 'none'" in run("audit", "estimate", audit, "--groups", tmp_path / "groups.csv").err
    assert "is no file" in run("audit", "estimate", audit, "--groups", "nothing").err


def test_new_records_are_scored_by_the_model_itself(texts, tmp_path, run):
    folder, _ = texts
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    for row in rows:
        row["text"] += " new"
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("audit", "plan", folder / "model", tmp_path / "new.jsonl", "-o", tmp_path / "audit", "--json")
    assert done.code == 0 and done.json["questions"] > 100, done.err
    again = run("audit", "plan", folder / "model", tmp_path / "new.jsonl", "-o", tmp_path / "audit")
    assert again.code == 3 and "never replaced" in again.err
    assert run("audit", "status", tmp_path / "nothing").code == 3
    assert "no question was answered" in run("audit", "estimate", tmp_path / "audit").err
