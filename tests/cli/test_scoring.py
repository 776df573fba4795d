"""Scoring other programs' output with the command: evaluate --predictions, and compare."""

import json

import pytest

import tailwise

TEXT = ["-t", "title,body"]


@pytest.fixture(scope="module")
def predicted(corpus, model, tmp_path_factory):
    """What the model itself predicts, written in each of the command's formats."""
    from tailwise.cli import main

    folder = tmp_path_factory.mktemp("predicted")
    for suffix in ("csv", "tsv", "jsonl", "npz", "txt"):
        arguments = ["predict", model, corpus / "test.jsonl", "-o", folder / f"p.{suffix}", "-q", *TEXT]
        assert main([str(argument) for argument in arguments]) == 0
    return folder


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "npz", "txt"])
def test_a_model_and_its_output_score_the_same(run, corpus, model, predicted, suffix):
    metrics = ["--metrics", "p@1,psp@3,recall@5:torso,coverage@5", "--json", *TEXT]
    expected = run("evaluate", model, corpus / "test.jsonl", *metrics).json["metrics"]
    file = predicted / f"p.{suffix}"
    training = ["--training", corpus / "train.jsonl"]
    found = run("evaluate", "--predictions", file, corpus / "test.jsonl", *training, *metrics)
    assert found.code == 0, found.err
    assert found.json["metrics"] == expected
    compared = run("compare", model, file, corpus / "test.jsonl", *metrics)
    assert compared.code == 0, compared.err
    assert compared.json["differences"][file.name]["psp@3"]["value"] == 0


def test_without_training_rows_what_needs_them_is_left_out(run, corpus, predicted):
    result = run("evaluate", "--predictions", predicted / "p.jsonl", corpus / "test.jsonl", *TEXT)
    assert result.code == 0, result.err
    assert "without --training DATA" in result.err
    assert "p@5" in result.out and "psp@" not in result.out and "tail" not in result.out


def test_a_folder_has_its_own_training_rows(run, corpus, predicted):
    (corpus.parent / "whole").mkdir(exist_ok=True)
    for name in ("train.jsonl", "test.jsonl"):
        (corpus.parent / "whole" / name).write_text((corpus / name).read_text())
    result = run("evaluate", "--predictions", predicted / "p.jsonl", corpus.parent / "whole", *TEXT)
    assert result.code == 0, result.err
    assert "psp@5" in result.out


def test_refusals(run, corpus, model, predicted, tmp_path):
    (tmp_path / "short.txt").write_text("fish 0.5\n")
    wrong = run("evaluate", "--predictions", tmp_path / "short.txt", corpus / "test.jsonl", *TEXT)
    assert wrong.code == 3 and "short.txt: found 1 rows; expected 24" in wrong.err
    (tmp_path / "numbers.txt").write_text("7:0.5\n" * 24)
    wrong = run("evaluate", "--predictions", tmp_path / "numbers.txt", corpus / "test.jsonl", *TEXT)
    assert wrong.code == 3 and "none is the same" in wrong.err
    assert run("evaluate", model).code == 3
    both = run("evaluate", model, corpus / "test.jsonl", "--predictions", predicted / "p.csv")
    assert both.code == 3 and "pass MODEL and DATA, or --predictions FILE and DATA" in both.err


def test_a_propensity_changes_what_it_weighs_and_nothing_else(run, corpus, model, tmp_path):
    base = ["evaluate", model, corpus / "test.jsonl", "--metrics", "p@1,psp@1", "--json", *TEXT]
    usual = run(*base).json["metrics"]
    for spec in ("jain:3,9", "amazon"):
        found = run(*base, "--propensity", spec).json["metrics"]
        assert found["p@1"] == usual["p@1"] and found["psp@1"] != usual["psp@1"]
    assert run(*base, "--propensity", "jain:0.55,1.5").json["metrics"] == usual
    (tmp_path / "inv.txt").write_text("1\n1\n1\n1\n")
    flat = run(*base, "--propensity", tmp_path / "inv.txt").json["metrics"]
    assert flat["psp@1"]["value"] == flat["p@1"]["value"]
    wrong = run(*base, "--propensity", "amazn")
    assert wrong.code == 3 and "--propensity amazn is no propensity and no file" in wrong.err
    (tmp_path / "inv.txt").write_text("1\n1\n")
    assert "2 entries" in run(*base, "--propensity", tmp_path / "inv.txt").err


def test_training_keeps_the_propensity(run, corpus, tmp_path):
    options = ["-m", "centroid", "--tail", "0.5", "--propensity", "jain:0.7,2", *TEXT]
    assert run("train", corpus / "train.jsonl", "-o", tmp_path / "m", *options).code == 0
    tagger = tailwise.load(tmp_path / "m")
    assert (tagger.propensity_.a, tagger.propensity_.b) == (0.7, 2.0)
    assert tagger.model_.propensity.a == 0.7
    report = run(
        "report", tmp_path / "m", corpus / "test.jsonl", "-o", tmp_path / "r.html", "--propensity", "amazon", *TEXT
    )
    assert report.code == 0, report.err
    assert json.loads(run("info", tmp_path / "m", "--json").out)["labels"] == 4


def test_a_report_has_a_file_beside_a_model_with_the_intervals_of_evaluate(run, corpus, model, predicted, tmp_path):
    file, page = predicted / "p.csv", tmp_path / "r.html"
    result = run("report", model, file, corpus / "test.jsonl", "-o", page, *TEXT)
    assert result.code == 0, result.err
    html = page.read_text(encoding="utf-8")
    found = run("evaluate", model, corpus / "test.jsonl", "--json", *TEXT).json["metrics"]
    for metric in ("p@1", "psp@5", "recall@5:torso"):
        cell = "<td>{value:.2f} <small>[{low:.2f}, {high:.2f}]</small></td>".format(**found[metric])
        assert html.count(cell) >= 2, f"{metric} of the model and of its own predictions in a file"
    assert "another program's predictions" in html or "another program&#x27;s predictions" in html
    assert "Not of p.csv" in html and "p.csv: its scores are another program" in html


def test_a_report_keeps_its_figures_beside_models_alone(run, corpus, model, predicted, tmp_path):
    mine = tmp_path / "mine"
    tailwise.load(model).save(mine)
    base = ["report", mine, predicted / "p.csv", corpus / "test.jsonl", "-o", tmp_path / "r.html", *TEXT]
    assert run(*base).code == 0
    assert not (mine / "evaluation.json").exists()
    result = run(*base, "--keep")
    assert result.code == 0, result.err
    assert "evaluation.json" in result.err
    found = json.loads((mine / "evaluation.json").read_text(encoding="utf-8"))
    said = run("evaluate", mine, corpus / "test.jsonl", "--json", *TEXT).json["metrics"]
    assert found["metrics"]["metrics"]["p@5"] == said["p@5"]
    assert not list(predicted.glob("**/evaluation.json"))


def test_a_report_of_files_alone(run, corpus, predicted, tmp_path):
    base = ["report", predicted / "p.jsonl", corpus / "test.jsonl", "-o", tmp_path / "r.html", *TEXT]
    bare = run(*base)
    assert bare.code == 0, bare.err
    assert "without --training DATA" in bare.err
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Of all labels" in html and "training rows" not in html.split('id="glossary"')[0]
    assert 'id="trade-off"' not in html and "<td>20</td><td>–</td>" in html.replace(' class="text"', "")
    told = run(*base, "--training", corpus / "train.jsonl")
    assert told.code == 0, told.err
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert (
        'id="frequencies"' in html
        and 'id="norms"' not in html
        and "<td>psp@5</td>" in html.replace(' class="text"', "")
    )
