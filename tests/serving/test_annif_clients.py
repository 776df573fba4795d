"""The real ``annif-client``, Annif's own ``http`` backend pointed at us, and our backend within Annif."""

import os
import subprocess
from pathlib import Path

import pytest

from tailwise import load

from .conftest import GERMAN, records, uri

ROOT = Path(__file__).parents[2]
ANNIF = ROOT / ".venv-annif" / "bin" / "python"
TEXT = "On fish: cod trawler quota and a bottle"


def test_the_real_annif_client(one_worker, models):
    client_module = pytest.importorskip(
        "annif_client", reason="annif-client (pip install annif-client) is not installed"
    )
    client = client_module.AnnifClient(f"http://{one_worker.url}/v1/")
    assert set(client.api_info) == {"title", "version"}
    assert [one["project_id"] for one in client.projects] == ["other", "subjects"]
    assert client.get_project("subjects")["is_trained"] is True
    expected = [(s.id, s.score) for s in load(models / "subjects").suggest([TEXT], 3)[0]]
    assert [(one["uri"], one["score"]) for one in client.suggest("subjects", TEXT, limit=3)] == expected
    bound = expected[1][1]
    assert len(client.suggest("subjects", TEXT, threshold=bound)) == 2
    batch = client.suggest_batch("subjects", [{"text": TEXT, "document_id": "one"}, {"text": ""}], limit=3)
    assert [(one["uri"], one["score"]) for one in batch[0]["results"]] == expected
    assert batch[0]["document_id"] == "one"
    assert client.detect_language(TEXT, ["en", "de"])["results"][0]["language"] == "en"
    with pytest.raises(ValueError, match="Project 'none' not found"):
        client.suggest("none", TEXT)
    with pytest.raises(Exception, match="403"):
        client.learn("subjects", [{"text": TEXT, "subjects": [{"uri": uri("fish")}]}])


@pytest.fixture
def annif(tmp_path):
    """Annif's command in a folder with a vocabulary; ours where the backend ``tailwise`` is wanted."""
    if not ANNIF.exists():
        pytest.skip("Annif is not installed (make peers)")
    if subprocess.run([ANNIF, "-c", "import annif, numba, typer"], capture_output=True).returncode:
        pytest.skip("Annif's environment lacks what tailwise needs (make peers)")
    lines = "".join(f"{uri(name)},{name},{german}\n" for name, german in GERMAN.items())
    (tmp_path / "vocab.csv").write_text("uri,label_en,label_de\n" + lines)

    def run(projects, *arguments, stdin=""):
        (tmp_path / "projects.cfg").write_text(projects)
        done = subprocess.run(
            [ANNIF, "-m", "tailwise.serving.annif_backend", *arguments],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def above_zero(tagger):
    """What Annif keeps of our suggestions: it has four digits of a score, and drops those of zero."""
    return [(s.id, pytest.approx(s.score, abs=1e-3)) for s in tagger.suggest([TEXT], 10)[0] if s.score > 0]


def suggestions(out):
    """URIs and scores of Annif's lines."""
    lines = [line.split("\t") for line in out.splitlines() if line]
    return [(line[0].strip("<>"), float(line[-1])) for line in lines]


def test_annifs_http_backend_asks_us(annif, one_worker, models):
    projects = (
        "[far]\nname=Far\nlanguage=en\nbackend=http\nvocab=subjects(en)\n"
        f"endpoint=http://{one_worker.url}/v1/projects/subjects/suggest\nlimit=10\n"
    )
    annif(projects, "load-vocab", "subjects", "vocab.csv")
    assert "True" in annif(projects, "show-project", "far")
    expected = above_zero(load(models / "subjects"))
    assert suggestions(annif(projects, "suggest", "far", stdin=TEXT)) == expected


def test_our_backend_within_annif(annif, models, tmp_path):
    given = f"[ours]\nname=Ours\nlanguage=en\nbackend=tailwise\nvocab=subjects(en)\nmodel={models / 'subjects'}\n"
    annif(given, "load-vocab", "subjects", "vocab.csv")
    expected = above_zero(load(models / "subjects"))
    assert suggestions(annif(given, "suggest", "ours", stdin=TEXT)) == expected
    texts, labels = records()
    lines = [
        f"{' '.join(text.split())}\t{' '.join(f'<{one}>' for one in own)}"
        for text, own in zip(texts, labels, strict=True)
    ]
    (tmp_path / "train.tsv").write_text("\n".join(lines))
    own = (
        "[trained]\nname=Trained\nlanguage=en\nbackend=tailwise\nvocab=subjects(en)\nkind=dismec\n"
        "keep_training_data=true\nallow_learn=true\n"
    )
    annif(own, "train", "trained", "train.tsv")
    assert suggestions(annif(own, "suggest", "trained", stdin=TEXT))[0][0] == uri("fish")
    (tmp_path / "more.tsv").write_text("\n".join([f"oolong leaves cup\t<{uri('tea')}>"] * 3))
    annif(own, "learn", "trained", "more.tsv")
    assert suggestions(annif(own, "suggest", "trained", stdin="oolong leaves"))[0][0] == uri("tea")
