"""``tailwise explain``: which words spoke for and against a label."""

from __future__ import annotations

from typing import Annotated

import typer

from tailwise.cli import inputs, output
from tailwise.cli.suggest import read_text


def explain(
    model: inputs.ModelPath,
    label: Annotated[str, typer.Argument(help="The label: its name or its id.")],
    text: Annotated[str | None, typer.Argument(help="The text; standard input where it is left out.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many words of each kind.")] = 10,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Show the words of a text that spoke for and against a label, from a linear model's weights.

    Example:

    tailwise explain my-model Cerium "Catalytic oxidation of cerium in nuclear fuel"
    """
    output.set_quiet(quiet)
    whole = read_text(text)
    found = inputs.open_tagger(model).explain(whole, label, n)
    if as_json:
        output.emit_json(found)
        return
    output.emit(f"{found.name} ({found.id}): score {found.score:.3f}, of which bias {found.bias:+.3f}")
    for title, words in (("for", found.supporting), ("against", found.opposing)):
        output.emit(f"\n{title}:")
        output.emit(
            output.table(["word", "weight"], [[c.feature, f"{c.value:+.3f}"] for c in words]) if words else "nothing"
        )
