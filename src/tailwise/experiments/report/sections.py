"""The sections of a report: each turns facts about a :class:`Trial` into a piece of HTML."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailwise.experiments.report import facts
from tailwise.experiments.report.page import figure, plots, table, tags
from tailwise.experiments.report.svg import Axis, Chart, spanning
from tailwise.experiments.trial import Judged, Trial
from tailwise.tail import trade_off_curve

_SNIPPET = 320


def metrics(trial: Trial, results: dict[str, Any], differences: dict[str, Any], k: int) -> str:
    """Every metric of every model with its interval, and paired differences to the first model."""
    names = [judged.name for judged in trial.models]
    wanted = list(next(iter(results.values())))
    rows = [[f"<b>{tags(metric)}</b>", *(_with_interval(results[name][metric]) for name in names)] for metric in wanted]
    html = table("In percent, with 95 % intervals from resampling the rows", ["metric", *names], rows)
    if differences:
        rows = [
            [f"<b>{tags(metric)}</b>", *(_difference(found[metric]) for found in differences.values())]
            for metric in wanted
        ]
        caption = f"Difference to {names[0]}, row by row on the same rows; bold where the interval excludes 0"
        html += table(caption, ["metric", *differences], rows)
    return html + _interval_chart(trial, results, k)


def _interval_chart(trial: Trial, results: dict[str, Any], k: int) -> str:
    shown = [
        m
        for m in (f"p@{k}", f"psp@{k}", f"ndcg@{k}", f"recall@{k}", f"coverage@{k}")
        if m in next(iter(results.values()))
    ]
    chart = Chart(
        "Main metrics with their intervals",
        Axis("", -0.5, len(shown) - 0.5, ticks=range(len(shown)), names=shown),
        Axis("percent", 0, 100),
    )
    width = 0.7 / max(1, len(trial.models))
    for s, judged in enumerate(trial.models):
        for i, metric in enumerate(shown):
            found = results[judged.name][metric]
            left = i - 0.35 + s * width
            chart.bar(left, left + width * 0.92, found.value, series=s, name=f"{judged.name} {metric}")
            if np.isfinite(found.low) and np.isfinite(found.high):
                chart.interval(left + width * 0.46, found.low, found.high, series=5)
    return plots(
        figure(chart.svg(), "The main metrics; the thin lines are the intervals.", [m.name for m in trial.models])
    )


def _with_interval(found: Any) -> str:
    if not np.isfinite(found.low):
        return f"{found.value:.2f}"
    return f"{found.value:.2f} <small>[{found.low:.2f}, {found.high:.2f}]</small>"


def _difference(found: Any) -> str:
    text = f"{found.value:+.2f} <small>[{found.low:+.2f}, {found.high:+.2f}]</small>"
    if found.low > 0 or found.high < 0:
        return f'<b class="{"up" if found.value > 0 else "down"}">{text}</b>'
    return text


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
            chart.region(start, size, facts.SLICES[s], s)
            start = size
    chart.line(rank, counts[rank - 1], name="label", points=False)
    rows = []
    for s, name in enumerate(facts.SLICES):
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
    shares = table(
        "The slices", ["slice", "labels", "training rows a label", "share of the labels observed here"], rows
    )
    few = 100 * float((counts < 5).mean()) if counts.size else 0.0
    caption = f"{few:.0f} % of the labels have fewer than 5 training rows. Both axes are logarithmic."
    return plots(figure(chart.svg(), caption)) + shares


def deciles(trial: Trial, ks: tuple[int, ...]) -> str:
    """P@k and PSP@k split by the frequency decile of the labels that earned them."""
    found = [facts.by_decile(trial.Y, m.topk, trial.counts, trial.inverse, ks) for m in trial.models]
    names = [m.name for m in trial.models]
    pieces = []
    for k in ks:
        for what, title in (("precision", f"P@{k}"), ("scored", f"PSP@{k}")):
            values = [getattr(f, what)[k] for f in found]
            pieces.append(_decile_chart(f"{title} earned in each decile", f"{title}, percent", names, values))
    pieces.append(
        _decile_chart(f"Recall@{ks[-1]} within each decile", "recall, percent", names, [f.recall for f in found])
    )
    rows = []
    for d in range(10):
        one = found[0]
        cells = [str(d + 1), f"{one.rows_from[d]:,} – {one.rows_to[d]:,}"]
        for f in found:
            cells += [f"{f.precision[ks[-1]][d]:.2f}", f"{f.scored[ks[-1]][d]:.2f}", f"{f.recall[d]:.1f}"]
        rows.append(cells)
    columns = ["decile", "training rows"]
    for name in names:
        columns += [f"{name} P@{ks[-1]}", f"{name} PSP@{ks[-1]}", f"{name} recall"]
    intro = (
        "<p>Labels seen in training, in ten groups of equal size; decile 1 holds the most frequent ones. "
        "The bars of P@k and PSP@k add up to the metric; recall is that within the decile.</p>"
    )
    return (
        intro
        + plots(*pieces)
        + f"<details><summary>The numbers as a table</summary>{table('By decile', columns, rows)}</details>"
    )


def _decile_chart(title: str, caption: str, names: list[str], values: list[np.ndarray]) -> str:
    x = Axis("decile of label frequency (1 = most frequent)", 0.4, 10.6, ticks=range(1, 11))
    chart = Chart(title, x, spanning(caption, *values, zero=True))
    width = 0.8 / len(values)
    for s, heights in enumerate(values):
        for d, height in enumerate(heights):
            left = d + 0.6 + s * width
            chart.bar(left, left + width * 0.92, float(height), series=s, name=f"{names[s]}, decile {d + 1}")
    return figure(chart.svg(), title, names)


def trade_off(trial: Trial, k: int) -> str:
    """P@k against PSP@k when candidates are ranked by probability × (1/p)^t."""
    names = [m.name for m in trial.models]
    ks = sorted({1, k})
    wanted = [f"{kind}@{at}" for at in ks for kind in ("p", "psp")]
    steps = [t / 10 for t in range(11)]
    curves = [
        trade_off_curve(m.candidates, m.chances, trial.Y, trial.propensity, powers=steps, metrics=wanted)
        for m in trial.models
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
        numbers = table(f"P@{at} / PSP@{at} by t", ["t", *names], rows)
        pieces.append(
            figure(chart.svg(), "The large mark is t = 0 (scores as they are), the far end t = 1.", names, numbers)
        )
    intro = (
        "<p>One knob from precision to the tail: each model's best candidates, ranked by score × (1/p)<sup>t</sup>, "
        "where p is the chance that a relevant label was observed. <code>tailwise train --tail t</code> sets it; "
        "a model trained with it is shown from t = 0 too.</p>"
    )
    return intro + plots(*pieces)


def coverage(trial: Trial) -> str:
    """How many different labels are found somewhere, by k."""
    ks = [k for k in (1, 2, 3, 4, 5, 7, 10, 15, 20) if k <= trial.models[0].topk.labels.shape[1]]
    names = [m.name for m in trial.models]
    curves = [facts.coverage_curve(trial.Y, m.topk, ks) for m in trial.models]
    chart = Chart("Coverage@k", Axis("k", 0, ks[-1] * 1.03), spanning("coverage, percent", *curves, zero=True))
    for s, curve in enumerate(curves):
        chart.line(ks, curve, series=s, name=names[s])
    rows = [[str(k), *(f"{c[i]:.1f}" for c in curves)] for i, k in enumerate(ks)]
    caption = "Distinct labels found in some row's top k, of the distinct labels of these rows."
    return plots(figure(chart.svg(), caption, names, table("Coverage@k, percent", ["k", *names], rows)))


def norms(trial: Trial) -> str:
    """Classifier norms against label frequency."""
    groups = [
        (s, m, facts.norms_by_frequency(m.norms, trial.counts))
        for s, m in enumerate(trial.models)
        if m.norms is not None
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
    return plots(figure(chart.svg(), caption, [m.name for m in trial.models] if len(groups) > 1 else ()))


def calibration(trial: Trial, k: int) -> str:
    """How often a prediction of a given score is right."""
    pieces = []
    for s, judged in enumerate(trial.models):
        found = facts.reliability(trial.Y, judged.topk.padded(k), judged.probabilities)
        x = Axis("score", 0, 1) if judged.probabilities else spanning("score (not a probability)", found.score)
        chart = Chart(f"Calibration of {judged.name}", x, Axis("share that is right", 0, 1))
        if judged.probabilities:
            chart.guide(0, 0, 1, 1)
        chart.line(found.score, found.observed, series=s, name=judged.name)
        rows = [
            [f"{a:.3f}", f"{b:.3f}", f"{n:,}"] for a, b, n in zip(found.score, found.observed, found.size, strict=True)
        ]
        if found.error is not None:
            caption = f"{judged.name}: expected calibration error {found.error:.1f} points; the dashed line is perfect."
        else:
            caption = f"{judged.name}: its scores are not probabilities; the line shows what a score is worth."
        pieces.append(
            figure(chart.svg(), caption, (), table("Bins of equal size", ["mean score", "right", "predictions"], rows))
        )
    intro = (
        f"<p>The top {k} predictions of every row, in bins by score. "
        "Unobserved labels count as wrong, although some are missing labels.</p>"
    )
    return intro + plots(*pieces)


def worst(trial: Trial, k: int) -> str:
    """The labels of each slice that the first model finds worst, with rows that show it."""
    judged = trial.models[0]
    topk = judged.topk.padded(k)
    html = f"<p>By F1 over the top {k} of {tags(judged.name)}, labels with the most test rows first.</p>"
    for s, name in enumerate(facts.SLICES):
        labels = facts.worst_labels(trial.Y, topk, trial.counts, trial.slices == s)
        cards = "".join(_card(trial, judged, topk, label) for label in labels)
        html += f"<h3>{name.capitalize()}</h3>{cards or '<p>No label of this slice occurs in these rows.</p>'}"
    return html


def _card(trial: Trial, judged: Judged, topk: Any, worst_label: facts.WorstLabel) -> str:
    w = worst_label
    name, label_id = trial.label_names[w.label], trial.label_ids[w.label]
    head = tags(name) + (f" <small class='soft'>{tags(label_id)}</small>" if label_id != name else "")
    facts_line = (
        f"{w.training_rows:,} training rows; {w.found} of {w.test_rows} test rows found; "
        f"suggested {w.suggested:,} times, {w.suggested - w.found:,} of them not observed"
    )
    rows = "".join(_example(trial, topk, row, w.label) for row in w.missed)
    details = f"<details><summary>Rows that missed it ({len(w.missed)} shown)</summary>{rows}</details>" if rows else ""
    return f'<article><h4>{head}</h4><p class="soft">{facts_line}</p>{details}</article>'


def _example(trial: Trial, topk: Any, row: int, label: int) -> str:
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
