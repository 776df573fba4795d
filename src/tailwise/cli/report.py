"""``tailwise report``: one HTML file that shows how models do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import inputs, output
from tailwise.cli.evaluate import say_caveats, say_speed


@inputs.reads_data
def report(
    models: inputs.ModelPaths,
    data: inputs.Data,
    to: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")],
    k: inputs.K = 5,
    propensity: inputs.PropensityName = None,
    title: Annotated[str | None, typer.Option(help="The report's title.")] = None,
    reading: inputs.Reading = inputs.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write a self-contained HTML report: metrics with intervals, plots by label frequency, the worst labels with rows.

    Example:

    tailwise report my-model other-model test.jsonl --text-columns title,abstract -o report.html
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import write_whole
    from tailwise.experiments.report import CANDIDATES, build_report
    from tailwise.judging import judge
    from tailwise.propensity import named_propensity

    rows = inputs.read_rows(data, reading, part="test")
    chosen = None if propensity is None else named_propensity(propensity)
    trial = judge(inputs.open_taggers(models), rows, max(k, CANDIDATES), propensity=chosen)
    say_caveats(trial)
    say_speed(trial)
    html = build_report(trial, k=k, title=title)
    write_whole(to, html)
    output.say(f"wrote {to}: {len(html) / 1e3:,.0f} kB")
    if as_json:
        output.emit_json({"report": str(to), "bytes": len(html.encode()), "rows": trial.Y.shape[0]})
    else:
        output.emit(str(to))
