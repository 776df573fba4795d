"""``tailwise suggest``: labels for one text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailwise.cli import how_many, inputs, options, output

if TYPE_CHECKING:
    from tailwise.text import Tagger


def read_text(text: str | None) -> str:
    """The text given, or standard input; refused where it is empty."""
    from tailwise.errors import InvalidInput

    if text is None or text == "-":
        if text is None and sys.stdin.isatty():
            output.say("type or paste the text, and end it with Ctrl-D on a line of its own:")
        # The bytes: depending on the locale sys.stdin would let wrong ones pass.
        try:
            text = sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"standard input is not text in UTF-8 ({error.reason} at byte {error.start})") from error
    if not text.strip():
        raise InvalidInput("the text is empty; pass it as an argument or on standard input")
    return text


def open_text_tagger(model: Path) -> Tagger:
    """The tagger in a model folder; refused where it takes numeric rows."""
    from tailwise.errors import InvalidInput

    tagger = inputs.open_tagger(model)
    if tagger.features_ is None:
        raise InvalidInput(
            f"{model} was trained on numeric rows, not on texts; `tailwise predict` reads rows from a file"
        )
    return tagger


def suggest(
    model: options.ModelPath,
    text: Annotated[str | None, typer.Argument(help="The text; standard input where it is left out.")] = None,
    k: how_many.K = None,
    assign: how_many.Assign = None,
    missing: how_many.Missing = False,
    language: Annotated[str | None, typer.Option("--language", help="Of the labels' names, such as de.")] = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Suggest labels for one text, with their score and how rare they are.

    Examples:

    tailwise suggest my-model "Catalytic oxidation of cerium in nuclear fuel"

    pdftotext paper.pdf - | tailwise suggest my-model -k 10 --language en --exclude 'name:*(Motiv)'
    """
    output.set_up(quiet, jobs)
    rules = options.label_rules(include, exclude)
    whole = read_text(text)
    tagger = open_text_tagger(model)
    suggested = how_many.suggester(tagger, k, assign, missing, rules=rules, language=language)
    x = tagger.rows([whole])
    if x.nnz == 0:
        output.warn("no word of this text was seen in training; these labels are what the model says of an empty text")
    found = suggested(x)[0]
    if as_json:
        output.emit_json(found)
        return
    from tailwise.display import Table

    rows = [[s.name, s.id, f"{s.score:.3f}", s.rarity] for s in found]
    output.emit_table(Table("", ["label", "id", "score", "rarity"], rows, left=2))
