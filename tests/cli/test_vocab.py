"""Vocabularies and rules at the command line: what labels are called, which of them are suggested, and why."""

import json
from pathlib import Path

import pytest

from tailwise.cli.options import read_vocab

TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix e: <http://example.org/> .
""" + "".join(
    f'e:{label} a skos:Concept ; skos:prefLabel "The {label}"@en, "Das {label}"@de ; skos:inScheme e:goods .\n'
    for label in ("fish", "steel", "wine")
)
TURTLE += """e:tax a skos:Concept ; skos:prefLabel "The tax"@en ; skos:altLabel "levy"@en .
e:whale a skos:Concept ; skos:prefLabel "The whale"@en .
e:goods a skos:ConceptScheme ; skos:prefLabel "Goods"@en .
"""
E = "http://example.org/"


@pytest.fixture(scope="module")
def data(corpus, tmp_path_factory):
    """A folder with the corpus in Annif's format, texts of it in a folder, and a vocabulary."""
    folder = tmp_path_factory.mktemp("annif")
    rows = [json.loads(line) for line in (corpus / "train.jsonl").read_text().splitlines()]
    lines = [f"{r['title']} {r['body']}\t{' '.join(f'<{E}{label}>' for label in r['labels'])}\n" for r in rows]
    (folder / "corpus.tsv").write_text("".join(lines))
    (folder / "vocab.ttl").write_text(TURTLE)
    (folder / "texts").mkdir()
    for i, row in enumerate(rows[:30]):
        (folder / "texts" / f"{i:02}.txt").write_text(f"{row['title']} {row['body']}")
        (folder / "texts" / f"{i:02}.key").write_text("".join(f"The {label}\n" for label in row["labels"]))
    return folder


@pytest.fixture(scope="module")
def tagger(data, tmp_path_factory):
    from tailwise.cli import main

    path = tmp_path_factory.mktemp("models") / "with-rules"
    arguments = ["train", data / "corpus.tsv", "-o", path, "-m", "centroid", "--vocab", data / "vocab.ttl", "-q"]
    assert main([*map(str, arguments), "--exclude", "name:*steel", "--exclude", "rows<2"]) == 0
    return path


def names(run, *arguments):
    return [one["name"] for one in run("suggest", *arguments, "--json").json]


def test_names_come_from_the_vocabulary_in_any_of_its_languages(run, tagger):
    assert names(run, tagger, "cod and trawler", "-k", 1) == ["The fish"]
    assert names(run, tagger, "cod and trawler", "-k", 1, "--language", "de") == ["Das fish"]
    assert sorted(names(run, tagger, "cod", "--language", "de")) == ["Das fish", "Das wine", "The tax"]
    done = run("suggest", tagger, "cod", "--language", "fr")
    assert done.code == 3 and "none of the vocabulary's languages: en, de" in done.err


def test_rules_of_the_model_and_of_a_call(run, tagger, tmp_path):
    assert "The steel" not in names(run, tagger, "iron furnace coal", "-k", 4)
    assert len(names(run, tagger, "iron furnace coal", "-k", 3)) == 3
    assert "The tax" not in names(run, tagger, "income duty", "--exclude", "name:levy")
    assert names(run, tagger, "income duty", "--include", "scheme:Goods", "--exclude", f"{E}wine") == ["The fish"]
    (tmp_path / "rules.txt").write_text(f"id:{E}wine\nname:*tax\n")
    assert names(run, tagger, "grape", "--exclude", f"@{tmp_path / 'rules.txt'}") == ["The fish"]
    done = run("suggest", tagger, "grape", "--exclude", "colour:red")
    assert done.code == 3 and "'colour:red' names no label and no concept" in done.err
    done = run("suggest", tagger, "grape", "--include", "name:x*")
    assert done.code == 3 and "leaves none of the 4 labels" in done.err


def test_predict_and_evaluate_keep_to_the_rules(run, tagger, data):
    done = run("predict", tagger, data / "texts", "-k", 3, "--language", "de", "--exclude", "name:*wine", "--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert len(found) == 30
    assert {label["name"] for row in found for label in row["labels"]} == {"Das fish", "The tax"}
    everything = run("evaluate", tagger, data / "corpus.tsv", "--metrics", "recall@4", "--json").json
    assert everything["metrics"]["recall@4"]["value"] < 90, "steel is never suggested"


def test_info_explains_vocabulary_and_rules(run, tagger, data):
    facts = run("info", tagger, "--json").json
    assert facts["vocabulary"] == "5 concepts named in en, de; 1 synonyms; 1 schemes"
    assert facts["exclude labels"] == "name:*steel (1 labels); rows<2 (0 labels)"
    assert facts["labels that may be suggested"] == 3
    assert run("info", data / "texts", "--vocab", data / "vocab.ttl", "--json").json["train rows"] == 30


def test_explain_knows_synonyms(run, tagger):
    assert run("explain", tagger, "levy", "income duty", "--json").json["id"] == f"{E}tax"


def test_a_folder_of_texts_is_data_everywhere(run, data, tmp_path):
    how = ["--vocab", data / "vocab.ttl"]
    done = run("train", data / "texts", "-o", tmp_path / "m", "-m", "centroid", *how)
    assert done.code == 0, done.err
    assert run("evaluate", tmp_path / "m", data / "texts", *how, "--json").json["rows"] == 30
    assert run("split", data / "texts", "-o", tmp_path / "parts", *how).code == 0
    assert run("convert", data / "texts", tmp_path / "all.jsonl", *how).code == 0
    first = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])
    assert all(label.startswith(E) for label in first["labels"])
    assert len(run("predict", tmp_path / "m", data / "texts", "--id-column", "document_id").out.splitlines()) == 30
    done = run("train", data / "texts", "-o", tmp_path / "n", "-m", "centroid", "--vocab", data / "texts" / "00.key")
    assert done.code == 3 and "00.key does not end in one of" in done.err


def test_names_in_order_and_the_old_spelling_are_taken(run, corpus, tmp_path):
    read_vocab.cache_clear()  # which tells of a file once a command
    done = run("info", corpus / "test.jsonl", "-t", "title", "--label-names", corpus / "names.json", "--json")
    assert done.code == 0 and "4 concepts" in done.err
    (tmp_path / "rows.txt").write_text("1 2 2\n0 0:1.0\n")
    (tmp_path / "names.txt").write_text("first\nsecond\n")
    assert run("info", tmp_path / "rows.txt", "--vocab", tmp_path / "names.txt").code == 0
    (tmp_path / "names.txt").write_text("first\n")
    assert "2 labels" in run("info", tmp_path / "rows.txt", "--vocab", tmp_path / "names.txt").err


def test_vocab_info_convert_and_diff(run, data, tagger, tmp_path):
    facts = run("vocab", "info", data / "vocab.ttl", "--json").json
    assert facts["concepts"] == 5 and facts["languages"]["de"] == {"names": 3, "synonyms": 0}
    assert facts["schemes"] == {"Goods": 3}
    assert run("vocab", "info", tagger).out == run("vocab", "info", data / "vocab.ttl").out
    done = run("vocab", "convert", data / "vocab.ttl", tmp_path / "v.csv")
    assert done.out.strip() == str(tmp_path / "v.csv") and "no place for 1 synonyms" in done.err
    text = (tmp_path / "v.csv").read_text()
    (tmp_path / "v.csv").write_text(text.replace("The wine", "Wines") + f"{E}oil,Oil,,\n")
    found = run("vocab", "diff", data / "vocab.ttl", tmp_path / "v.csv", "--json").json
    assert found["added"] == [f"{E}oil"] and found["renamed"][0]["new"] == "Wines" and found["kept"] == 5
    shown = run("vocab", "diff", tagger, tmp_path / "v.csv").out
    assert "The wine → Wines (en)" in shown and f"Oil ({E}oil)" in shown
    (tmp_path / "w.csv").write_text("uri,label_en\n" + "".join(f"u:{i},{i}\n" for i in range(4)))
    shown = run("vocab", "diff", tagger, tmp_path / "w.csv", "-n", 1).out
    assert "removed: 5" in shown and "and 4 more; -n shows more" in shown and "added: 4\n  0 (u:0)\n" in shown
    done = run("vocab", "convert", data / "vocab.ttl", tmp_path / "v.rdf")
    assert done.code == 3 and ".ttl, .csv" in done.err


def test_a_model_without_a_vocabulary_says_so(run, corpus, tmp_path):
    run("train", corpus / "train.jsonl", "-o", tmp_path / "m", "-m", "centroid", "-t", "title")
    for verb in (["vocab", "info", tmp_path / "m"], ["suggest", tmp_path / "m", "cod", "--language", "de"]):
        done = run(*verb)
        assert done.code == 3 and "vocabulary" in done.err


def test_propensity_from_the_hierarchy_needs_one(run, data, tmp_path):
    how = ["train", data / "corpus.tsv", "-o", tmp_path / "m", "--propensity", "hierarchy"]
    assert "name it with --vocab" in run(*how).err
    assert "the vocabulary has no hierarchy" in run(*how, "--vocab", data / "vocab.ttl").err
    assert "needs --training" in run("evaluate", tmp_path, data / "corpus.tsv", "--propensity", "hierarchy").err


def annif_files(folder):
    """What ``annif eval`` judged, as its corpus, its vocabulary and its suggestions, and what it printed."""
    golden = json.loads((Path(__file__).parents[1] / "metrics" / "annif_golden.json").read_text())
    uris = [f"{E}{label}" for label in range(golden["n_labels"])]
    (folder / "vocab.csv").write_text("uri,label_en\n" + "".join(f"{uri},label {uri[-2:]}\n" for uri in uris))
    texts = [f"text {i}\t{' '.join(f'<{uris[label]}>' for label in row)}\n" for i, row in enumerate(golden["true"])]
    (folder / "test.tsv").write_text("".join(texts))
    results = [[{"uri": uris[label], "score": score} for label, score in row] for row in golden["suggested"]]
    (folder / "found.jsonl").write_text("".join(json.dumps({"results": row}) + "\n" for row in results))
    (folder / "texts").mkdir()
    for i, (row, found) in enumerate(zip(golden["true"], results, strict=True)):
        (folder / "texts" / f"{i:02}.txt").write_text(f"text {i}")
        (folder / "texts" / f"{i:02}.tsv").write_text("".join(f"<{uris[label]}>\n" for label in row))
        lines = [f"<{one['uri']}>\tlabel\t{one['score']:.4f}\n" for one in found]
        (folder / "texts" / f"{i:02}.annif").write_text("".join(lines))
    return golden["metrics"]


def test_suggestions_of_annif_are_judged_as_annif_judges_them(run, tmp_path):
    printed = annif_files(tmp_path)
    how = ["--vocab", tmp_path / "vocab.csv", "--metrics", "annif"]
    for predictions, rows in ((tmp_path / "found.jsonl", tmp_path / "test.tsv"), (tmp_path / "texts",) * 2):
        done = run("evaluate", "--predictions", predictions, rows, *how, "--json")
        assert done.code == 0, done.err
        for name, found in done.json["metrics"].items():
            theirs = printed[name.translate(str.maketrans(" ", "_", "()"))]
            assert found["value"] == pytest.approx(theirs, abs=1e-6), name
    shown = run("evaluate", "--predictions", tmp_path / "found.jsonl", tmp_path / "test.tsv", *how).out
    assert f"F1@5                           {printed['F1@5']:.4f} [" in shown
    usual = run("evaluate", "--predictions", tmp_path / "texts", tmp_path / "texts", "--metrics", "p@1", "--json").json
    assert usual["metrics"]["p@1"]["value"] == pytest.approx(100 * printed["Precision@1"])


def test_models_are_judged_by_annifs_metrics_too(run, tagger, data):
    found = run("evaluate", tagger, data / "corpus.tsv", "--metrics", "annif", "-k", 1, "--json").json["metrics"]
    assert found["Documents evaluated"]["value"] == 80
    assert found["True positives"]["value"] + found["False positives"]["value"] == 80


@pytest.mark.parametrize("verb", ["info", "convert", "diff"])
def test_each_part_has_help_with_an_example_and_json(run, verb):
    result = run("vocab", verb, "--help")
    assert result.code == 0 and "Example" in result.out and "--json" in result.out
