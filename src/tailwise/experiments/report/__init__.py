"""One self-contained HTML file that shows how models do on labelled rows."""

from __future__ import annotations

from tailwise.display import Table, describe
from tailwise.experiments.report import sections
from tailwise.experiments.report.glossary import glossary
from tailwise.judging import Trial, default_metrics, usual_ks
from tailwise.pages.page import cards, page

__all__ = ["CANDIDATES", "build_report"]

CANDIDATES = 50
"""How many labels of each row a report needs: the trade-off curve ranks them anew."""


def build_report(trial: Trial, *, k: int = 5, title: str | None = None) -> str:
    """The report as HTML: works without a network, on a phone, by keyboard, in light and dark.

    ``trial`` comes from :func:`~tailwise.judging.judge` with at least :data:`CANDIDATES` labels a row. What needs a
    model is left out for other programs' predictions, and what needs training rows where none are known.
    """
    import tailwise

    names = [judged.name for judged in trial.models]
    found = trial.metrics(default_metrics(k, trial.has_training, trial.unseen > 0))
    parts = [("metrics", "Metrics", sections.metrics(found, k))]
    if trial.has_training:
        parts += [
            ("frequencies", "Label frequencies", sections.frequencies(trial)),
            ("deciles", "Precision by label frequency", sections.deciles(trial, usual_ks(k))),
        ]
    if trial.has_training and trial.taggers:
        parts += [("trade-off", "Precision against the tail", sections.trade_off(trial, k))]
    parts += [("coverage", "Coverage", sections.coverage(trial))]
    if trial.has_training and trial.taggers:
        parts += [("norms", "Classifier norms", sections.norms(trial))]
    parts += [
        ("calibration", "Calibration", sections.calibration(trial, k)),
        ("worst", "Worst labels", sections.worst(trial, k)),
        ("glossary", "Glossary", glossary()),
    ]
    title = title or f"{', '.join(names)} on {trial.name}"
    return page(title, _lead(trial), parts, f"Made by tailwise {tailwise.__version__}. No script, no network.")


def _lead(trial: Trial) -> str:
    rows = trial.Y.shape[0]
    seen = int((trial.counts > 0).sum())
    facts = [("rows judged", f"{rows:,}"), ("labels a row", f"{trial.Y.nnz / max(1, rows):.2f}")]
    if trial.has_training:
        facts.insert(1, ("labels in training", f"{seen:,}"))
        facts.append(("labels unknown to training", f"{100 * trial.unseen / max(1, trial.Y.nnz):.1f} %"))
    lines = [
        [j.name, "another program's predictions", "–", "–"]
        if j.tagger is None
        else [j.name, describe(j.tagger.model_), f"{j.seconds:.1f} s", f"{rows / max(j.seconds, 1e-9):,.0f}"]
        for j in trial.models
    ]
    return cards(facts) + Table("Models", ["model", "what it is", "prediction", "rows a second"], lines, left=2).html()
