"""What an audit says as one self-contained HTML page."""

from __future__ import annotations

import numpy as np

from tailwise.audit.estimating import AuditEstimate, Part
from tailwise.audit.plan import Plan
from tailwise.display import Table
from tailwise.metrics.result import Estimate
from tailwise.pages.page import cards, figure, page, plots, tags
from tailwise.pages.svg import Axis, Chart
from tailwise.propensity import AuditedPropensity, JainPropensity

_POINTS = 60


def build_page(plan: Plan, found: AuditEstimate, title: str) -> str:
    """The page: what is missing and wrong, the propensity curve, true precision, the reviewers, and the limits."""
    import tailwise

    parts = [
        ("missing", "What is missing and wrong", _shares(found)),
        ("propensity", "The propensity curve", _curve(plan, found)),
        ("precision", "How good the model is in truth", _precision(found)),
        ("reviewers", "The reviewers", _sentences([line for line in found.notes() if line.startswith("reviewers")])),
        ("limits", "What the answers can tell", _sentences(plan.limits())),
    ]
    return page(title, _lead(found), parts, f"Made by tailwise {tailwise.__version__}. No script, no network.")


def _lead(found: AuditEstimate) -> str:
    agreement = f"{found.kappa:.2f}" if found.n_doubles else "–"
    return cards(
        [
            ("questions", f"{found.n_questions:,}"),
            ("answers", f"{found.n_answers:,}"),
            ("unsure", f"{found.n_unsure:,}"),
            ("agreement (kappa)", agreement),
            *((f"missing, {name}", f"{part.missing.value:.0f} %") for name, part in found.strata.items()),
        ]
    )


def _sentences(lines: list[str]) -> str:
    return "".join(f"<p>{tags(line[:1].upper() + line[1:])}</p>" for line in lines)


def _shares(found: AuditEstimate) -> str:
    table = found.table()
    return table._replace(notes=()).html() + plots(
        _bars("By label frequency", list(found.strata.values())),
        _bars("By group of labels", list(found.groups.values())),
    )


def _bars(title: str, parts: list[Part]) -> str:
    names = [part.name.removeprefix("decile") for part in parts]
    chart = Chart(
        title, Axis("", -0.5, len(parts) - 0.5, ticks=range(len(parts)), names=names), Axis("percent", 0, 100)
    )
    for place, part in enumerate(parts):
        for series, (what, share) in enumerate((("missing", part.missing), ("wrong", part.wrong))):
            left = place - 0.35 + 0.36 * series
            _bar(chart, left, 0.32, share, series, f"{part.name}, {what}")
    return figure(
        chart.svg(), f"{title}: missing and wrong labels; the thin lines are intervals.", ["missing", "wrong"]
    )


def _bar(chart: Chart, left: float, width: float, share: Estimate, series: int, name: str) -> None:
    if np.isnan(share.value):
        return
    chart.bar(left, left + width, share.value, series=series, name=name)
    if not np.isnan(share.low):
        chart.interval(left + width / 2, share.low, share.high, series=5)


def _curve(plan: Plan, found: AuditEstimate) -> str:
    if found.propensity is None:
        return _sentences(["There are too few answers about unrecorded pairs for a curve."])
    fit, pool = found.propensity.fit_, plan.pool
    counts = np.geomspace(1, max(10, int(pool.label_counts.max())), _POINTS)

    def values(known: JainPropensity) -> np.ndarray:
        return 1.0 / known.inverse_at(counts, pool.n_samples)

    chart = Chart(
        "Propensity by label frequency",
        Axis("training rows of the label", 0.9, float(counts[-1]) * 1.1, True),
        Axis("propensity", 0, 1),
    )
    chart.line(counts, values(found.propensity), series=0, name="from the answers", points=False)
    chart.line(counts, values(JainPropensity()), series=1, name="Jain's guess", points=False)
    if len(found.curves):
        band = np.array([values(AuditedPropensity(a, b=b, odds=odds)) for a, b, odds in found.curves])
        for level in (1 - found.confidence) / 2, (1 + found.confidence) / 2:
            chart.line(counts, np.quantile(band, level, axis=0), series=2, name="interval", points=False)
    for frequency, rate in zip(fit.frequency, fit.rate, strict=True):
        chart.point(frequency, rate, series=0, name="answers")
    caption = "Points are bins of answers; the curve is fitted to them, beside the guess that is made without answers."
    names = ["from the answers", "Jain's guess", f"{found.confidence:.0%} interval"]
    return plots(figure(chart.svg(), caption, names, found.propensity.table().html()))


def _precision(found: AuditEstimate) -> str:
    rows = [[f"P@{k}", f"{recorded:.1f}", true.cell()] for k, (recorded, true) in found.precision.items()]
    caption = "Precision on the audited rows, in percent: counted on recorded labels, and on true ones by the answers"
    return Table(caption, ["metric", "recorded labels", "true labels"], rows).html()
