"""``tailwise evaluate``: how good a model is on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailwise.cli import inputs, options, output

if TYPE_CHECKING:
    from tailwise.data import Rows
    from tailwise.display import Table
    from tailwise.judging import Trial
    from tailwise.metrics import Evaluation
    from tailwise.text import Tagger

Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        help="Names separated by commas, such as p@1,psp@5,recall@5:tail; annif: all that annif eval prints.",
    ),
]
ANNIF = "annif"
"""The metrics of ``annif eval``, all of them."""
_K, _ANNIF_LIMIT = 5, 10
Confidence = Annotated[float, typer.Option(min=0, max=0.999, help="Of the intervals; 0 leaves them out.")]


@options.reads_data
def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|DATA", help="A folder that `tailwise train` wrote; with --predictions the labelled rows."
        ),
    ],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Labelled rows: a file, a folder, - or a data set's name.")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option("--predictions", metavar="FILE", help="What another program predicted, in place of MODEL."),
    ] = None,
    metrics: Metrics = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="How many labels a row gets: 5, and 10 for --metrics annif.")
    ] = None,
    confidence: Confidence = 0.95,
    propensity: options.PropensityName = None,
    training: options.TrainingData = None,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Judge a model on labelled rows, with intervals: precision, propensity-scored precision, coverage, the tail.

    DATA that is a data set's name, or a folder with training and test files, means its test rows. --predictions takes
    JSON Lines, CSV, TSV, .npz and the output of omikuji, PECOS, napkinXC and Annif (a folder of .annif files too).

    Examples:

    tailwise evaluate my-model test.jsonl --text-columns title,abstract

    tailwise evaluate my-model eurlex-4k --metrics p@1,p@5,psp@5,recall@5:tail

    tailwise evaluate --predictions omikuji.txt test.txt --training train.txt --propensity wikipedia
    """
    output.set_up(quiet, jobs)
    from tailwise.errors import InvalidInput

    if (data is None) == (predictions is None):
        raise InvalidInput("pass MODEL and DATA, or --predictions FILE and DATA")
    judged, rows = [predictions or Path(model)], model if data is None else data
    if metrics == ANNIF:
        limit = k or _ANNIF_LIMIT
        trial, _ = judge_all(judged, rows, reading, [f"p@{limit}"], limit)
        known = None if reading.vocab is None else options.read_vocab(reading.vocab, reading.language)
        tagger = trial.models[0].tagger
        vocab = tagger.vocabulary_ if known is None and tagger is not None else known
        found = trial.annif(limit, vocab, confidence or None)
        if as_json:
            output.emit_json({"data": trial.name, "rows": trial.Y.shape[0], "metrics": found.to_dict()})
        else:
            output.emit_table(found.table())
        return
    k = k or _K
    trial, wanted = judge_all(judged, rows, reading, split_names(metrics), k, propensity, training)
    result = trial.metrics(wanted, confidence or None)[trial.models[0].name]
    say_speed(trial)
    guessed = _by_guess(trial, propensity, wanted, confidence or None)
    if as_json:
        beside = {} if guessed is None else {"metrics with Jain's guess": guessed.to_dict()["metrics"]}
        output.emit_json({"data": trial.name, "rows": result.n_rows, "metrics": result.to_dict()["metrics"]} | beside)
    else:
        output.emit_table(result.table())
        if guessed is not None:
            output.emit("")
            output.emit_table(_beside(result, guessed))


def judge_all(
    models: list[Path],
    data: str,
    reading: options.Reading,
    metrics: list[str],
    k: int,
    propensity: str | None = None,
    training: str | None = None,
    *,
    at_least: int = 1,
) -> tuple[Trial, list[str]]:
    """Models and prediction files on labelled rows, with word of what makes figures look better or worse than it is.

    ``at_least`` so many labels of each row are kept. Returns also the metrics: those asked for, else the usual ones as
    far as the training labels are known.
    """
    from tailwise.cli.training import HIERARCHY, hierarchy_propensity
    from tailwise.data import Rows
    from tailwise.errors import InvalidInput
    from tailwise.judging import Training, default_metrics, judge
    from tailwise.propensity import named_propensity
    from tailwise.text import Tagger

    from_hierarchy = propensity == HIERARCHY
    if from_hierarchy and training is None:
        raise InvalidInput(
            "--propensity hierarchy needs --training DATA, and --vocab; a model trained with it keeps it"
        )
    chosen = None if propensity is None or from_hierarchy else named_propensity(propensity)
    depth = max(at_least, deepest(metrics or default_metrics(k), k))
    known = None
    if training is not None:
        learned = inputs.read_rows(training, reading)
        known = Training.of_rows(learned, hierarchy_propensity(learned) if from_hierarchy else chosen)
    found = inputs.load(data, reading, part="test")
    rows = Rows.of(found, "test")
    judged = inputs.open_judged(models, rows.Y.shape[0], depth, inputs.row_names(data))
    if known is None and found.has_test and not any(isinstance(one, Tagger) for one in judged.values()):
        known = Training.of_rows(Rows.of(found, "train"), chosen)
    trial = judge(judged, rows, depth, training=known, propensity=chosen)
    say_caveats(trial)
    if not trial.has_training and not metrics:
        output.warn("without --training DATA there are no propensity-scored metrics, and no head, torso and tail")
    return trial, metrics or default_metrics(k, trial.has_training, trial.unseen > 0)


def _by_guess(trial: Trial, named: str | None, metrics: list[str], confidence: float | None) -> Evaluation | None:
    """The propensity-scored metrics with Jain's guess, where a propensity was estimated; else None."""
    from tailwise.propensity import EstimatedPropensity, JainPropensity, named_propensity

    scored = [metric for metric in metrics if metric.startswith("ps")]
    if named is None or not scored or not trial.has_training:
        return None
    if not isinstance(named_propensity(named), EstimatedPropensity):
        return None
    known = JainPropensity().fit_counts(trial.counts, max(trial.n_samples, int(trial.counts.max())))
    return trial._replace(propensity=known.propensity_).metrics(scored, confidence)[trial.models[0].name]


def _beside(estimated: Evaluation, guessed: Evaluation) -> Table:
    from tailwise.display import Table

    rows = [[metric, estimated[metric].cell(), guessed[metric].cell()] for metric in guessed]
    return Table("propensities", ["metric", "from the audit", "Jain's guess"], rows, ["in percent"])


def judge_one(name: str, tagger: Tagger, rows: Rows, metrics: list[str]) -> Evaluation:
    """The metrics of one tagger on labelled rows, with word of what nobody could have found and of the time it took."""
    from tailwise.judging import judge

    trial = judge({name: tagger}, rows, deepest(metrics, 1))
    say_caveats(trial)
    result = trial.metrics(metrics)[name]
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
            "none but the names of a vocabulary find them, else they count as missed"
        )


def say_speed(trial: Trial) -> None:
    """Tell how long prediction took."""
    for judged in trial.taggers:
        rate = trial.Y.shape[0] / max(judged.seconds, 1e-9)
        output.say(f"{judged.name}: predicted {trial.Y.shape[0]:,} rows in {judged.seconds:.1f} s ({rate:,.0f} rows/s)")
