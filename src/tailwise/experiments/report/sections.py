"""The sections of a report: each turns facts about a :class:`Trial` into a piece of HTML."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailwise.base import TopK
from tailwise.display import MARKS, Table
from tailwise.experiments.report import facts
from tailwise.judging import Trial
from tailwise.metrics import Comparison, Evaluation, evaluate, label_slices
from tailwise.pages.page import figure, plots, tags
from tailwise.pages.svg import Axis, Chart, spanning
from tailwise.tail import trade_off_curve
from tailwise.text.suggestions import RARITIES

_SNIPPET = 320


def metrics(found: Comparison, k: int) -> str:
    """Every metric of every model with its interval, and paired differences to the first model."""
    wanted = list(found[found.baseline])
    rows = [[metric, *(evaluation[metric].cell() for evaluation in found.evaluations.values())] for metric in wanted]
    caption = "In percent, with 95 % intervals from resampling the rows"
    html = Table(caption, ["metric", *found.evaluations], rows).html()
    if differences := found.differences():
        rows = [[metric, *(by_metric[metric].cell() for by_metric in differences.values())] for metric in wanted]
        caption = (
            f"Difference to {found.baseline}, row by row on the same rows; {MARKS['better']} better, "
            f"{MARKS['worse']} worse, {MARKS['unclear']} no clear difference: the interval holds 0"
        )
        html += Table(caption, ["metric", *differences], rows).html()
    return html + interval_chart(found.evaluations, k)


def interval_chart(results: dict[str, Evaluation], k: int) -> str:
    """The main metrics of every model as bars, with their intervals."""
    wanted = [f"p@{k}", f"psp@{k}", f"ndcg@{k}", f"recall@{k}", f"coverage@{k}"]
    shown = [metric for metric in wanted if all(metric in evaluation for evaluation in results.values())]
    chart = Chart(
        "Main metrics with their intervals",
        Axis("", -0.5, len(shown) - 0.5, ticks=range(len(shown)), names=shown),
        Axis("percent", 0, 100),
    )
    width = 0.7 / len(results)
    for s, (name, evaluation) in enumerate(results.items()):
        for i, metric in enumerate(shown):
            found = evaluation[metric]
            left = i - 0.35 + s * width
            chart.bar(left, left + width * 0.92, found.value, series=s, name=f"{name} {metric}")
            if np.isfinite(found.low) and np.isfinite(found.high):
                chart.interval(left + width * 0.46, found.low, found.high, series=5)
    return plots(figure(chart.svg(), "The main metrics; the thin lines are the intervals.", list(results)))


def frequencies(trial: Trial) -> str:
    """How often each label came in training, most frequent first, with head, torso and tail shaded."""
    counts = np.sort(trial.counts[trial.counts > 0])[::-1]
    rank = np.unique(np.geomspace(1, counts.size, 80).astype(int))
    chart = Chart(
        "Training rows of each label, most frequent label first",
        Axis("labels by frequency", 0.9, max(10, counts.size * 1.1), True),
        Axis("training rows", 0.8, max(10.0, float(counts.max(initial=1))) * 3, True),
    )
    sizes = [int(((trial.slices == s) & (trial.counts > 0)).sum()) for s in range(3)]
    start = 0.9
    for s, size in enumerate(np.cumsum(sizes)):
        if sizes[s]:
            chart.region(start, size, RARITIES[s], s)
            start = size
    chart.line(rank, counts[rank - 1], name="label", points=False)
    rows = []
    for s, name in enumerate(RARITIES):
        members = (trial.slices == s) & (trial.counts > 0)
        inside = trial.counts[members]
        relevant = int(members[trial.Y.indices].sum())
        rows.append(
            [
                name,
                f"{inside.size:,}",
                f"{inside.max(initial=0):,} – {inside.min(initial=inside.max(initial=0)):,}",
                f"{100 * relevant / max(1, trial.Y.nnz):.1f} %",
            ]
        )
    rows.append(
        [
            "not in training",
            f"{int((trial.counts == 0).sum()):,}",
            "0",
            f"{100 * trial.unseen / max(1, trial.Y.nnz):.1f} %",
        ]
    )
    shares = Table(
        "The slices", ["slice", "labels", "training rows a label", "share of the labels observed here"], rows
    ).html()
    few = 100 * float((counts < 5).mean()) if counts.size else 0.0
    caption = f"{few:.0f} % of the labels have fewer than 5 training rows. Both axes are logarithmic."
    return plots(figure(chart.svg(), caption)) + shares


def deciles(trial: Trial, ks: list[int]) -> str:
    """P@k, PSP@k and recall by the frequency decile of the labels."""
    masks = label_slices(trial.counts, "deciles")
    kinds = [f"{metric}@{k}" for k in ks for metric in ("p", "psp")] + [f"recall@{ks[-1]}"]
    wanted = [f"{kind}:{decile}" for kind in kinds for decile in masks]
    found = {
        judged.name: evaluate(
            trial.Y,
            judged.topk,
            wanted,
            propensity=trial.propensity,
            label_counts=trial.counts,
            slices="deciles",
            confidence=None,
        )
        for judged in trial.models
    }
    names = list(found)
    pieces = [
        _decile_chart(
            f"{kind.upper()} by decile",
            f"{kind.upper()}, percent",
            names,
            [np.array([result[f"{kind}:{decile}"].value for decile in masks]) for result in found.values()],
        )
        for kind in kinds
    ]
    shown = kinds[-3:]
    rows = []
    for d, (decile, mask) in enumerate(masks.items(), start=1):
        inside = trial.counts[mask]
        most = inside.max(initial=0)
        values = [result[f"{kind}:{decile}"].cell() for result in found.values() for kind in shown]
        rows.append([d, f"{most:,} – {inside.min(initial=most):,}", *values])
    columns = ["decile", "training rows", *(f"{name} {kind.upper()}" for name in names for kind in shown)]
    intro = (
        "<p>Labels seen in training, in ten groups of equal size; decile 1 holds the most frequent ones. "
        "The bars of P@k add up to P@k over all labels seen in training; PSP@k is relative to the best ranking of the "
        "decile's labels, and recall is the share of them that is found.</p>"
    )
    numbers = Table("By decile", columns, rows).html()
    return intro + plots(*pieces) + f"<details><summary>The numbers as a table</summary>{numbers}</details>"


def _decile_chart(title: str, caption: str, names: list[str], values: list[np.ndarray]) -> str:
    x = Axis("decile of label frequency (1 = most frequent)", 0.4, 10.6, ticks=range(1, 11))
    chart = Chart(title, x, spanning(caption, *values, zero=True))
    width = 0.8 / len(values)
    for s, heights in enumerate(values):
        for d in np.flatnonzero(np.isfinite(heights)):
            left = d + 0.6 + s * width
            chart.bar(left, left + width * 0.92, float(heights[d]), series=s, name=f"{names[s]}, decile {d + 1}")
    return figure(chart.svg(), title, names)


def trade_off(trial: Trial, k: int) -> str:
    """P@k against PSP@k when candidates are ranked by probability × (1/p)^t."""
    names = [m.name for m in trial.taggers]
    ks = sorted({1, k})
    wanted = [f"{kind}@{at}" for at in ks for kind in ("p", "psp")]
    steps = [t / 10 for t in range(11)]
    curves = [
        trade_off_curve(*facts.candidates_of(trial, m), trial.Y, trial.propensity, tails=steps, metrics=wanted)
        for m in trial.taggers
    ]
    pieces = []
    for at in ks:
        xs, ys = ([curve.column(f"{kind}@{at}") for curve in curves] for kind in ("p", "psp"))
        chart = Chart(
            f"P@{at} against PSP@{at} along the trade-off",
            spanning(f"P@{at}, percent", *xs),
            spanning(f"PSP@{at}, percent", *ys),
        )
        for s, (x, y) in enumerate(zip(xs, ys, strict=True)):
            chart.line(x, y, series=s, name=names[s])
            chart.point(x[0], y[0], series=s, name=f"{names[s]}, t = 0", radius=5)
        rows = [
            [f"{t:.1f}", *(f"{x[i]:.2f} / {y[i]:.2f}" for x, y in zip(xs, ys, strict=True))]
            for i, t in enumerate(steps)
        ]
        numbers = Table(f"P@{at} / PSP@{at} by t", ["t", *names], rows).html()
        pieces.append(
            figure(chart.svg(), "The large mark is t = 0 (scores as they are), the far end t = 1.", names, numbers)
        )
    intro = (
        "<p>One knob from precision to the tail: each model's best candidates, ranked by score × (1/p)<sup>t</sup>, "
        "where p is the chance that a relevant label was observed. <code>tailwise train --tail t</code> sets it; "
        "a model trained with it is shown from t = 0 too.</p>"
    )
    if others := [judged.name for judged in trial.models if judged.tagger is None]:
        intro += f"<p>Not of {tags(', '.join(others))}: nothing says which probabilities such scores stand for.</p>"
    return intro + plots(*pieces)


def coverage(trial: Trial) -> str:
    """How many different labels are found somewhere, by k."""
    ks = facts.coverage_ks(trial)
    return coverage_figure(ks, [m.name for m in trial.models], [facts.coverage_of(trial, m, ks) for m in trial.models])


def coverage_figure(ks: list[int], names: list[str], curves: list[list[float]]) -> str:
    """Coverage by k of every model; a curve ends where it has no values (NaN)."""
    chart = Chart("Coverage@k", Axis("k", 0, ks[-1] * 1.03), spanning("coverage, percent", *curves, zero=True))
    for s, curve in enumerate(curves):
        chart.line(ks, curve, series=s, name=names[s])
    rows = [[str(k), *("–" if np.isnan(c[i]) else f"{c[i]:.1f}" for c in curves)] for i, k in enumerate(ks)]
    caption = "Distinct labels found in some row's top k, of the distinct labels of these rows."
    return plots(figure(chart.svg(), caption, names, Table("Coverage@k, percent", ["k", *names], rows).html()))


def norms(trial: Trial) -> str:
    """Classifier norms against label frequency."""
    groups = [
        (s, m, facts.norms_by_frequency(norms, trial.counts))
        for s, m in enumerate(trial.taggers)
        if (norms := facts.norms_of(trial, m)) is not None
    ]
    if not groups:
        return (
            "<p>None of these models is linear: they have no classifier for each label whose norm could be shown.</p>"
        )
    chart = Chart(
        "Norm of the label classifiers by label frequency",
        spanning("training rows of the label", *(g.frequency for _, _, g in groups), log=True),
        spanning("norm of the weights", *(g.high for _, _, g in groups), zero=True),
    )
    for s, judged, group in groups:
        for x, low, high in zip(group.frequency, group.low, group.high, strict=True):
            chart.interval(x, low, high, series=s)
        chart.line(group.frequency, group.median, series=s, name=judged.name)
    caption = (
        "Median norm with the range from 10 % to 90 %. A rising line: rare labels get lower scores than frequent ones."
    )
    return plots(figure(chart.svg(), caption, [m.name for m in trial.taggers] if len(groups) > 1 else ()))


def calibration(trial: Trial, k: int) -> str:
    """How often a prediction of a given score is right."""
    pieces = []
    for s, judged in enumerate(trial.models):
        found = facts.reliability_of(trial, judged, k)
        why = "are not probabilities" if judged.tagger is not None else "are another program's"
        pieces.append(calibration_figure(judged.name, found, why, s))
    return calibration_intro(k) + plots(*pieces)


def calibration_intro(k: int) -> str:
    """What the figures of calibration show."""
    return (
        f"<p>The top {k} predictions of every row, in bins by score. "
        "Unobserved labels count as wrong, although some are missing labels.</p>"
    )


def calibration_figure(name: str, found: facts.Reliability, why: str = "are not probabilities", series: int = 0) -> str:
    """Observed precision by score; ``why`` says what scores are that have no error of calibration."""
    probabilities = found.error is not None
    x = Axis("score", 0, 1) if probabilities else spanning("score (not a probability)", found.score)
    chart = Chart(f"Calibration of {name}", x, Axis("share that is right", 0, 1))
    if probabilities:
        chart.guide(0, 0, 1, 1)
    chart.line(found.score, found.observed, series=series, name=name)
    rows = [[f"{a:.3f}", f"{b:.3f}", f"{n:,}"] for a, b, n in zip(found.score, found.observed, found.size, strict=True)]
    if probabilities:
        caption = f"{name}: expected calibration error {found.error:.1f} points; the dashed line is perfect."
    else:
        caption = f"{name}: its scores {why}; the line shows what a score is worth."
    numbers = Table("Bins of equal size", ["mean score", "right", "predictions"], rows)
    return figure(chart.svg(), caption, (), numbers.html())


def worst(trial: Trial, k: int) -> str:
    """The labels of each slice that the first model finds worst, with rows that show it."""
    judged = trial.models[0]
    topk = judged.topk.padded(k)
    html = f"<p>By F1 over the top {k} of {tags(judged.name)}, labels with the most test rows first.</p>"
    groups = {name.capitalize(): (trial.slices == s) & (trial.counts > 0) for s, name in enumerate(RARITIES)}
    if not trial.has_training:
        groups = {"Of all labels": np.ones(trial.counts.size, bool)}
    for name, members in groups.items():
        labels = facts.worst_labels(trial.Y, topk, trial.counts, members)
        cards = "".join(_card(trial, topk, label) for label in labels)
        html += f"<h3>{name}</h3>{cards or '<p>No label of this slice occurs in these rows.</p>'}"
    return html


def _card(trial: Trial, topk: TopK, w: facts.WorstLabel) -> str:
    name, label_id = trial.label_names[w.label], trial.label_ids[w.label]
    head = tags(name) + (f" <small class='soft'>{tags(label_id)}</small>" if label_id != name else "")
    facts_line = f"{w.training_rows:,} training rows; " if trial.has_training else ""
    facts_line += (
        f"{w.found} of {w.test_rows} test rows found; "
        f"suggested {w.suggested:,} times, {w.suggested - w.found:,} of them not observed"
    )
    rows = "".join(_example(trial, topk, row, w.label) for row in w.missed)
    details = f"<details><summary>Rows that missed it ({len(w.missed)} shown)</summary>{rows}</details>" if rows else ""
    return f'<article><h4>{head}</h4><p class="soft">{facts_line}</p>{details}</article>'


def _example(trial: Trial, topk: TopK, row: int, label: int) -> str:
    truth = trial.Y.indices[trial.Y.indptr[row] : trial.Y.indptr[row + 1]]
    given = [int(one) for one in topk.labels[row] if one >= 0]
    text = f"row {row:,}"
    if trial.texts is not None:
        whole = " ".join(trial.texts[row].split())
        text = whole if len(whole) <= _SNIPPET else whole[:_SNIPPET].rsplit(" ", 1)[0] + " …"

    def chips(labels: Any, other: Any, miss: str) -> str:
        inside = {int(one) for one in other}
        pieces = []
        for one in (int(o) for o in labels):
            kind = "this" if one == label else "hit" if one in inside else miss
            pieces.append(f'<span class="tag {kind}">{tags(trial.label_names[one])}</span>')
        return "".join(pieces)

    return (
        f"<blockquote><p>{tags(text)}</p><p>observed: {chips(truth, given, 'missed')}</p>"
        f"<p>suggested: {chips(given, truth, '')}</p></blockquote>"
    )
