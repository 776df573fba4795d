"""``tailwise audit``: what is missing from the labels, found out by asking people a few questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tailwise.cli import inputs, options, output

app = typer.Typer(
    help="""Ask people the few questions that tell how much is missing from the labels, and where.

    Examples:

    tailwise audit plan my-model records.jsonl -o my-audit --questions 500

    tailwise audit export my-audit -o anna.csv --reviewer anna --count 100

    tailwise audit import my-audit anna.csv

    tailwise audit estimate my-audit

    tailwise evaluate my-model test.jsonl --propensity my-audit

    tailwise audit apply my-audit records.jsonl -o better.jsonl
    """,
    no_args_is_help=True,
)
Place = Annotated[str, typer.Argument(metavar="AUDIT", help="The folder of an audit, or a database URL.")]
Reviewer = Annotated[str | None, typer.Option("--reviewer", metavar="NAME", help="Whose answers these are.")]


@app.command()
@options.reads_data
def plan(
    model: options.ModelPath,
    data: options.Data,
    to: Annotated[
        str, typer.Option("--output", "-o", metavar="AUDIT", help="A new folder, or the URL of an empty database.")
    ],
    questions: Annotated[
        int, typer.Option("--questions", min=10, help="About how many pairs people are asked about.")
    ] = 500,
    doubles: Annotated[float, typer.Option(min=0, max=1, help="The share that two reviewers answer.")] = 0.2,
    recorded: Annotated[float, typer.Option(min=0, max=0.9, help="The share about labels that are recorded.")] = 0.2,
    width: Annotated[int, typer.Option(min=5, help="How many labels of a row are looked at.")] = 100,
    floor: Annotated[
        float, typer.Option(min=0.001, max=0.9, help="The least chance to be missing that is asked about.")
    ] = 0.1,
    folds: Annotated[int, typer.Option(min=2, help="Trainings, each on the other folds.")] = 3,
    propensity: options.PropensityName = None,
    seed: Annotated[int, typer.Option(min=0, help="The random seed.")] = 0,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Choose the pairs of record and label to ask people about, and keep them in AUDIT.

    Records that MODEL was trained on are scored by the same kind of model, trained on the others.

    Example:

    tailwise audit plan my-model records.jsonl -o my-audit --questions 500
    """
    output.set_up(quiet, jobs)
    from tailwise.audit import Audit, Settings
    from tailwise.audit.tagging import plan_for_tagger
    from tailwise.persistence import read_manifest
    from tailwise.propensity import named_propensity

    Audit.check_free(to)
    settings = Settings(questions, width, floor, recorded=recorded, doubles=doubles, n_folds=folds, seed=seed)
    guess = None if propensity is None else named_propensity(propensity)
    tagger, digest = inputs.open_tagger(model), str(read_manifest(model)["sha256"])
    rows = inputs.read_rows(data, reading)
    made, origin = plan_for_tagger(tagger, rows, settings, model_digest=digest, propensity=guess)
    Audit.create(to, made, origin, rows.texts).close()
    output.say(f"wrote {to}")
    if as_json:
        table = made.table()
        strata = [dict(zip(table.header, row, strict=True)) for row in table.rows]
        output.emit_json(
            {"audit": to, "questions": made.questions.rows.size, "strata": strata, "limits": made.limits()}
        )
    else:
        output.emit_table(made.table())


@app.command()
def export(
    audit: Place,
    to: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A .csv file to write.")],
    reviewer: Annotated[str, typer.Option("--reviewer", metavar="NAME", help="Who will answer.")],
    count: Annotated[int | None, typer.Option("--count", min=1, help="How many questions; all by default.")] = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write questions for one reviewer as a spreadsheet; they are kept for that reviewer for 30 days.

    Example:

    tailwise audit export my-audit -o anna.csv --reviewer anna --count 100
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import told_when_unwritable
    from tailwise.audit import Audit
    from tailwise.audit.sheets import export_sheet

    with Audit.open(audit) as opened, told_when_unwritable(to):
        n = export_sheet(opened, to, reviewer, count)
    if as_json:
        output.emit_json({"written": str(to), "questions": n})
    else:
        output.emit(f"{to}: {n:,} questions; write yes, no or unsure into the column verdict")


@app.command("import")
def import_answers(
    audit: Place,
    sheet: Annotated[Path, typer.Argument(metavar="FILE", help="The .csv with verdicts.")],
    reviewer: Reviewer = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Take answers from a spreadsheet: all of them, or none where one is wrong. The same file may come again.

    Example:

    tailwise audit import my-audit anna.csv
    """
    output.set_up(quiet, jobs)
    from tailwise.audit import Audit
    from tailwise.audit.sheets import import_sheet

    with Audit.open(audit) as opened:
        done = import_sheet(opened, sheet, reviewer)
    if as_json:
        output.emit_json(done)
    else:
        output.emit(
            f"{done.added:,} answers added, {done.changed:,} changed, {done.known:,} known, {done.empty:,} open"
        )


@app.command()
def status(audit: Place, jobs: output.Jobs = None, as_json: output.Json = False, quiet: output.Quiet = False) -> None:
    """Tell how far the answers are.

    Example:

    tailwise audit status my-audit
    """
    output.set_up(quiet, jobs)
    from tailwise.audit import Audit

    with Audit.open(audit) as opened:
        facts: dict[str, Any] = opened.progress()
    if as_json:
        output.emit_json(facts)
    else:
        by_reviewer = ", ".join(f"{name} {n:,}" for name, n in facts.pop("by reviewer").items())
        output.emit_facts(facts | {"by reviewer": by_reviewer or "–"})


@app.command()
def estimate(
    audit: Place,
    to: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where page and propensity go; by default AUDIT itself."),
    ] = None,
    groups: Annotated[
        str, typer.Option(help="deciles, quantiles, or a .csv with the columns label and group.")
    ] = "deciles",
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Of the intervals.")] = 0.95,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Tell what the answers say: missing and wrong labels, the propensity curve, the model's true precision.

    Writes audit.html and the propensity that --propensity AUDIT uses.

    Examples:

    tailwise audit estimate my-audit

    tailwise evaluate my-model test.jsonl --propensity my-audit
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import write_whole
    from tailwise.audit import Audit, estimate_audit
    from tailwise.audit.groups import read_groups
    from tailwise.audit.page import build_page
    from tailwise.audit.store import is_url
    from tailwise.errors import InvalidInput
    from tailwise.propensity.naming import FOLDER

    if to is None and is_url(audit):
        raise InvalidInput("an audit in a database needs --output FOLDER for its page and propensity")
    folder = Path(audit) if to is None else to
    with Audit.open(audit) as opened:
        chosen = groups if groups in ("deciles", "quantiles") else read_groups(groups, opened.origin.label_ids)
        found = estimate_audit(opened.plan, opened.answers(), groups=chosen, confidence=confidence)
        html = build_page(opened.plan, found, f"Audit of {opened.origin.data}")
    write_whole(folder / "audit.html", html)
    if found.propensity is not None:
        found.propensity.save(folder / FOLDER)
    output.say(f"wrote {folder / 'audit.html'}" + ("" if found.propensity is None else f" and {folder / FOLDER}"))
    if as_json:
        output.emit_json({"labels": found.records(), "notes": found.notes(), "page": folder / "audit.html"})
    else:
        output.emit_table(found.table())


@app.command()
@options.reads_data
def apply(
    audit: Place,
    data: options.Data,
    to: Annotated[Path, typer.Option("--output", "-o", metavar="DATA", help="The file or folder to write.")],
    unchecked: Annotated[
        int, typer.Option("--unchecked", min=0, help="How many probably missing labels that nobody checked are listed.")
    ] = 10_000,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write DATA with confirmed labels added and rejected ones removed, and beside it who said so and when.

    A file of texts keeps all its columns, and rows that nobody changed stay as they are. NAME.changes.csv has every
    judged pair, NAME.unchecked.csv the probably missing labels that nobody has judged.

    Example:

    tailwise audit apply my-audit records.jsonl -o better.jsonl
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import told_when_unwritable
    from tailwise.audit import Audit
    from tailwise.audit.applying import Change, Unchecked, apply_changes, changes_of, edits_of
    from tailwise.audit.applying import unchecked as unchecked_pairs
    from tailwise.audit.sheets import write_sheet
    from tailwise.data import TextDataset
    from tailwise.data.relabelling import keeps_columns, write_relabelled
    from tailwise.data.saving import write_converted
    from tailwise.data.tables import Layout

    found = inputs.load(data, reading, unit_rows=False)
    estimated = inputs.estimated_propensity(audit)
    beside = [to.with_name(f"{to.name.partition('.')[0]}.{what}.csv") for what in ("changes", "unchecked")]
    given = reading.options()
    with Audit.open(audit) as opened, told_when_unwritable(to):
        changes = changes_of(opened)
        if isinstance(found, TextDataset) and keeps_columns(data, to, given.get("format")):
            layout = Layout(*(given.get(name) for name in Layout._fields))
            names = dict(zip(opened.origin.label_ids, opened.origin.label_names, strict=True))
            edits = edits_of(opened, found, changes)
            how: dict[str, Any] = {"format": given.get("format"), "layout": layout, "vocabulary": found.vocab}
            written = [write_relabelled(data, to, edits, found.reading, names=names, **how)]
        else:
            written = write_converted(apply_changes(opened, found, changes), to)
            if isinstance(found, TextDataset):
                output.warn(f"{to} has the texts and labels alone; a file of the format of {data} keeps all columns")
        write_sheet(beside[0], Change._fields, changes)
        write_sheet(beside[1], Unchecked._fields, list(unchecked_pairs(opened, estimated, unchecked)))
    counts = {kind: sum(one.change == kind for one in changes) for kind in ("added", "removed", "disputed")}
    output.say(", ".join(f"{n:,} labels {kind}" for kind, n in counts.items()))
    if as_json:
        output.emit_json(counts | {"written": [str(path) for path in [*written, *beside]]})
    else:
        output.emit("\n".join(map(str, [*written, *beside])))
