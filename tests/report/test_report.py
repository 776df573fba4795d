"""The report as a file: whole, self-contained, and right about what it shows."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from tailwise import evaluate
from tailwise.data import Rows
from tailwise.errors import InvalidInput
from tailwise.experiments.report import build_report
from tailwise.judging import judge
from tailwise.text import Tagger

SECTIONS = ["metrics", "frequencies", "deciles", "trade-off", "coverage", "norms", "calibration", "worst", "glossary"]


class Checker(HTMLParser):
    """Collects the tags that must close and those that fetch."""

    VOID = ("meta", "link", "br")

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.fetched += [attrs[key] for key in ("src", "href") if attrs.get(key, "#")[:1] not in "#"]
        self.ids += [attrs["id"]] if "id" in attrs else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html(trial):
    return build_report(trial)


def test_every_tag_closes_ids_are_distinct_and_nothing_is_fetched(html):
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert checker.fetched == ["data:,"]
    assert "<script" not in html
    assert "http://" not in html
    assert "https://" not in html


def test_every_section_is_there_and_reachable(html):
    for section in SECTIONS:
        assert f'<section id="{section}"' in html
        assert f'href="#{section}"' in html


def test_names_are_escaped(html):
    assert "<Label>" not in html
    assert "&lt;Label&gt; &amp; number" in html


def test_characters_that_turn_the_writing_direction_are_shown(trial):
    """A name could else make the page say what it does not."""
    turned = [f"{name} \u202eevil\u2066" for name in trial.label_names]
    html = build_report(trial._replace(label_names=turned), title="A \u200ftitle")
    assert not re.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", html)
    assert "\\u202eevil\\u2066" in html and "<h1>A \\u200ftitle</h1>" in html


def test_the_numbers_are_those_of_evaluate(trial, html):
    judged = trial.models[0]
    found = evaluate(trial.Y, judged.topk, ["psp@5"], propensity=trial.propensity, confidence=None)["psp@5"]
    assert f"{found.value:.2f} <small>[" in html
    shown = trial.metrics(["psp@5"])["centroid"]["psp@5"]
    assert f"{found.value:.2f} <small>[{shown.low:.2f}, {shown.high:.2f}]</small>" in html


def test_differences_carry_the_marks_of_the_terminal(trial, html):
    found = trial.metrics(["p@1"]).difference("popularity", "centroid", "p@1")
    assert found.verdict == "worse"
    assert str(found).endswith("▼")
    cell = f"{found.value:+.2f} <small>[{found.low:+.2f}, {found.high:+.2f}]</small> ▼"
    assert f'<td class="worse">{cell}</td>' in html


def test_the_bars_of_the_deciles_are_those_of_evaluate(trial, html):
    wanted = [f"p@5:decile{d}" for d in range(1, 11)]
    found = evaluate(
        trial.Y, trial.models[0].topk, ["p@5", *wanted], label_counts=trial.counts, slices="deciles", confidence=None
    )
    assert sum(found[name].value for name in wanted) == pytest.approx(found["p@5"].value)
    assert f"centroid, decile 1: {found['p@5:decile1'].value:.4g}" in html
    coverage = evaluate(trial.Y, trial.models[0].topk, "coverage@20", confidence=None)["coverage@20"]
    assert f'<tr><td class="text">20</td><td>{coverage.value:.1f}</td>' in html


def test_a_label_unknown_to_training_counts_and_is_told(trial, html):
    assert trial.label_ids[-1] == "new"
    assert trial.counts[-1] == 0
    assert trial.unseen >= 1
    assert trial.propensity[-1] == trial.propensity.min()
    assert "labels unknown to training" in html


def test_one_model_needs_no_differences(trial):
    alone = trial._replace(models=trial.models[1:])
    html = build_report(alone, k=3, title="Alone")
    assert "<h1>Alone</h1>" in html
    assert "Difference to" not in html
    assert "None of these models is linear" in html


def test_models_with_other_label_orders_are_judged_in_one_space(trial):
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(30, 5))).astype(np.float32)
    Y = (rng.random((30, 4)) < 0.5).astype(np.float32)
    order = [2, 0, 3, 1]
    from scipy import sparse

    from tailwise import Centroid

    names = ["a", "b", "c", "d"]
    one = Tagger(Centroid()).fit(X, sparse.csr_array(Y), label_ids=names)
    two = Tagger(Centroid()).fit(X, sparse.csr_array(Y[:, order]), label_ids=[names[i] for i in order])
    both = judge({"one": one, "two": two}, Rows("rows", sparse.csr_array(X), sparse.csr_array(Y), names, names), 3)
    np.testing.assert_array_equal(both.models[0].topk.labels, both.models[1].topk.labels)
    assert both.metrics(["p@1"]).difference("two", "one", "p@1").value == 0


def test_judging_nothing_is_refused(trial):
    with pytest.raises(InvalidInput, match="no model to judge"):
        judge({}, Rows("x", [], trial.Y, [], []), 3)


def test_chart_ids_are_numbered_afresh(html, trial):
    def ids(text):
        return len(re.findall(r'id="chart-', text))

    assert ids(html) == ids(build_report(trial)) > 8


def test_report_and_evaluate_print_the_same_interval_for_the_same_rows(trial, html):
    assert len(trial.models) > 1
    judged = trial.models[0]
    for metric in ("p@5", "psp@5", "coverage@5", "recall@5:tail"):
        found = evaluate(trial.Y, judged.topk, metric, trial.propensity, trial.counts)[metric]
        assert f"<small>[{found.low:.2f}, {found.high:.2f}]</small>" in html, metric


def test_the_glossary_explains_what_is_shown(html):
    _, _, glossary = html.partition('<section id="glossary"')
    for word in ("psp@k", "torso", "propensity", "coverage@k", "interval"):
        assert word in glossary
