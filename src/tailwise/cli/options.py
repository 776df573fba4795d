"""The options that verbs share: how DATA is read, what is judged, which labels may be suggested."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from tailwise.cli import output

if TYPE_CHECKING:
    from tailwise.vocabulary import LabelRules, Vocabulary

_PANEL = "How to read DATA"
_SPELLED = {"tab": "\t", "\\t": "\t", "newline": "\n", "\\n": "\n"}  # what shells make hard to type
_OPTIONS = ("propensity", "by_column", "by_time", "confidence", "spreadsheet_safe", "to")
_FEATURE_SETTINGS = ("min_df", "max_df")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.jsonl, .csv, .tsv, .xlsx, .parquet, the repository's .txt, .svm, .arff; .gz and .xz too), "
        "a folder of texts, - for standard input, or a data set's name.",
        show_default=False,
    ),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that `tailwise train` wrote.")]
Judged = Annotated[
    list[Path],
    typer.Argument(metavar="MODEL…", help="Folders that `tailwise train` wrote, or other programs' output."),
]
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
    typer.Option(
        "--label-separator",
        help="What separates labels within a cell, where the data do not show it.",
        rich_help_panel=_PANEL,
    ),
]
Vocab = Annotated[
    Path | None,
    typer.Option(
        "--vocab",
        "--label-names",
        metavar="FILE",
        help="What the labels are from: SKOS (.ttl, .rdf), CSV, TSV, or JSON from id to name; names in the order of "
        "the columns too.",
        rich_help_panel=_PANEL,
    ),
]
Language = Annotated[
    str | None,
    typer.Option("--language", help="Of the labels' names, such as de.", rich_help_panel=_PANEL),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="The format, where the file's name does not tell it.", rich_help_panel=_PANEL),
]
Duplicates = Annotated[
    str | None,
    typer.Option(
        "--duplicates",
        help="refuse or merge a label that comes twice in a row; by default merged within a cell, else refused.",
        rich_help_panel=_PANEL,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", help="What separates columns of CSV and TSV, such as ; or tab.", rich_help_panel=_PANEL
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Of text that is not UTF-8, such as latin-1.", rich_help_panel=_PANEL),
]
Quoting = Annotated[
    str | None,
    typer.Option(
        "--quoting",
        help="minimal: quotes enclose fields of CSV and TSV; none: they are characters like any other.",
        rich_help_panel=_PANEL,
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


PropensityName = Annotated[
    str | None,
    typer.Option(
        "--propensity",
        metavar="PROPENSITY",
        help="How likely a relevant label was observed: jain:A,B, amazon, wikipedia, other, hierarchy (of --vocab), "
        "a file of a number for each label, or an audit's folder.",
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="RULE",
        help="Suggest only labels that a rule is about: id:ID, name:PATTERN, scheme:NAME, collection:NAME, rows>=5; "
        "repeat it. @FILE has a rule a line.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="RULE", help="Suggest no labels that a rule is about: as --include, and deprecated."
    ),
]
TrainingData = Annotated[
    str | None,
    typer.Option("--training", metavar="DATA", help="Training rows: how frequent labels are, where no model tells it."),
]


Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        metavar="FILE.npy",
        help="A NumPy array with a vector for each text of DATA, which become columns beside the words.",
        rich_help_panel=_PANEL,
    ),
]


class Reading(NamedTuple):
    """The options that say how DATA is read, as given."""

    text_columns: TextColumns = None
    label_column: LabelColumn = None
    label_separator: LabelSeparator = None
    vocab: Vocab = None
    language: Language = None
    format: Format = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    quoting: Quoting = None
    duplicates: Duplicates = None
    label_base: LabelBase = None
    feature_base: FeatureBase = None
    vectors: Vectors = None

    def options(self) -> dict[str, Any]:
        """What was given, under the names that :func:`tailwise.load_dataset` takes."""
        given = self._asdict()
        if self.text_columns:
            given["text_columns"] = [
                name.strip() for part in self.text_columns for name in part.split(",") if name.strip()
            ]
        for name in ("label_separator", "delimiter"):
            given[name] = _SPELLED.get(given[name], given[name])
        given |= self._labels(given.pop("vocab"), given.pop("language"))
        return {name: value for name, value in given.items() if value is not None}

    @staticmethod
    def _labels(path: Path | None, language: str | None) -> dict[str, Any]:
        """The vocabulary in a file, with its names in a language; or the file, where it names columns in order."""
        if path is None:
            return {}
        found = read_vocab(path, language)
        if found is None:
            return {"label_names": path}
        names = found.preferred_names(language if language and any(found.languages) else None)
        return {"vocab": found, "label_names": dict(zip(found.ids, names, strict=True))}


UNTOLD = Reading()
"""DATA tells by itself how it is read."""


@functools.lru_cache(maxsize=2)
def read_vocab(path: Path, language: str | None = None) -> Vocabulary | None:
    """The vocabulary in a file; None where it has names in the order of columns and no ids. Read once a command."""
    from tailwise.vocabulary.reading import names_by_id, read_vocabulary

    if not names_by_id(path):
        return None
    found = read_vocabulary(path, language=language)
    output.say(f"{path}: {found.summary()}")
    return found


def label_rules(include: list[str] | None, exclude: list[str] | None) -> LabelRules | None:
    """The rules that --include and --exclude give; ``@FILE`` stands for the rules in its lines."""
    from tailwise.data.files import read_text, split_lines
    from tailwise.parameters import check_parameters
    from tailwise.vocabulary import LabelRules

    def read(rules: list[str] | None) -> list[str]:
        lines = [split_lines(read_text(rule[1:])) if rule.startswith("@") else [rule] for rule in rules or []]
        return [rule for found in lines for rule in found if rule.strip()]

    if not include and not exclude:
        return None
    rules = LabelRules(include=read(include), exclude=read(exclude))
    check_parameters(rules)
    return rules


def reads_data(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb that takes ``reading`` the options of :class:`Reading` in its place."""
    signature = inspect.signature(verb, eval_str=True)
    hints = get_type_hints(Reading, include_extras=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=hints[name])
        for name in Reading._fields
    ]
    parameters = [
        parameter
        for one in signature.parameters.values()
        for parameter in (options if one.name == "reading" else [one])
    ]

    @functools.wraps(verb)
    def run(**given: Any) -> None:
        reading = Reading(**{name: given.pop(name) for name in Reading._fields})
        verb(**given, reading=reading)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def as_option(name: str, value: Any) -> str:
    """An argument of the library as the command takes it; what is no option stays what Python has.

    >>> as_option("text_columns", ["title", "body"])
    '--text-columns title,body'
    >>> as_option("C", 2)
    'C=2'
    """
    if name in _FEATURE_SETTINGS:
        return f"--set-features {name}={value}"
    if name not in (*Reading._fields, "label_names", *_OPTIONS):
        return f"{name}={value!r}"
    if value is True:
        return f"--{name.replace('_', '-')}"
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"--{name.replace('_', '-')} {text if text == '…' else shlex.quote(text)}"
