"""``tailwise compare``: which of several models is really better."""

from __future__ import annotations

from tailwise.cli import inputs, output
from tailwise.cli.evaluate import Confidence, Metrics, deepest, say_caveats, say_speed, split_names


@inputs.reads_data
def compare(
    models: inputs.ModelPaths,
    data: inputs.Data,
    metrics: Metrics = None,
    k: inputs.K = 5,
    confidence: Confidence = 0.95,
    reading: inputs.Reading = inputs.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Judge models on the same rows; differences to the first model come with paired intervals.

    ▲ better, ▼ worse, = no clear difference: the interval holds 0.

    Example:

    tailwise compare plain-model tail-model test.jsonl --text-columns title,abstract
    """
    output.set_up(quiet, jobs)
    from tailwise.judging import default_metrics, judge

    wanted = split_names(metrics) or default_metrics(k)
    trial = judge(inputs.open_taggers(models), inputs.read_rows(data, reading, part="test"), deepest(wanted, k))
    say_caveats(trial)
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
