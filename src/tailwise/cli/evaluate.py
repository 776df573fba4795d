"""``tailwise evaluate``: how good a model is on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tailwise.cli import inputs, output

if TYPE_CHECKING:
    from tailwise.data import Rows
    from tailwise.judging import Trial
    from tailwise.metrics import Evaluation
    from tailwise.tagger import Tagger

Metrics = Annotated[
    str | None,
    typer.Option("--metrics", help="Names separated by commas, such as p@1,psp@5,recall@5:tail."),
]
Confidence = Annotated[float, typer.Option(min=0, max=0.999, help="Of the intervals; 0 leaves them out.")]


@inputs.reads_data
def evaluate(
    model: inputs.ModelPath,
    data: inputs.Data,
    metrics: Metrics = None,
    k: inputs.K = 5,
    confidence: Confidence = 0.95,
    reading: inputs.Reading = inputs.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Judge a model on labelled rows, with intervals: precision, propensity-scored precision, coverage, the tail.

    DATA that is a data set's name means its test rows.

    Examples:

    tailwise evaluate my-model test.jsonl --text-columns title,abstract

    tailwise evaluate my-model eurlex-4k --metrics p@1,p@5,psp@5,recall@5:tail
    """
    output.set_up(quiet, jobs)
    from tailwise.judging import default_metrics

    wanted = split_names(metrics) or default_metrics(k)
    tagger = inputs.open_tagger(model)
    rows = inputs.read_rows(data, reading, part="test")
    result = judge_one(model.resolve().name, tagger, rows, wanted, k, confidence)
    if as_json:
        output.emit_json({"data": rows.name, "rows": result.n_rows, "metrics": result.to_dict()["metrics"]})
    else:
        output.emit_table(result.table())


def judge_one(
    name: str, tagger: Tagger, rows: Rows, metrics: list[str], k: int = 5, confidence: float = 0.95
) -> Evaluation:
    """The metrics of one tagger on labelled rows, with word of what nobody could have found and of the time it took."""
    from tailwise.judging import judge

    trial = judge({name: tagger}, rows, deepest(metrics, k))
    say_caveats(trial)
    result = trial.metrics(metrics, confidence or None)[name]
    say_speed(trial)
    return result


def split_names(metrics: str | None) -> list[str]:
    """``"p@1, p@5"`` as a list."""
    return [name.strip() for name in (metrics or "").split(",") if name.strip()]


def deepest(metrics: list[str], k: int) -> int:
    """The largest k that a metric looks at."""
    from tailwise.metrics.names import parse_metric

    return max([k, *(request.k or 0 for request in map(parse_metric, metrics))])


def say_caveats(trial: Trial) -> None:
    """Tell what makes the figures look better or worse than the models are."""
    n_rows = trial.Y.shape[0]
    for name, count in trial.trained_on.items():
        if count:
            output.warn(
                f"{name} was trained on {count:,} of these {n_rows:,} rows ({100 * count / n_rows:.1f} %), so the "
                "figures say too little about new rows; `tailwise split` makes files to train and to judge on"
            )
    if trial.unseen:
        share = 100 * trial.unseen / trial.Y.nnz
        output.warn(
            f"{trial.unseen:,} of {trial.Y.nnz:,} labels in {trial.name} ({share:.1f} %) were never seen in training; "
            "no model finds them, and they count as missed"
        )


def say_speed(trial: Trial) -> None:
    """Tell how long prediction took."""
    for judged in trial.models:
        rate = trial.Y.shape[0] / max(judged.seconds, 1e-9)
        output.say(f"{judged.name}: predicted {trial.Y.shape[0]:,} rows in {judged.seconds:.1f} s ({rate:,.0f} rows/s)")
