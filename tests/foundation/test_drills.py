"""Quick forms of the drills, and that a drill sees what it looks for."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from drills import abuse, answers, damage, formats, harness, inject, readers, verbs
from drills.harness import Outcome
from drills.zoo import MODELS, rows, rows_for
from tailwise import data
from tailwise.data import locate
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.vocabulary import reading


def test_every_drill_can_be_run_by_name():
    drills = harness.available()
    assert {
        "save",
        "load",
        "kill",
        "verbs",
        "flip",
        "hostile",
        "lies",
        "readers",
        "abuse",
        "inject",
        "answers",
        "damage",
        "distributed",
    } <= set(drills)
    for name, module in drills.items():
        assert 0 < module.MODEST <= module.COUNT, name
        assert module.__doc__.splitlines()[0].endswith("?"), name


def test_every_format_is_read_by_the_drills():
    by_name = {reader.name: reader for reader in formats.readers()}
    # Mapped rows are a folder, which the drill "damage" has.
    assert set(locate.FORMATS) - {"rows"} <= set(by_name)
    skos = {"turtle": "skos", "ntriples": "skos ntriples", "xml": "skos xml", "jsonld": "skos json-ld"}
    assert {skos.get(kind, f"vocabulary {kind}") for kind in reading.FORMATS} <= set(by_name)
    tables = {"read_records", "read_texts", "read_libsvm_files", "read_xmc_split"}  # other ways to the same readers
    called = {
        name.removeprefix("read_").replace("_", " ") for name in set(data.__all__) - tables if name[:5] == "read_"
    }
    assert called - {"mulan labels"} <= set(by_name) and "mulan xml" in by_name


@pytest.mark.filterwarnings("ignore")
def test_changed_files_are_read_as_the_twins_read_them_or_refused(tmp_path):
    for outcome in readers.drill(25, tmp_path):
        assert outcome.passed and outcome.intact, str(outcome)


def test_a_reader_that_reads_otherwise_or_does_not_say_where_is_seen(tmp_path):
    reader = next(reader for reader in formats.readers() if reader.name == "names")
    path = tmp_path / "file.txt"
    path.write_bytes(reader.seed)

    def refuse(error):
        def read(path):
            raise error

        return read

    for read, why in (
        (lambda path: ["law"], "read otherwise"),
        (refuse(KeyError("x")), "KeyError"),
        (refuse(DataFormatError(path, 1, "a", "b")), "refused what can be read"),
        (refuse(DataFormatError(path, None, "a", "b")), "no file, or no line"),
    ):
        kind, said = readers.judge(reader._replace(read=read), path)
        assert kind == "broken" and why in said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["Popularity", "Centroid", "DiSMEC", "Parabel"])
def test_abuses_are_taken_rightly_or_refused(name):
    ends = [abuse._one(MODELS[name](), random.Random(f"quick {number}")) for number in range(60)]
    assert not [why for kind, why in ends if kind == "broken"]
    assert {kind for kind, _ in ends} == {"intact", "refused"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Stacked", {"random_state": np.random.default_rng(0)}),
        ("Stacked", {"random_state": ()}),
        ("Parabel of few of many features", {"beam": np.int8(3)}),
        ("Ensemble", {"n_folds": np.int8(3)}),
    ],
)
def test_what_may_be_passed_is_taken(name, change):
    fitted = MODELS[name]()
    X = rows_for(fitted.n_features_in_)
    made = clone(fitted).set_params(**change).fit(X, rows()[1])
    abuse._checked(made.predict_topk(X, 3), made.n_labels_)


def test_networks_refuse_a_checkpoint_without_a_place_and_learn_nothing_from_nothing():
    pytest.importorskip("torch")
    model, (X, Y) = MODELS["AttentionXML"](), rows()
    with pytest.raises(InvalidInput, match="cannot be used"):
        clone(model).set_params(checkpoint="x" * 10_000).fit(X, Y)
    with pytest.warns(UserWarning, match="no row of Y has a label"):
        clone(model).fit(X, sparse.csr_array(Y.shape, dtype=np.float32))


def test_an_abuse_that_ends_in_a_foreign_error_or_a_wrong_answer_is_seen(monkeypatch):
    model = MODELS["Popularity"]()
    monkeypatch.setattr(type(model), "_predict_topk", lambda self, X, k: 1 / 0)
    assert abuse._one(model, random.Random(0))[0] in ("broken", "refused")
    ends = {abuse._one(model, random.Random(number))[0] for number in range(30)}
    assert "broken" in ends
    wrong = np.zeros((1, 2), np.int32), np.zeros((1, 2), np.float32)
    with pytest.raises(AssertionError, match="a label twice"):
        abuse._checked(wrong, 3)


@pytest.mark.parametrize("name", ["convert", "convert to mapped rows"])
def test_a_killed_command_leaves_the_old_or_the_new(name, tmp_path):
    verbs.prepare(tmp_path)
    verb = next(verb for verb in verbs.VERBS if verb.name == name)
    outcome = verbs.kill(verb, 5, tmp_path)
    assert outcome.passed and outcome.intact == 5
    for file in [tmp_path / verb.out, *(tmp_path / verb.out).glob("*")]:
        if file.is_file():
            file.write_bytes(b"half")
    assert verbs._judged(verb.identity, tmp_path / verb.out, {"another"})[0] == "broken"


def test_a_killed_reviewer_loses_no_answer(tmp_path):
    outcome = answers.kills(3, tmp_path / "audit")
    assert outcome.passed and outcome.intact == 3, outcome
    assert answers._judged(tmp_path / "audit", {10**9}) == ("broken", "1 acknowledged answers are lost")
    assert answers._judged(tmp_path / "nothing", set())[0] == "broken"


def test_a_damaged_store_is_refused_or_mended(tmp_path):
    outcomes = {outcome.name: outcome for outcome in damage.drill(8, tmp_path)}
    assert all(outcome.passed and outcome.tried == 8 for outcome in outcomes.values()), [*map(str, outcomes.values())]
    assert outcomes["rows"].refused == 8 and outcomes["run"].intact
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a").write_bytes(b"abc")
    shutil.copytree(tmp_path / "store", tmp_path / "good")
    for read, why in (
        (lambda path: b"".join(map(Path.read_bytes, path.iterdir())), "other numbers"),
        (lambda path: 1 / 0, "ZeroDiv"),
    ):
        kind, said = damage.flipped(tmp_path / "store", tmp_path / "good", read, b"abc", random.Random(0))
        assert kind == "broken" and why in said


def test_a_page_that_forgets_to_quote_is_seen(tmp_path):
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("no Chromium with chromedriver is installed")
    pytest.importorskip("selenium", reason="selenium is not installed")
    names, path = [f"{inject.PAYLOADS[0]} word", f"{inject.PAYLOADS[2]} other"], tmp_path / "page.html"
    browser = inject._browser(tmp_path / "profile")
    try:
        good, bad = Outcome("good"), Outcome("bad")
        path.write_text("<!doctype html><link rel=icon href='data:,'><body>" + " ".join(names).replace("<", "&lt;"))
        inject._judge(browser, path, names, good)
        path.write_text("<!doctype html><link rel=icon href='data:,'><body>" + " ".join(names))
        inject._judge(browser, path, names, bad)
    finally:
        browser.quit()
    assert good.passed and good.intact == 2
    assert bad.broken and "a script ran" in bad.reasons
