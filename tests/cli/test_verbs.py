"""Every verb as a user runs it: results on standard output, messages on standard error."""

import json
import math
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import tailwise
from tailwise.cli import main
from tailwise.cli.app import VERBS
from tailwise.text import Tagger
from tailwise.validation import check_features

TEXT = ["-t", "title,body"]


def test_help_names_every_verb_and_the_exit_codes(run):
    result = run("--help")
    assert result.code == 0
    for verbs in VERBS.values():
        for verb in verbs:
            assert verb in result.out
    assert "130 interrupted" in result.out


def test_each_verb_has_help_with_an_example_and_the_options_of_all(run, each_verb):
    result = run(*each_verb, "--help")
    assert result.code == 0
    assert "Example" in result.out and f"tailwise {' '.join(each_verb)}" in result.out
    assert all(option in result.out for option in ("--json", "--jobs", "--quiet"))


@pytest.mark.parametrize("group", ["audit", "datasets", "vocab"])
def test_a_group_shows_an_example(run, group):
    assert "Example" in run(group, "--help").out


def test_version(run):
    lines = run("--version").out.splitlines()
    assert lines[0] == f"tailwise {tailwise.__version__}"
    assert {"python", "numpy", "numba"} <= {line.split()[0] for line in lines}
    assert any(line.startswith("compiled code in /") for line in lines)
    assert run("info", "--json").json["tailwise"] == tailwise.__version__
    assert "data sets in: /" in run("info").out


def test_help_loads_neither_numpy_nor_scikit_learn():
    code = (
        "import sys; from tailwise.cli import main; main(['train', '--help']);"
        "bad = {'numpy', 'scipy', 'sklearn', 'numba', 'torch', 'matplotlib'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_installed_command_runs():
    done = subprocess.run(
        [sys.executable, "-m", "tailwise.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("tailwise ")


def test_train_says_what_it_did_and_prints_the_folder(run, corpus, tmp_path):
    result = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", *TEXT)
    assert result.code == 0, result.err
    assert result.out == f"{tmp_path / 'm'}\n"
    assert "80 rows" in result.err
    assert "text features" in result.err
    assert "peak memory" in result.err
    assert tailwise.load(tmp_path / "m").label_ids_ == ["fish", "steel", "tax", "wine"]


def test_train_from_csv_with_a_separator_equals_training_from_json(run, corpus, model, tmp_path):
    options = ["-t", "title,body", "-l", "tags", "--label-separator", "|", "-m", "centroid", "--json", "-q"]
    result = run("train", corpus / "train.csv", "-o", tmp_path / "m", *options)
    assert result.code == 0, result.err
    assert result.json["rows"] == 80
    assert result.err == ""
    texts = ["cod quota"]
    assert tailwise.load(tmp_path / "m").suggest(texts)[0][0].score == tailwise.load(model).suggest(texts)[0][0].score


def test_auto_says_what_it_chose_and_why(run, corpus, tmp_path):
    for effort, chosen in (("quick", "chose DiSMEC("), ("normal", "chose Stacked(")):
        how = ("--effort", effort, "--overwrite")
        result = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", *TEXT, *how)
        assert result.code == 0, result.err
        assert chosen in result.err and f"for effort {effort}" in result.err
        assert "4 labels" in result.err and "GB of memory" in result.err
    refused = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", *TEXT, "--effort", "fast")
    assert refused.code != 0 and "quick" in refused.err


def test_tail_is_kept_in_the_model_and_reported_from_its_start(run, corpus, tmp_path):
    result = run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", "--tail", "0.5", *TEXT)
    assert result.code == 0, result.err
    assert tailwise.load(tmp_path / "m").model_.tail == 0.5
    result = run("report", tmp_path / "m", corpus / "test.jsonl", "-o", tmp_path / "r.html", *TEXT)
    assert result.code == 0, result.err
    assert "PropensityReranker(base=Centroid(), tail=0.5)" in (tmp_path / "r.html").read_text()
    assert run("explain", tmp_path / "m", "fish", "cod", "--json").json["score"] > 0


def test_suggest_from_argument_and_standard_input(run, model):
    first = run("suggest", model, "a trawler and its catch at sea", "-k", "2")
    assert first.code == 0
    assert first.out.splitlines()[0].split() == ["label", "id", "score", "rarity"]
    assert first.out.splitlines()[1].startswith("The fish")
    second = run("suggest", model, "-k", "2", "--json", stdin="a trawler and its catch at sea\n")
    assert second.json[0]["name"] == "The fish"
    assert second.json[0]["id"] == "fish"
    assert second.json[0]["rarity"] in ("head", "torso", "tail")


@pytest.mark.parametrize(("columns", "drawn"), [("120", True), ("20", False)])
def test_a_table_is_drawn_in_a_terminal_that_is_wide_enough(capsys, model, monkeypatch, columns, drawn):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["suggest", str(model), "a trawler at sea", "-k", "2"]) == 0
    out = capsys.readouterr().out
    assert ("─────" in out) == drawn
    assert "The fish" in out


def test_suggest_tells_when_it_knows_no_word(run, model):
    assert "no word of this text was seen" in run("suggest", model, "zzz qqq").err


def test_predict_one_line_a_row(run, corpus, model, tmp_path):
    plain = run("predict", model, corpus / "test.jsonl", "-k", "2", *TEXT)
    assert plain.code == 0, plain.err
    assert len(plain.out.splitlines()) == 24
    assert plain.out.splitlines()[1].split()[0] == "fish"
    written = run("predict", model, corpus / "test.jsonl", "--json", "-o", tmp_path / "p.jsonl", *TEXT)
    assert written.out == ""
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [line["row"] for line in lines] == list(range(24))
    assert lines[1]["labels"][0]["name"] == "The fish"


def test_predict_writes_what_the_suffix_says(run, corpus, model, tmp_path):
    import csv

    import pyarrow.parquet as parquet
    from scipy import sparse

    def written(name, *more):
        result = run("predict", model, corpus / "test.jsonl", "-k", "2", *TEXT, "-o", tmp_path / name, *more)
        assert result.code == 0 and result.out == "", result.err
        return tmp_path / name

    lines = [json.loads(line) for line in written("p.jsonl").read_text().splitlines()]
    expected = [
        (line["row"], rank, label["id"], label["name"], label["score"])
        for line in lines
        for rank, label in enumerate(line["labels"], start=1)
    ]
    for name, delimiter in (("p.csv", ","), ("p.tsv", "\t")):
        with written(name).open(newline="") as file:
            header, *rows = csv.reader(file, delimiter=delimiter)
        assert header == ["row", "rank", "id", "name", "score"]
        assert [(int(r), int(n), i, name) for r, n, i, name, _ in rows] == [row[:4] for row in expected]
        assert [float(row[4]) for row in rows] == pytest.approx([row[4] for row in expected], rel=1e-5)
    table = parquet.read_table(written("p.parquet"))
    assert table["id"].to_pylist() == [row[2] for row in expected] and table.column_names == header
    matrix = sparse.load_npz(written("p.npz"))
    ids = np.load(tmp_path / "p.npz")["label_ids"].tolist()
    assert matrix.shape == (24, 4)
    assert {(row, ids[label]) for row, label in zip(*matrix.nonzero(), strict=True)} == {
        (row[0], row[2]) for row in expected if row[4]
    }
    refused = run("predict", model, corpus / "test.jsonl", *TEXT, "--json", "-o", tmp_path / "q.csv")
    assert refused.code == 3 and "--json writes JSON Lines" in refused.err and not (tmp_path / "q.csv").exists()


def test_predict_copies_the_ids_of_rows(run, model, tmp_path):
    import csv

    import pyarrow.parquet as parquet

    (tmp_path / "new.csv").write_text("ISBN,title,body\n978-3,sea,cod\n,mill,iron\n")
    command = ["predict", model, tmp_path / "new.csv", "-k", "1", "--id-column", "isbn", *TEXT]
    assert [line.split("\t")[0] for line in run(*command).out.splitlines()] == ["978-3", ""]
    assert [json.loads(line)["row_id"] for line in run(*command, "--json").out.splitlines()] == ["978-3", ""]
    for name in ("p.csv", "p.parquet", "p.npz"):
        assert run(*command, "-o", tmp_path / name).code == 0
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["row", "row_id", "rank", "id", "name", "score"]
    assert rows[1][:4] == ["0", "978-3", "1", "fish"]
    assert parquet.read_table(tmp_path / "p.parquet")["row_id"].to_pylist() == ["978-3", ""]
    assert np.load(tmp_path / "p.npz")["row_ids"].tolist() == ["978-3", ""]
    scored = run("evaluate", "--predictions", tmp_path / "p.csv", tmp_path / "new.csv", "-l", "title", *TEXT)
    assert scored.code == 3 and "none is the same" in scored.err
    wrong = run(*command[:-4], "--id-column", "doi", *TEXT)
    assert wrong.code == 3 and "line 1: found the columns ISBN, title, body; expected the id column 'doi'" in wrong.err
    (tmp_path / "rows.txt").write_text("1 2 2\n0 0:1\n")
    assert "numeric rows" in run("predict", model, tmp_path / "rows.txt", "--id-column", "isbn").err


def test_info_of_a_folder_of_data(run, corpus, tmp_path):
    for name in ("train.jsonl", "test.jsonl"):
        (tmp_path / name).write_text((corpus / name).read_text())
    facts = run("info", tmp_path, "--json", *TEXT).json
    assert (facts["train rows"], facts["test rows"]) == (80, 24)


def test_public_data_sets(run):
    from tailwise.data.public import PUBLIC

    result = run("datasets", "public")
    assert result.code == 0 and "EURLex-4K" in result.out and "unpack the archive" in result.out
    facts = {one["name"]: one for one in run("datasets", "public", "--json").json}
    assert (facts["Amazon-670K"]["A"], facts["Amazon-670K"]["B"]) == (0.6, 2.6)
    assert [one.labels for one in PUBLIC] == sorted(one.labels for one in PUBLIC)


@pytest.fixture(scope="module")
def rows_model(tmp_path_factory):
    """A model of rows with 200 features and 20 labels."""
    folder = tmp_path_factory.mktemp("rows")
    data = tailwise.make_longtail(300, 200, 20, test_fraction=0.0, random_state=0)
    Tagger(tailwise.Centroid()).fit(data.X_train, data.Y_train).save(folder / "model")
    return folder / "model"


@pytest.mark.parametrize(("where", "kind"), [("file", "xmc"), ("standard input", "libsvm")])
def test_predict_streams_rows(run, rows_model, tmp_path, monkeypatch, where, kind):
    """Memory does not grow with the rows, and what is written is what the model gives them."""
    line = b"0 " + b" ".join(b"%d:0.5" % i for i in range(1, 200, 2)) + b"\n"
    options = ["--format", kind, *(["--feature-base", "0"] if kind == "libsvm" else [])]
    monkeypatch.setattr("tailwise.data.rows._BLOCK_BYTES", 1 << 17)
    peaks = {2_000: math.inf, 8_000: math.inf}
    for n in (2_000, 8_000) * 3:  # some may compile
        content = (b"%d 200 20\n" % n if kind == "xmc" else b"") + line * n
        (tmp_path / "new").write_bytes(content)
        given = {"stdin": content} if where == "standard input" else {}
        source = tmp_path / "new" if where == "file" else "-"
        del content
        tracemalloc.start()
        result = run("predict", rows_model, source, "-k", "1", "-o", tmp_path / "p.tsv", "--jobs", 1, *options, **given)
        peaks[n] = min(peaks[n], tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert result.code == 0, result.err
    assert len((tmp_path / "p.tsv").read_text().splitlines()) == 8_001
    assert peaks[8_000] < 1.2 * peaks[2_000]
    X = check_features(np.where(np.arange(200) % 2, 0.5, 0.0)[None])
    label = tailwise.load(rows_model).suggest(X, 1)[0][0]
    row = (tmp_path / "p.tsv").read_text().splitlines()[-1].split("\t")
    assert row[:3] == ["7999", "1", label.id]


def test_predict_needs_no_labels(run, model, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"title": "sea", "body": "cod quota"}\n')
    result = run("predict", model, tmp_path / "new.jsonl", *TEXT)
    assert result.code == 0, result.err
    assert result.out.startswith("fish ")


def test_evaluate_prints_metrics_with_intervals(run, corpus, model):
    result = run("evaluate", model, corpus / "test.jsonl", "-k", "3", *TEXT)
    assert result.code == 0, result.err
    assert "psp@3" in result.out
    assert "rows/s" in result.err
    asked = run("evaluate", model, corpus / "test.jsonl", "--metrics", "p@1,f1@2", "--json", *TEXT)
    assert list(asked.json["metrics"]) == ["p@1", "f1@2"]
    assert asked.json["metrics"]["p@1"]["low"] <= asked.json["metrics"]["p@1"]["value"] == 100.0


def test_compare_shows_paired_differences(run, corpus, model, tmp_path):
    other = tmp_path / "popular"
    assert run("train", corpus / "train.jsonl", "-o", other, "-m", "popularity", *TEXT).code == 0
    result = run("compare", model, other, corpus / "test.jsonl", "--metrics", "p@1", *TEXT)
    assert result.code == 0, result.err
    assert "popular − centroid" in result.out
    assert result.out.splitlines()[2].endswith("▼")
    assert "popular against centroid: worse on p@1" in result.out
    bare = run("compare", model, other, corpus / "test.jsonl", "--metrics", "p@1", "--confidence", "0", *TEXT)
    assert "▼" not in bare.out
    alone = run("compare", model, corpus / "test.jsonl", "--metrics", "p@1", *TEXT)
    assert alone.out.splitlines()[1].split() == ["metric", "centroid"]
    found = run("compare", model, other, corpus / "test.jsonl", "--metrics", "p@1", "--json", *TEXT).json
    assert found["differences"]["popular"]["p@1"]["value"] < 0


def test_a_model_without_linear_weights_is_judged_like_any_other(run, corpus, model, tmp_path):
    forest = tmp_path / "forest"
    options = ["-m", "pfastrexml", "--set", "n_trees=2", *TEXT]
    assert run("train", corpus / "train.jsonl", "-o", forest, *options).code == 0
    for verb in (["evaluate", forest], ["compare", model, forest], ["report", forest, "-o", tmp_path / "forest.html"]):
        result = run(*verb, corpus / "test.jsonl", *TEXT)
        assert result.code == 0, result.err
    assert "None of these models is linear" in (tmp_path / "forest.html").read_text()
    both = run("report", model, forest, corpus / "test.jsonl", "-o", tmp_path / "both.html", *TEXT)
    assert both.code == 0, both.err


def test_report_writes_one_file(run, corpus, model, tmp_path):
    result = run("report", model, corpus / "test.jsonl", "-o", tmp_path / "r.html", *TEXT)
    assert result.code == 0, result.err
    html = (tmp_path / "r.html").read_text()
    assert "The fish" in html
    assert "<svg" in html


def test_explain_names_the_words(run, model):
    result = run("explain", model, "The fish", "cod and quota, iron and coal")
    assert result.code == 0, result.err
    assert "cod" in result.out
    found = run("explain", model, "fish", "--json", stdin="cod quota").json
    assert (found["id"], found["name"]) == ("fish", "The fish")
    assert {part["name"] for part in found["parts"]} >= {"cod", "quota"}


def test_info_of_a_model_a_file_and_a_kind_of_model(run, corpus, model):
    assert "labels: 4" in run("info", model).out
    assert run("info", model, "--json").json["kind"] == "Tagger"
    assert "80" in run("info", corpus / "train.jsonl", *TEXT).out
    assert run("info", "centroid").out.splitlines()[2].split()[:2] == ["n_jobs", "None"]
    loss = run("info", "dismec", "--json").json["parameters"]["loss"]
    assert loss == {"default": "'squared_hinge'", "takes": "one of 'squared_hinge', 'hinge', 'logistic'"}


def test_convert_there_and_back(run, corpus, tmp_path):
    assert run("convert", corpus / "train.jsonl", tmp_path / "a.tsv", *TEXT).code == 0
    assert run("convert", tmp_path / "a.tsv", tmp_path / "b.parquet").code == 0
    assert run("convert", tmp_path / "b.parquet", tmp_path / "c.jsonl").code == 0
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert len(rows) == 80
    assert rows[0]["labels"] == ["tax"]


def test_datasets_list(run):
    assert "eurlex-4k" in run("datasets", "list").out
    assert run("datasets", "list", "--json").json[0]["name"] == "eurlex-4k"


def test_completion_is_offered(run):
    assert "--install-completion" in run("--help").out


def test_the_shell_completes_verbs_and_models(run, monkeypatch):
    monkeypatch.setenv("_TAILWISE_COMPLETE", "complete_bash")
    for words, position, expected in (("tailwise ev", 1, "evaluate"), ("tailwise train --model cen", 3, "centroid")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(position))
        assert expected in run().out.split()


@pytest.mark.parametrize("verb", ["evaluate", "compare", "report"])
def test_rows_that_were_trained_on_are_told(run, corpus, model, tmp_path, verb):
    rows = [json.loads(line) for line in (corpus / "train.jsonl").read_text().splitlines()[:4]]
    rows += [row | {"title": f"new {row['title']}"} for row in rows[:1]]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rest = ["-o", tmp_path / "r.html"] if verb == "report" else []
    result = run(verb, model, tmp_path / "some.jsonl", *rest, *TEXT)
    assert result.code == 0, result.err
    assert "was trained on 4 of these 5 rows (80.0 %)" in result.err
    (tmp_path / "new.jsonl").write_text(json.dumps(rows[-1]) + "\n")
    assert "was trained on" not in run(verb, model, tmp_path / "new.jsonl", *rest, *TEXT).err
