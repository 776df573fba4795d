"""``tailwise report``: one HTML file that shows how models do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import options, output
from tailwise.cli.evaluate import judge_all, say_speed


@options.reads_data
def report(
    models: options.Judged,
    data: options.Data,
    to: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")],
    k: options.K = 5,
    propensity: options.PropensityName = None,
    training: options.TrainingData = None,
    title: Annotated[str | None, typer.Option(help="The report's title.")] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the figures in each model's folder, for its page in `tailwise serve`.")
    ] = False,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write a self-contained HTML report: metrics with intervals, plots by label frequency, the worst labels with rows.

    A file in place of a model is what another program predicted, as in `tailwise compare`.

    Examples:

    tailwise report my-model other-model test.jsonl --text-columns title,abstract -o report.html

    tailwise report my-model omikuji.txt test.txt -o report.html
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import write_whole
    from tailwise.experiments.report import CANDIDATES, build_report
    from tailwise.experiments.report import kept as keeping

    trial, _ = judge_all(models, data, reading, [], k, propensity, training, at_least=CANDIDATES)
    say_speed(trial)
    html = build_report(trial, k=k, title=title)
    write_whole(to, html)
    output.say(f"wrote {to}: {len(html) / 1e3:,.0f} kB")
    if keep:
        for folder, judged in zip(models, trial.models, strict=True):
            if judged.tagger is not None:
                output.say(f"kept the figures in {keeping.keep(trial, judged, folder, k)}")
    if as_json:
        output.emit_json({"report": str(to), "bytes": len(html.encode()), "rows": trial.Y.shape[0]})
    else:
        output.emit(str(to))
