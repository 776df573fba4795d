"""Experiment ``hierarchy``: which propensities does a hierarchy of labels tell, and are they the true ones?

After section 5 and figure 2 of *Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing
Label Applications*, on WordNet: a row is the gloss of a noun, its complete labels are all nouns above it. Labels are
observed in three ways:

* ``parents``: those right above, as WordNet records them;
* ``named``: those whose name the gloss has (a gloss mostly says what kind of thing a noun is);
* ``planted``: each with the propensity of a Jain curve of known A and B.

The hierarchy tells how often a label is missing where one of its descendants was observed; since all ancestors are
known here, so is how often it is missing in truth. Curves are fitted to both, with bins as the paper makes them and
with ours. The weights 1/p are set beside the heuristics that the paper names, ``n^(-β)`` and ``ln(N / n)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data import drop_labels, planted_propensity, wordnet
from tailwise.experiments.running import Record, Summary
from tailwise.propensity import (
    EstimatedPropensity,
    JainPropensity,
    jain_inverse,
    propensity_from_audit,
    propensity_from_hierarchy,
)
from tailwise.validation import label_counts

PLANTED = (0.5, 0.4)
"""The A and B that the paper found on Wikipedia."""

KINDS = ("parents", "named", "planted")
BINS = {"relevant": "by relevant rows", "observed": "by observed rows, as the paper"}
_BIN = 20
_LONGEST_NAME = 3
_WORD = re.compile(r"[a-z0-9]+")


class Labelled(NamedTuple):
    """Glosses and all that is true of them."""

    name: str
    nouns: wordnet.Nouns
    complete: sparse.csr_array
    """(n_nouns, n_nouns): what stands above each noun."""


def choose(size: str, options: Record) -> Record:
    """The data, repeats of what is drawn, and resamples for intervals."""
    usual = {"nouns": 0, "repeats": 3, "resamples": 50}
    by_size: dict[str, Record] = {
        "quick": {"nouns": 4_000, "repeats": 1, "resamples": 5},
        "default": {},
        "full": {"repeats": 10, "resamples": 200},
    }
    return {"data": options.get("data", "" if size != "quick" else "synthetic"), **usual, **by_size[size]}


def cells(settings: Record) -> list[Record]:
    """A way to observe labels a cell; what is drawn is drawn several times."""
    repeats = {kind: settings["repeats"] if kind == "planted" else 1 for kind in KINDS}
    return [{"kind": kind, "repeat": repeat} for kind in KINDS for repeat in range(repeats[kind])]


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Labelled]:
    """WordNet from ``data`` or where Debian installs it, or a made-up hierarchy of nouns."""
    if settings["data"] == "synthetic":
        name, nouns = "made-up nouns", make_nouns(settings["nouns"], np.random.default_rng(settings["seed"]))
    else:
        name, nouns = "WordNet", wordnet.read_wordnet_nouns(settings["data"] or wordnet.FOLDER)
    return settings, Labelled(name, nouns, _matrix([nouns.ancestors(noun) for noun in range(len(nouns.ids))]))


def make_nouns(n: int, rng: np.random.Generator) -> wordnet.Nouns:
    """A made-up hierarchy: each noun hangs below an earlier one, and its gloss names some of those above it."""
    above: list[list[int]] = [[]] + [[int(rng.integers(noun) * rng.random() ** 0.3)] for noun in range(1, n)]
    nouns = wordnet.Nouns([f"{i}" for i in range(n)], [[f"noun{i}"] for i in range(n)], [""] * n, above)
    chance = rng.beta(0.6, 1.0, n)
    glosses = [" ".join(f"noun{top}" for top in nouns.ancestors(i) if rng.random() < chance[top]) for i in range(n)]
    return nouns._replace(glosses=glosses)


def _matrix(columns: list[list[int]]) -> sparse.csr_array:
    indptr = np.cumsum([0, *(len(own) for own in columns)])
    indices = np.array([column for own in columns for column in own], np.int32)
    made = sparse.csr_array((np.ones(indices.size, np.float32), indices, indptr), (len(columns), len(columns)))
    made.sum_duplicates()
    return made


def observe(labelled: Labelled, kind: str, rng: np.random.Generator) -> sparse.csr_array:
    """The labels that are observed: (n_nouns, n_nouns), never one that is not true."""
    nouns = labelled.nouns
    if kind == "planted":
        curve = JainPropensity(PLANTED[0], b=PLANTED[1])
        return drop_labels(labelled.complete, planted_propensity(curve, labelled.complete), rng)
    if kind == "parents":
        return _matrix([list(dict.fromkeys(tops)) for tops in nouns.above])
    names = [{" ".join(_WORD.findall(word.lower())) for word in words} for words in nouns.words]
    found = []
    for noun, gloss in enumerate(nouns.glosses):
        terms = named_terms(gloss)
        found.append([top for top in nouns.ancestors(noun) if not names[top].isdisjoint(terms)])
    return _matrix(found)


def named_terms(gloss: str) -> set[str]:
    """The words of a gloss without its examples, and runs of up to three of them.

    >>> sorted(named_terms('a tall tree; "the tree fell"'))
    ['a', 'a tall', 'a tall tree', 'tall', 'tall tree', 'tree']
    """
    words = _WORD.findall(gloss.partition('"')[0].lower())
    return {" ".join(words[i : i + n]) for n in range(1, _LONGEST_NAME + 1) for i in range(len(words) - n + 1)}


def compute(shared: tuple[Record, Labelled], cell: Record, n_jobs: int | None) -> Record:
    """Fit the curve to what the hierarchy tells and to the truth, with both kinds of bins, and compare."""
    settings, labelled = shared
    rng = np.random.default_rng([settings["seed"], cell["repeat"], KINDS.index(cell["kind"])])
    Y, truth = observe(labelled, cell["kind"], rng), labelled.complete
    parents = labelled.nouns.parents()
    options = {"n_bootstrap": settings["resamples"], "random_state": settings["seed"]}
    seen, relevant = label_counts(Y), label_counts(truth)
    evidence = np.flatnonzero(np.bincount(truth.indices, minlength=truth.shape[1]) > 4)
    fits = {}
    for bins in BINS:
        fits[f"hierarchy, {bins}"] = propensity_from_hierarchy(Y, parents, bins_by=bins, **options)
        fits[f"truth, {bins}"] = propensity_from_audit(Y[:, evidence], truth[:, evidence], bins_by=bins, **options)
    complete = sparse.csr_array(Y + Y @ truth)
    order = evidence[np.argsort(seen[evidence], kind="stable")]
    edges = np.arange(0, max(_BIN, order.size - order.size % _BIN), _BIN)
    frequency, rate = (
        np.add.reduceat(part, edges) for part in (seen[order].astype(float), seen[order] / relevant[order])
    )
    sizes = np.diff(np.append(edges, order.size))
    frequency, rate = frequency / sizes, rate / sizes
    return {
        "data": labelled.name,
        "rows": Y.shape[0],
        "labels": int(evidence.size),
        "kept": 100 * Y.nnz / truth.nnz,
        "kept_of_evidence": 100 * float(seen[evidence].sum() / relevant[evidence].sum()),
        "told": 100 * float(label_counts(complete)[evidence].sum() / relevant[evidence].sum()),
        "fits": {name: _facts(fit, seen[evidence], relevant[evidence], Y.shape[0]) for name, fit in fits.items()},
        "frequency": frequency.tolist(),
        "rate": rate.tolist(),
        "rising": _rank_correlation(seen[evidence], seen[evidence] / relevant[evidence]),
        "weights": _compare_weights(frequency, rate, Y.shape[0], fits["truth, observed"]),
    }


def _facts(fit: EstimatedPropensity, seen: np.ndarray, relevant: np.ndarray, n_rows: int) -> Record:
    own = 1.0 / jain_inverse(seen, n_rows, fit.a, fit.b)
    return {
        "a": fit.a,
        "a_interval": list(fit.fit_.a_interval),
        "b": fit.b,
        "b_interval": list(fit.fit_.b_interval),
        "bin_error": fit.fit_.error,
        "mean_error": float(np.abs(own - seen / relevant).mean()),
        "pair_error": float(abs((relevant * own).sum() - seen.sum()) / seen.sum()),
    }


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


def _compare_weights(frequency: np.ndarray, rate: np.ndarray, n_rows: int, fit: EstimatedPropensity) -> Record:
    """Root mean square of ln(weight) less ln(1/p) over bins, each form with the constants that fit best."""
    known = (rate > 0) & (frequency > 0)
    n, weight = frequency[known], -np.log(rate[known])
    slope, shift = np.polyfit(np.log(n), weight, 1)
    log_form = np.log(np.log(n_rows / n))
    away = {
        "1/p of the curve": np.log(jain_inverse(n, n_rows, fit.a, fit.b)) - weight,
        "c n^(-β)": slope * np.log(n) + shift - weight,
        "c ln(N/n)": log_form - log_form.mean() + weight.mean() - weight,
        "a constant": weight.mean() - weight,
    }
    return {"beta": -float(slope), **{form: float(np.sqrt((part**2).mean())) for form, part in away.items()}}


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A row a fit, how far it is from the truth, and the curves beside the bins."""
    rows, findings = [], []
    for kind in KINDS:
        mine = [r for r in results if r["kind"] == kind]
        findings.append(_said(kind, mine))
        for name in mine[0]["fits"]:
            facts = [r["fits"][name] for r in mine]
            first = facts[0]
            rows.append(
                {
                    "observed": kind,
                    "fitted to, bins": name,
                    "labels": mine[0]["labels"],
                    "A": round(float(np.mean([f["a"] for f in facts])), 3),
                    "A low": round(first["a_interval"][0], 3),
                    "A high": round(first["a_interval"][1], 3),
                    "B": round(float(np.mean([f["b"] for f in facts])), 3),
                    "B low": round(first["b_interval"][0], 3),
                    "B high": round(first["b_interval"][1], 3),
                    "A sd": _spread([f["a"] for f in facts]),
                    "B sd": _spread([f["b"] for f in facts]),
                    "error of a bin": round(float(np.mean([f["bin_error"] for f in facts])), 4),
                    "error of a label": round(float(np.mean([f["mean_error"] for f in facts])), 4),
                    "error of the sum": round(float(np.mean([f["pair_error"] for f in facts])), 4),
                }
            )
    return Summary(rows, findings, {"hierarchy": _plot(settings, results)})


def _spread(values: list[float]) -> float:
    return round(float(np.std(values, ddof=1)), 4) if len(values) > 1 else 0.0


def _said(kind: str, mine: list[Record]) -> str:
    r = mine[0]
    told = ", ".join(f"{name} A = {f['a']:.2f}, B = {f['b']:.2f}" for name, f in r["fits"].items())
    weights = ", ".join(f"{form} {value:.2f}" for form, value in r["weights"].items() if form != "beta")
    paper, true = r["fits"]["hierarchy, observed"], r["fits"]["truth, relevant"]
    return (
        f"{r['data']}, {kind}: {r['kept']:.1f} % of true labels observed, {r['kept_of_evidence']:.1f} % of the "
        f"{r['labels']:,} labels with more than 4 descendants; with observed labels the hierarchy knows "
        f"{r['told']:.1f} % of the true ones. Rank correlation of a label's observed rows and its propensity "
        f"{r['rising']:+.2f}. Fitted: {told}. Mean error of a label's propensity: {paper['mean_error']:.3f} by the "
        f"paper's way, {true['mean_error']:.3f} by ours on the truth. Distance of weights from 1/p, in logarithms: "
        f"{weights} (β = {r['weights']['beta']:.2f})."
    )


def _plot(settings: Record, results: list[Record]) -> Any:
    from tailwise.experiments.plotting import COLOURS, make_figure

    figure, axes = make_figure(2, len(KINDS), width=3.8, height=2.9)
    for column, kind in enumerate(KINDS):
        r = next(r for r in results if r["kind"] == kind)
        top, bottom = axes[:, column]
        frequency, rate = np.array(r["frequency"]), np.array(r["rate"])
        dots = {"color": "grey", "markersize": 3, "rasterized": True}
        top.semilogx(np.maximum(frequency, 0.3), rate, ".", label="bins of 20 labels", **dots)
        grid = np.geomspace(0.3, max(2.0, frequency.max()), 100)
        for i, (name, fit) in enumerate(r["fits"].items()):
            style = "-" if name.startswith("truth") else "--"
            own = jain_inverse(grid, r["rows"], fit["a"], fit["b"])
            top.semilogx(grid, 1 / own, style, color=COLOURS[i], linewidth=1.2, label=name)
        top.set(title=f"{r['data']}, {kind}", ylim=(0, 1.05))
        known = (rate > 0) & (frequency > 0)
        bottom.loglog(frequency[known], 1 / rate[known], ".", label="1/p of bins", **dots)
        fit, weights = r["fits"]["truth, observed"], -np.log(rate[known])
        bottom.loglog(
            grid, jain_inverse(grid, r["rows"], fit["a"], fit["b"]), color=COLOURS[0], label="1/p of the curve"
        )
        slope, shift = np.polyfit(np.log(frequency[known]), weights, 1)
        bottom.loglog(grid, np.exp(shift) * grid**slope, "--", color=COLOURS[1], label="c n^(-β)")
        logs = np.log(r["rows"] / grid)
        level = np.exp(weights.mean() - np.log(np.log(r["rows"] / frequency[known])).mean())
        bottom.loglog(grid, level * logs, ":", color=COLOURS[2], label="c ln(N/n)")
        bottom.set(xlabel="observed rows of the label")
    axes[0, 0].set_ylabel("propensity")
    axes[1, 0].set_ylabel("weight")
    for axis in axes[:, -1]:
        axis.legend(frameon=False, fontsize=6)
    return figure
