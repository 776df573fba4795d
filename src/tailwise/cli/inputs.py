"""What verbs take: options for reading data, opening models, and both put together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from tailwise.data.labelled import Rows
    from tailwise.tagger import Tagger

_PANEL = "How to read DATA"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.jsonl, .csv, .tsv, .parquet, the repository's .txt, .svm, .arff; .gz and .xz too), "
        "or a data set's name.",
        show_default=False,
    ),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that `tailwise train` wrote.")]
ModelPaths = Annotated[list[Path], typer.Argument(metavar="MODEL…", help="Folders that `tailwise train` wrote.")]
K = Annotated[int, typer.Option("-k", min=1, help="How many labels a row gets.")]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text-columns",
        "-t",
        help="Columns that hold the text, separated by commas; joined in this order.",
        rich_help_panel=_PANEL,
    ),
]
LabelColumn = Annotated[
    str | None, typer.Option("--label-column", "-l", help="Column that holds the labels.", rich_help_panel=_PANEL)
]
LabelSeparator = Annotated[
    str | None,
    typer.Option("--label-separator", help="What separates labels within a CSV or TSV cell.", rich_help_panel=_PANEL),
]
LabelNames = Annotated[
    Path | None,
    typer.Option("--label-names", help="JSON file from label id to readable name.", rich_help_panel=_PANEL),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="The format, where the file's name does not tell it.", rich_help_panel=_PANEL),
]
Duplicates = Annotated[
    str | None,
    typer.Option(
        "--duplicates", help="refuse (default) or merge a label that comes twice in a row.", rich_help_panel=_PANEL
    ),
]
LabelBase = Annotated[
    int | None,
    typer.Option(
        "--label-base",
        min=0,
        max=1,
        help="The first label's number in a libsvm file that does not tell: 0 or 1.",
        rich_help_panel=_PANEL,
    ),
]
FeatureBase = Annotated[
    int | None,
    typer.Option(
        "--feature-base",
        min=0,
        max=1,
        help="The first feature's number in a libsvm file that does not tell: 0 or 1.",
        rich_help_panel=_PANEL,
    ),
]


class Reading(NamedTuple):
    """The options that say how DATA is read, as given."""

    text_columns: list[str] | None = None
    label_column: str | None = None
    label_separator: str | None = None
    format: str | None = None
    duplicates: str | None = None
    label_names: Path | None = None
    label_base: int | None = None
    feature_base: int | None = None

    def options(self) -> dict[str, Any]:
        """What was given, under the names that :func:`tailwise.load_dataset` takes."""
        given = self._asdict()
        if self.text_columns:
            given["text_columns"] = [
                name.strip() for part in self.text_columns for name in part.split(",") if name.strip()
            ]
        return {name: value for name, value in given.items() if value is not None}


def read_rows(data: str, reading: Reading, *, part: str = "train") -> Rows:
    """The rows of DATA with their labels; of a data set with training and test rows, the ``part`` asked for."""
    from tailwise.data import Rows, load_dataset

    return Rows.of(load_dataset(data, **reading.options()), part)


def read_unlabelled(data: str, reading: Reading) -> Any:
    """The texts of DATA, which needs no labels, or its rows of X."""
    from tailwise.data.locate import detect_format
    from tailwise.data.records import TEXT_FORMATS, read_texts

    options = reading.options()
    if Path(data).is_file():
        kind = options.get("format") or detect_format(data)
        if kind in TEXT_FORMATS:
            return read_texts(data, kind, text_columns=options.get("text_columns"))
    # Labels are not looked at: where they start to count does not matter.
    return read_rows(data, reading._replace(label_base=reading.label_base or 0), part="test").rows


def describe_data(data: str, reading: Reading) -> dict[str, Any]:
    """The figures that describe DATA."""
    from tailwise.data import load_dataset

    return load_dataset(data, **reading.options()).summary()


def open_tagger(path: Path) -> Tagger:
    """The tagger in a model folder; a bare model gets its labels' numbers as names."""
    import tailwise
    from tailwise.errors import ModelFileError
    from tailwise.tagger import Tagger

    found = tailwise.load(path)
    if not isinstance(found, Tagger):
        raise ModelFileError(
            f"{path} holds a {type(found).__name__}, which has no label names; train with `tailwise train`, "
            "or save a Tagger"
        )
    return found


def open_taggers(paths: list[Path]) -> dict[str, Tagger]:
    """Taggers by the names of their folders; folders of the same name keep their whole path."""
    names = [path.resolve().name for path in paths]
    return {
        str(path) if names.count(name) > 1 else name: open_tagger(path) for path, name in zip(paths, names, strict=True)
    }
