"""``tailwise learn``: models that learn further."""

import json

import pytest

import tailwise

OLD = [("tax law of land", ["law"]), ("sea fish and fish", ["fish"]), ("fish law of the sea", ["law", "fish"])]
NEW = [("wind power and law", ["energy"]), ("wind power at sea", ["energy"]), ("sea fish and fish", ["fish", "sea"])]


def write(path, records):
    path.write_text("".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in records))
    return str(path)


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "old.jsonl", OLD), write(tmp_path / "new.jsonl", NEW)


def test_learn_says_what_was_learnt_again(run, tmp_path, files):
    old, new = files
    model, other = str(tmp_path / "model"), str(tmp_path / "other")
    train = ("train", old, "-o", model, "-m", "dismec", "--set-features", "min_df=1", "--keep-training-data")
    assert run(*train).code == 0
    before = (tmp_path / "model" / "manifest.json").read_bytes()
    done = run("learn", model, new, "-o", other, "--json")
    assert done.code == 0 and "labels learnt again" in done.err
    facts = done.json
    assert (facts["rows"], facts["new_rows"], facts["known_rows"], facts["new_labels"]) == (5, 2, 1, 2)
    assert (tmp_path / "model" / "manifest.json").read_bytes() == before
    assert tailwise.load(other).label_ids_ == ["fish", "law", "energy", "sea"]
    assert run("learn", model, new, "-o", other).code == 3, "a model is there already"
    assert run("learn", model, new).out.strip() == model
    assert tailwise.load(model).n_samples_ == 5


def test_learn_without_the_rows_it_needs(run, tmp_path, files):
    old, new = files
    model = str(tmp_path / "model")
    assert run("train", old, "-o", model, "-m", "dismec", "--set-features", "min_df=1").code == 0
    refused = run("learn", model, new)
    assert refused.code == 3 and "--keep-training-data" in refused.err and "--training" in refused.err
    assert run("learn", model, new, "--training", old).code == 0
    assert tailwise.load(model).n_samples_ == 5
