"""``tailwise train``: from a data file to a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailwise.cli import inputs, options, output, running
from tailwise.models import model_names

if TYPE_CHECKING:
    from tailwise.text import Tagger

_MODEL_HELP = f"auto, or one of {', '.join(model_names())}."


def _complete_model(incomplete: str) -> list[str]:
    return [name for name in ["auto", *model_names()] if name.startswith(incomplete)]


ModelName = Annotated[str, typer.Option("--model", "-m", help=_MODEL_HELP, autocompletion=_complete_model)]


@options.reads_data
def train(
    data: options.Data,
    model_path: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The folder to write.")],
    model: ModelName = "auto",
    tail: Annotated[
        float,
        typer.Option("--tail", min=0, max=1, help="From precision (0) to rare labels (1): rank by score × (1/p)^t."),
    ] = 0.0,
    effort: Annotated[
        str,
        typer.Option(
            help="quick, normal or best: how much training may take where --model auto chooses; best combines models."
        ),
    ] = "normal",
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            min=0,
            help="About how long training may take; what --model auto does not need goes into choosing its settings by "
            "rows held out (extra tune).",
        ),
    ] = None,
    calibrate: Annotated[
        bool, typer.Option(help="Make scores probabilities, which fits the model once more on a part of the rows.")
    ] = True,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="param=value of the model; repeat it. `tailwise info dismec` lists them."),
    ] = None,
    feature_settings: Annotated[
        list[str] | None, typer.Option("--set-features", help="param=value of the text features; repeat it.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="FOLDER|minilm",
            help="Also read what a sentence encoder makes of each text: a local folder, or minilm (English).",
        ),
    ] = None,
    holdout: Annotated[
        float,
        typer.Option("--holdout", min=0, max=0.9, help="Hold out this share of the rows, and judge the model on them."),
    ] = 0.0,
    propensity: options.PropensityName = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    keep: Annotated[
        bool, typer.Option("--keep-training-data", help="Keep the rows with the model, for `tailwise learn`.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model that is there already.")] = False,
    reading: options.Reading = options.UNTOLD,
    seed: Annotated[int, typer.Option(help="The random seed.")] = 0,
    workdir: running.WorkDir = None,
    engine: running.Engine = running.THREADS,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Learn from texts (or numeric rows) with labels and write a model folder.

    Examples:

    tailwise train records.jsonl -o my-model --text-columns title,abstract

    tailwise train records.csv -o my-model --text-columns body --label-column tags --label-separator ';' --tail 0.5

    tailwise train records.xlsx -o my-model --holdout 0.1

    tailwise train corpus/ -o my-model --vocab thesaurus.ttl --exclude deprecated --exclude 'rows<2'

    tailwise train records.jsonl -o my-model --text-columns title,abstract --effort best --minutes 30

    tailwise train eurlex-4k -o my-model --model parabel --set n_trees=1

    tailwise train large.jsonl -o my-model --workdir /shared/run --engine dask://head:8786
    """
    output.set_up(quiet, jobs)
    from tailwise.cli.evaluate import judge_one
    from tailwise.cli.training import HIERARCHY, hierarchy_propensity, make_tagger, train_tagger
    from tailwise.data import Rows, split_rows
    from tailwise.judging import default_metrics

    held: list[Rows] = []

    def read() -> Rows:
        rows = inputs.read_rows(data, reading)
        if not holdout:
            return rows
        training, test = split_rows(rows.Y, holdout, random_state=seed)
        held.append(rows.take(test))
        return rows.take(training)

    def make(propensity: Any) -> Tagger:
        given = (model, settings or [], feature_settings or [])
        return make_tagger(*given, **composed, seed=seed, propensity=propensity, rules=rules, keep=keep)

    rules = options.label_rules(include, exclude)
    composed: dict[str, Any] = {
        "effort": effort,
        "minutes": minutes,
        "tail": tail,
        "calibrate": calibrate,
        "encoder": encoder,
        "vectors": reading.vectors is not None,
    }
    from_hierarchy = propensity == HIERARCHY
    asked = make(None if from_hierarchy else propensity)
    with running.run_in(workdir, engine):
        tagger, facts = train_tagger(
            lambda rows: make(hierarchy_propensity(rows)) if from_hierarchy else asked,
            read,
            model_path,
            overwrite=overwrite,
        )
    if workdir is not None:
        output.say(f"{workdir} holds the pieces of the work; it is not needed any more")
    for rows in held:
        result = judge_one(model_path.resolve().name, tagger, rows, default_metrics())
        output.say(
            f"{model_path} was trained on {facts['rows']:,} rows and judged on the {result.n_rows:,} held out; "
            "without --holdout it learns from all"
        )
        facts["holdout"] = {"rows": result.n_rows, "metrics": result.to_dict()["metrics"]}
        if not as_json:
            output.emit_table(result.table())
    if as_json:
        output.emit_json(facts)
    else:
        output.emit(f"{model_path}")
