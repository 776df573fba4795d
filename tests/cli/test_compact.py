"""``tailwise compact``: a model in fewer bytes."""


def test_compact_writes_a_smaller_model_that_suggests_the_same(run, corpus, tmp_path):
    data, model, small = corpus / "train.jsonl", tmp_path / "model", tmp_path / "small"
    assert run("train", data, "-o", model, "-m", "dismec", "-t", "title,body", "--keep-training-data").code == 0
    done = run("compact", model, "-o", small, "--json")
    assert done.code == 0 and done.json["bytes"] < done.json["bytes_before"]
    text = "the trawler and its quota of cod"
    first = [run("suggest", folder, text, "--json").json for folder in (model, small)]
    assert first[0][0]["id"] == first[1][0]["id"] == "fish"
    assert abs(first[0][0]["score"] - first[1][0]["score"]) < 0.02
    again = run("compact", model, "-o", small)
    assert again.code == 3 and "--overwrite" in again.err
    assert run("compact", model, "-o", small, "--overwrite").out.startswith(f"wrote {small}: ")
    learn = run("learn", small, data, "--training", data)
    assert learn.code == 3 and "was made compact" in learn.err


def test_compact_says_of_a_tree_that_nothing_can_be_smaller(run, corpus, tmp_path):
    data, model = corpus / "train.jsonl", tmp_path / "model"
    assert run("train", data, "-o", model, "-m", "parabel", "-t", "title,body").code == 0
    wrong = run("compact", model, "-o", tmp_path / "small")
    assert wrong.code == 3 and "label trees are compact already" in wrong.err
    assert not (tmp_path / "small").exists()
