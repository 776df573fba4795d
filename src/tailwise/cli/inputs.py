"""What verbs take: options for reading data, opening models, and both put together."""

from __future__ import annotations

import functools
import inspect
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from tailwise.cli import output

if TYPE_CHECKING:
    from tailwise.data import Predictions
    from tailwise.data.labelled import Rows
    from tailwise.text import Tagger
    from tailwise.vocabulary import LabelRules, Vocabulary

_PANEL = "How to read DATA"
_SPELLED = {"tab": "\t", "\\t": "\t", "newline": "\n", "\\n": "\n"}  # what shells make hard to type
_OPTIONS = ("propensity", "by_column", "by_time", "confidence", "spreadsheet_safe", "to")
_FEATURE_SETTINGS = ("min_df", "max_df")
_ENOUGH_ROWS = 10
_NEARLY_EVERY = 0.9

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


@contextmanager
def opened(data: str) -> Iterator[str]:
    """The path that DATA is; what stands for standard input is a file while it is needed."""
    if data != "-":
        yield data
        return
    from tailwise.errors import DataFormatError

    with tempfile.TemporaryDirectory(prefix="tailwise-") as folder:
        path = Path(folder) / "standard input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield str(path)
        except DataFormatError as error:
            raise DataFormatError("standard input", error.line, error.found, error.expected) from error


def load(data: str, reading: Reading, *, part: str = "train", **more: Any) -> Any:
    """The data set that DATA is, with word of what was found in it."""
    from tailwise.data import TextDataset, load_dataset

    with opened(data) as path:
        found = load_dataset(path, **reading.options() | more)
    if isinstance(found, TextDataset):
        say_found(found, part)
    return found


def say_found(data: Any, part: str = "train") -> None:
    """Tell how the labels were read, and what is odd about them; of test rows that each has its own is not odd."""
    from tailwise.data.label_cells import LISTS

    facts = data.reading
    separator = facts.get("label separator")
    how = "" if separator is None else f", as {separator}" if separator == LISTS else f", separator {separator!r}"
    sheet = f"sheet {facts['sheet']!r}: " if "sheet" in facts else ""
    output.say(f"{sheet}{data.n_labels:,} labels, {data.Y_train.nnz / data.n_train:.1f} a row{how}")
    if "quoting" in facts:
        output.warn("quotes do not enclose fields here and are read as text, as --quoting none says")
    unknown = facts.get("labels that the vocabulary does not have", 0)
    if unknown:
        output.warn(f"{unknown:,} labels are none of the vocabulary's names and are left out")
    if "label cells tidied" in facts:
        output.warn(
            f"{facts['label cells tidied']:,} cells had a label twice or a separator to spare; each label counts once"
        )
    labelled = int((data.Y_train.sum(axis=1) > 0).sum())
    if part == "train" and labelled >= _ENOUGH_ROWS and data.n_with_own_label >= _NEARLY_EVERY * labelled:
        output.warn(
            f"{data.n_with_own_label:,} of {labelled:,} rows have a label that no other row has: if that is not so, "
            f"--label-separator or --label-column ({facts.get('label column')!r} now) is wrong"
        )


def read_rows(data: str, reading: Reading, *, part: str = "train") -> Rows:
    """The rows of DATA with their labels; of a data set with training and test rows, the ``part`` asked for."""
    from tailwise.data import Rows

    return Rows.of(load(data, reading, part=part), part)


def read_unlabelled(data: str, reading: Reading, id_column: str | None = None) -> tuple[Any, list[str] | None]:
    """The texts of DATA, which needs no labels, or its rows of X; and what ``id_column`` calls the rows."""
    from tailwise.data import TEXT_FORMATS, detect_format, read_texts
    from tailwise.data.annif import holds_documents
    from tailwise.data.records import read_column
    from tailwise.errors import InvalidInput

    options = reading.options()
    with opened(data) as path:
        known = Path(path).is_file() or (Path(path).is_dir() and holds_documents(Path(path)))
        kind = (options.get("format") or detect_format(path)) if known else None
        if kind in TEXT_FORMATS:
            takes = ("text_columns", "delimiter", "encoding", "quoting", "vectors")
            given = {name: options[name] for name in takes if name in options}
            texts = read_texts(path, kind, **given)
            for name in ("text_columns", "vectors"):
                given.pop(name, None)
            return texts, None if id_column is None else read_column(path, kind, id_column, **given)
        if id_column is not None:
            raise InvalidInput(
                f"--id-column {id_column}: {data} has numeric rows without columns of text; leave it out"
            )
        # Labels are not looked at: where they start to count does not matter.
        mapped = _mapped_rows(path, options | {"format": kind})
        if mapped is not None:
            return mapped, None
        return read_rows(path, reading._replace(label_base=reading.label_base or 0), part="test").rows, None


def _mapped_rows(path: str, options: dict[str, Any]) -> Any:
    """The rows of a text file, left on disk: memory does not grow with their number; None where they cannot be."""
    from tailwise.data.mapped import read_rows as open_rows
    from tailwise.data.saving import stream

    if options["format"] == "libsvm":
        options.setdefault("label_base", 0)
    with tempfile.TemporaryDirectory(prefix="tailwise-") as folder:
        target = Path(folder) / "rows"
        # What is mapped stays when its name is gone.
        return open_rows(target)[0] if stream(path, target, "rows", options) else None


def open_tagger(path: Path) -> Tagger:
    """The tagger in a model folder; a bare model gets its labels' numbers as names."""
    import tailwise
    from tailwise.errors import ModelFileError
    from tailwise.text import Tagger

    found = tailwise.load(path)
    if not isinstance(found, Tagger):
        raise ModelFileError(
            f"{path} holds a {type(found).__name__}, which has no label names; train with `tailwise train`, "
            "or save a Tagger"
        )
    return found


def estimated_propensity(audit: str) -> Any:
    """The propensity that was estimated in the folder of an audit; None where there is none."""
    from tailwise.propensity import named_propensity
    from tailwise.propensity.naming import FOLDER

    return named_propensity(audit) if (Path(audit) / FOLDER).is_dir() else None


def open_judged(
    paths: list[Path], n_rows: int, k: int, names: list[str] | None = None
) -> dict[str, Tagger | Predictions]:
    """Taggers by the names of their folders; a file, or a folder of .annif files, has another program's predictions.

    They are for ``n_rows`` rows, called ``names`` where these are documents, and the first ``k`` of each are read.
    Folders and files of the same name keep their whole path.
    """
    from tailwise.data import read_predictions
    from tailwise.data.predictions import holds_predictions

    return {
        name: read_predictions(path, n_rows, k, names=names) if holds_predictions(path) else open_tagger(path)
        for name, path in _named(paths).items()
    }


def row_names(data: str) -> list[str] | None:
    """What the labelled rows of DATA are called, where it is a folder of documents."""
    from tailwise.data.annif import document_rows, holds_documents

    if not Path(data).is_dir() or not holds_documents(Path(data)):
        return None
    return [row["document_id"] for _, row in document_rows(Path(data), None, with_labels=True)]


def _named(paths: list[Path]) -> dict[str, Path]:
    names = [path.resolve().name for path in paths]
    return {str(path) if names.count(name) > 1 else name: path for path, name in zip(paths, names, strict=True)}
