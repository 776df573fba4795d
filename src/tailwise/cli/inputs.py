"""What verbs read: data sets, rows without labels, models, and what is judged."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailwise.cli import output

if TYPE_CHECKING:
    from tailwise.cli.options import Reading
    from tailwise.data import Predictions
    from tailwise.data.labelled import Rows
    from tailwise.text import Tagger

_ENOUGH_ROWS = 10
_NEARLY_EVERY = 0.9


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
