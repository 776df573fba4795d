"""Without any extra the library trains, predicts and evaluates, and the command runs; extras are asked for by name."""

import json
import subprocess
import sys

import pytest

REFUSED = ("matplotlib", "pyarrow", "pypi_simple", "requests", "torch", "safetensors", "faiss", "rdflib", "sqlalchemy")
HOOK = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {REFUSED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
"""
LIBRARY = """
import tailwise
data = tailwise.make_longtail(200, 100, 20, random_state=0)
model = tailwise.DiSMEC().fit(data.X_train, data.Y_train)
model.save("m")
top = tailwise.load("m").predict_topk(data.X_test, 3)
assert (top.labels == model.predict_topk(data.X_test, 3).labels).all()
print(tailwise.evaluate(data.Y_test, top, "p@1"))
"""
COMMAND = "from tailwise.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Run Python where no extra can be imported, in a folder with a few texts."""
    folder = tmp_path_factory.mktemp("bare")
    rows = [{"text": f"{word} {i}", "labels": [word]} for i in range(8) for word in ("fish", "steel")]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(code, *arguments):
        return subprocess.run(
            [sys.executable, "-c", HOOK + code, *arguments], cwd=folder, capture_output=True, text=True, timeout=250
        )

    return run


def test_the_library(bare):
    done = bare(LIBRARY)
    assert done.returncode == 0, done.stderr
    assert "p@1" in done.stdout


def test_the_command(bare):
    for arguments, word in (
        (["--help"], "train"),
        (["train", "texts.jsonl", "-o", "tagger"], "tagger"),
        (["suggest", "tagger", "a fish"], "fish"),
        (["evaluate", "tagger", "texts.jsonl"], "psp@5"),
        (["report", "tagger", "texts.jsonl", "-o", "report.html"], "report.html"),
    ):
        done = bare(COMMAND, *arguments)
        assert done.returncode == 0, done.stderr
        assert word in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["convert", "texts.jsonl", "texts.parquet"],
            "writing Parquet needs pyarrow; install it with: pip install 'tailwise[parquet]'",
        ),
        (
            ["experiment", "guess", "--quick"],
            "the experiment guess needs matplotlib; install it with: pip install 'tailwise[report]'",
        ),
        (
            ["audit", "plan", "no-model", "texts.jsonl", "-o", "audit"],
            "an audit's store needs sqlalchemy; install it with: pip install 'tailwise[audit]'",
        ),
        (
            ["train", "texts.jsonl", "-o", "glas", "-m", "glas"],
            "needs torch; install it with: pip install 'tailwise[neural]'",
        ),
    ],
)
def test_an_extra_is_asked_for_by_name(bare, arguments, message):
    done = bare(COMMAND, *arguments)
    assert done.returncode == 6, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_fetching_asks_for_its_extra(bare, tmp_path):
    done = bare(
        f"import os; os.environ['TAILWISE_HOME'] = {str(tmp_path)!r}\n" + COMMAND, "datasets", "fetch", "eurlex-4k"
    )
    assert done.returncode == 6, done.stderr
    assert "fetching eurlex-4k needs requests; install it with: pip install 'tailwise[download]'" in done.stderr
