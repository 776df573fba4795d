"""``tailwise tune``: which settings of a model the data find best."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailwise.cli import inputs, options, output
from tailwise.cli.train import ModelName

if TYPE_CHECKING:
    from scipy import sparse

    from tailwise.base import XMCModel
    from tailwise.data import Rows
    from tailwise.tuning import Trial


@options.reads_data
def tune(
    data: options.Data,
    model: ModelName = "auto",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="param=value of the model that stays as it is; repeat it.")
    ] = None,
    feature_settings: Annotated[
        list[str] | None, typer.Option("--set-features", help="param=value of the text features; repeat it.")
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="RANGE",
            help="What to choose: C=0.1..10, loss=hinge,logistic, or a name alone for its usual range; repeat it. "
            "By default all that the model finds worth trying.",
        ),
    ] = None,
    metric: Annotated[str, typer.Option("--metric", help="What to maximise.")] = "p@5",
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--within",
            metavar="METRIC=POINTS",
            help="Points of another metric that may be lost against the model as it is, such as p@1=1; repeat it.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="How many settings to try.")] = 30,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0, help="No setting is tried any more after so many minutes.")
    ] = None,
    study: Annotated[
        Path | None, typer.Option("--study", metavar="FILE", help="Keep what was tried; the same command goes on.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE.html", help="Write a page with plots of what mattered.")
    ] = None,
    propensity: options.PropensityName = None,
    reading: options.Reading = options.UNTOLD,
    seed: Annotated[int, typer.Option(help="The random seed.")] = 0,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Choose the settings of a model on rows held out, small parts of the data first; prints the best.

    Examples:

    tailwise tune records.jsonl --text-columns title,abstract --model bonsai

    tailwise tune eurlex-4k --model pw-dismec --metric psp@5 --within p@1=1 --try weighting=tail,convex,steep

    tailwise tune eurlex-4k --model dismec --trials 50 --study search.jsonl --page search.html
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import write_whole
    from tailwise.cli.settings import parse_points, parse_ranges
    from tailwise.display import describe
    from tailwise.propensity import named_propensity
    from tailwise.tuning import tune as search
    from tailwise.tuning.result import shown_value

    wanted, points = parse_ranges(ranges or []), parse_points(within or [])
    known = None if propensity is None else named_propensity(propensity)
    rows = inputs.read_rows(data, reading)
    X, tried = _prepared(rows, model, settings or [], feature_settings or [], seed)
    output.say(f"tuning {describe(tried)} on {X.shape[0]:,} rows, {X.shape[1]:,} features, {rows.Y.shape[1]:,} labels")

    def tell(trial: Trial) -> None:
        setting = ", ".join(f"{name} {shown_value(value)}" for name, value in trial.parameters.items())
        end = "" if trial.whole else ", given up"
        output.say(f"trial {trial.number}: {setting}: {metric} {trial.values[-1]:.2f}{end} ({trial.seconds:.1f} s)")

    found = search(
        tried,
        X,
        rows.Y,
        parameters=wanted,
        metric=metric,
        max_loss=points,
        n_trials=trials,
        minutes=minutes,
        propensity=known,
        study=study,
        random_state=seed,
        on_trial=tell,
    )
    if page is not None:
        write_whole(page, found.page())
        output.say(f"wrote {page}")
    if as_json:
        output.emit_json(
            {
                "model": describe(tried),
                "parameters": found.parameters,
                "metric": metric,
                "values": {"usual": found.trials[0].values[-1], "best": found.trials[found.best].values[-1]},
                "importance": found.importance,
                "trials": found.records(),
            }
        )
        return
    output.emit_table(found.table())
    given = [f"--set {shlex.quote(text)}" for text in settings or []]
    chosen = [f"--set {shlex.quote(f'{name}={shown_value(value)}')}" for name, value in found.parameters.items()]
    if not any("__" in name for name in found.parameters):
        name = model if model != "auto" else _name_of(tried)
        output.say(" ".join([f"tailwise train {data} -o MODEL --model {name}", *given, *chosen]))


def _prepared(
    rows: Rows, name: str, settings: list[str], feature_settings: list[str], seed: int
) -> tuple[sparse.csr_array, XMCModel]:
    """The rows of X and the model that the options ask for."""
    from tailwise.cli.settings import parse_settings
    from tailwise.cli.training import by_size, check_features_wanted, named_model
    from tailwise.text import TextFeatures
    from tailwise.text.rows import KnownLabels
    from tailwise.text.tagger import MAKERS

    tried = None if name == "auto" else named_model(name, settings, seed)
    asked = parse_settings(TextFeatures, feature_settings, "--set-features")
    check_features_wanted(rows, bool(asked))
    if rows.texts is None:
        X = rows.rows
    else:
        kind = TextFeatures if tried is None else MAKERS[tried.reads]
        known = KnownLabels(rows.label_ids, rows.label_names, rows.Y, rows.vocab)
        X = (TextFeatures(**asked) if asked else kind()).fit_transform(rows.rows, labels=known)
    if tried is None:
        tried = by_size(settings, seed).choose(X, rows.Y).model
    return X, tried


def _name_of(model: XMCModel) -> str:
    from tailwise.models import name_of

    return name_of(type(model).__name__)
