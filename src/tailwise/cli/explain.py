"""``tailwise explain``: which words spoke for and against a label."""

from __future__ import annotations

from typing import Annotated

import typer

from tailwise.cli import options, output
from tailwise.cli.suggest import open_text_tagger, read_text
from tailwise.display import Table, visible


def explain(
    model: options.ModelPath,
    label: Annotated[str, typer.Argument(help="The label: its name or its id.")],
    text: Annotated[str | None, typer.Argument(help="The text; standard input where it is left out.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many words of each kind.")] = 10,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Show the words of a text that spoke for and against a label, and what else made its score.

    Example:

    tailwise explain my-model Cerium "Catalytic oxidation of cerium in nuclear fuel"
    """
    output.set_up(quiet, jobs)
    whole = read_text(text)
    tagger = open_text_tagger(model)
    index = tagger.find_label(label)
    why = tagger.explain(whole, index)
    words = sorted(why.features(), key=lambda part: -part.value)
    supporting = [part for part in words if part.value > 0][:n]
    opposing = [part for part in reversed(words) if part.value < 0][:n]
    if as_json:
        output.emit_json({"id": tagger.label_ids_[index], "name": tagger.label_names_[index], **why._asdict()})
        return
    output.emit(visible(f"{tagger.label_names_[index]} ({tagger.label_ids_[index]}): score {why.score:.3f}"))
    for line in why.lines(features=False, indent="  "):
        output.emit(visible(line))
    for title, parts in (("for", supporting), ("against", opposing)):
        output.emit(f"\n{title}:")
        if parts:
            output.emit_table(Table("", ["word", "weight"], [[part.name, f"{part.value:+.3f}"] for part in parts]))
        else:
            output.emit("nothing")
