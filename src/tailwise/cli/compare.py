"""``tailwise compare``: which of several models is really better."""

from __future__ import annotations

from tailwise.cli import options, output
from tailwise.cli.evaluate import Confidence, Metrics, judge_all, say_speed, split_names


@options.reads_data
def compare(
    models: options.Judged,
    data: options.Data,
    metrics: Metrics = None,
    k: options.K = 5,
    confidence: Confidence = 0.95,
    propensity: options.PropensityName = None,
    training: options.TrainingData = None,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Judge models on the same rows; differences to the first model come with paired intervals.

    ▲ better, ▼ worse, = no clear difference: the interval holds 0. A file in place of a model is what another program
    predicted: JSON Lines, CSV, TSV, .npz, or the output of omikuji, PECOS or napkinXC.

    Examples:

    tailwise compare plain-model tail-model test.jsonl --text-columns title,abstract

    tailwise compare my-model omikuji.txt test.txt
    """
    output.set_up(quiet, jobs)
    trial, wanted = judge_all(models, data, reading, split_names(metrics), k, propensity, training)
    found = trial.metrics(wanted, confidence or None)
    say_speed(trial)
    if as_json:
        output.emit_json(
            {
                "data": trial.name,
                "rows": trial.Y.shape[0],
                "metrics": {name: evaluation.to_dict()["metrics"] for name, evaluation in found.evaluations.items()},
                "differences": found.to_dict()["differences"],
            }
        )
    else:
        output.emit_table(found.table())
