"""The published figures inside the package."""

import csv
from pathlib import Path

import pytest

from tailwise.experiments.methods import METHODS
from tailwise.experiments.published import PAPERS, all_figures, published, published_methods, published_range

_SHARED = Path(__file__).parents[2] / ".." / "shared" / "published"


def _collected(name):
    if not (_SHARED / name).exists():
        pytest.skip("the collected figures are not at hand")
    with (_SHARED / name).open() as file:
        return [(r["dataset"], r["method"], r["metric"].lower(), float(r["value"])) for r in csv.DictReader(file)]


def test_figures_are_the_collected_ones():
    assert [tuple(f[1:]) for f in all_figures() if f.paper != "repository"] == _collected("results.csv")


def test_the_repositorys_figures_are_whole_for_the_data_sets_that_can_be_had():
    kept = ("EURLex-4K", "Bibtex", "Delicious")
    collected = [figure for figure in _collected("repository.csv") if figure[0] in kept]
    assert [tuple(f[1:]) for f in all_figures() if f.paper == "repository"] == collected
    assert published("bibtex", "SLEEC", "p@1") == 65.08
    assert published("delicious", "LEML", "psp@5") == 33.26


def test_figures_are_percentages_of_known_papers_and_metrics():
    for figure in all_figures():
        assert figure.paper in PAPERS
        assert 0 < figure.value < 100
        assert figure.metric.partition("@")[0] in ("p", "psp", "ndcg", "psndcg")


def test_the_repositorys_figure_counts_else_the_highest():
    assert [figure.value for figure in published_range("EURLex-4K", "parabel", "PSP@1")] == [37.7, 36.42, 36.36, 36.36]
    assert published("eurlex-4k", "Parabel", "psp@1") == 36.36
    assert [published("eurlex-4k", "PfastreXML", f"psp@{k}") for k in (1, 3, 5)] == [43.86, 45.72, 46.97]
    assert published("eurlex-4k", "PW-DiSMEC", "psp@5") == 52.2
    assert published("wikilshtc-325k", "Parabel", "psp@1") == max(
        figure.value for figure in published_range("wikilshtc-325k", "Parabel", "psp@1")
    )
    assert published("eurlex-4k", "Parabel", "psp@7") is None
    assert published("nowhere", "Parabel", "psp@1") is None


def test_a_paper_calls_pd_sparse_otherwise():
    assert "(P)PD-Sparse" not in published_methods("eurlex-4k")
    assert ("unbiased-losses", 38.2) in [(f.paper, f.value) for f in published_range("EURLex-4K", "PD-Sparse", "psp@1")]


def test_every_method_of_ours_with_a_published_name_has_figures():
    named = {method.published for method in METHODS if method.published}
    assert named <= {figure.method for figure in all_figures()}
    assert {"DiSMEC", "PW-DiSMEC"} <= set(published_methods("eurlex-4k"))
