"""``tailwise learn``: a model learns from more records, without starting again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import inputs, options, output


@options.reads_data
def learn(
    model_path: options.ModelPath,
    data: options.Data,
    output_path: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="MODEL2", help="The folder to write; by default MODEL is replaced."),
    ] = None,
    training: Annotated[
        str | None,
        typer.Option(
            "--training", metavar="DATA", help="All records learnt from so far, where MODEL did not keep them."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model that is at MODEL2.")] = False,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Learn from new records, labels and words; a record that is known already gets its labels anew.

    Only what changed is learnt again. MODEL stays as it is until the new one is whole.

    Examples:

    tailwise train records.jsonl -o my-model --keep-training-data

    tailwise learn my-model new-records.jsonl

    tailwise learn my-model corrected.csv -o my-model-2 --label-separator ';'
    """
    output.set_up(quiet, jobs)
    from tailwise.cli.training import update_tagger

    facts = update_tagger(
        model_path,
        lambda: inputs.read_rows(data, reading),
        None if training is None else lambda: inputs.read_rows(training, reading),
        output_path,
        overwrite=overwrite,
    )
    if as_json:
        output.emit_json(facts)
    else:
        output.emit(f"{facts['model']}")
