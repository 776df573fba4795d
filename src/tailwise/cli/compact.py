"""``tailwise compact``: a model in fewer bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import inputs, options, output


def compact(
    model_path: options.ModelPath,
    small: Annotated[Path, typer.Option("--output", "-o", metavar="SMALL", help="The folder to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model that is there already.")] = False,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write MODEL with its linear weights in one byte each: about a third of the size, faster for single texts.

    Scores move in their third digit. The small model suggests, explains and serves; it does not learn from new records:
    keep MODEL for that.

    Examples:

    tailwise compact my-model -o my-small-model

    tailwise compare my-model my-small-model test.jsonl
    """
    output.set_up(quiet, jobs)
    from tailwise import compacting
    from tailwise.cli.training import check_writable

    check_writable(small, overwrite=overwrite)
    made = compacting.compact(inputs.open_tagger(model_path))
    made.save(small)
    before, after = (sum(file.stat().st_size for file in path.iterdir()) for path in (model_path, small))
    if as_json:
        output.emit_json({"model": str(small), "bytes": after, "bytes_before": before})
    else:
        output.emit(f"wrote {small}: {after / 1e6:.1f} MB of {before / 1e6:.1f} MB")
