"""``tailwise compare``: which of several models is really better."""

from __future__ import annotations

from tailwise.cli import inputs, output
from tailwise.cli.evaluate import Confidence, Metrics, as_dict, deepest, interval, say_speed, say_unseen, split_names


def compare(
    models: inputs.ModelPaths,
    data: inputs.Data,
    metrics: Metrics = None,
    k: inputs.K = 5,
    confidence: Confidence = 0.95,
    text_columns: inputs.TextColumns = None,
    label_column: inputs.LabelColumn = None,
    label_separator: inputs.LabelSeparator = None,
    format: inputs.Format = None,
    duplicates: inputs.Duplicates = None,
    label_base: inputs.LabelBase = None,
    feature_base: inputs.FeatureBase = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Judge models on the same rows; differences to the first model come with paired intervals, * where they exclude 0.

    Example:

    tailwise compare plain-model tail-model test.jsonl --text-columns title,abstract
    """
    output.set_quiet(quiet)
    from tailwise.experiments.judging import default_metrics, judge_metrics
    from tailwise.experiments.trial import judge

    wanted = split_names(metrics) or default_metrics(k)
    reading = inputs.Reading(
        text_columns,
        label_column,
        label_separator,
        format,
        duplicates,
        label_base=label_base,
        feature_base=feature_base,
    )
    trial = judge(inputs.open_taggers(models), inputs.read_rows(data, reading, part="test"), deepest(wanted, k))
    say_unseen(trial)
    results, differences = judge_metrics(trial, wanted, confidence or None)
    say_speed(trial)
    if as_json:
        output.emit_json(
            {
                "data": trial.name,
                "rows": trial.Y.shape[0],
                "metrics": {name: {m: as_dict(found[m]) for m in wanted} for name, found in results.items()},
                "differences": {name: {m: as_dict(found[m]) for m in wanted} for name, found in differences.items()},
            }
        )
        return
    columns = ["metric", *results, *(f"{name} − {trial.models[0].name}" for name in differences)]
    rows = []
    for metric in wanted:
        values = [f"{found[metric].value:.2f}" for found in results.values()]
        changes = []
        for found in differences.values():
            change = found[metric]
            star = "*" if change.low > 0 or change.high < 0 else " "
            changes.append(f"{change.value:+.2f} {interval(change)}{star}")
        rows.append([metric, *values, *changes])
    output.emit(output.table(columns, rows))
