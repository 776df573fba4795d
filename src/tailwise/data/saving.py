"""Writing a data set to files, and converting between formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy import sparse

from tailwise.atomic import writing
from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.files import plain_suffix
from tailwise.data.label_cells import SEPARATOR
from tailwise.data.libsvm import convert_libsvm, write_libsvm
from tailwise.data.loading import load_dataset
from tailwise.data.locate import detect_format
from tailwise.data.mapped import SUFFIX, blocks_of, write_rows
from tailwise.data.pairs import find_partner
from tailwise.data.record_writing import WRITTEN_FORMATS, write_records
from tailwise.data.xmc import convert_xmc, write_xmc
from tailwise.errors import InvalidInput, argument
from tailwise.validation import check_choice

SUFFIXES = {
    "xmc": ".txt",
    "libsvm": ".svm",
    "jsonl": ".jsonl",
    "csv": ".csv",
    "annif": ".tsv",
    "tsv": ".tsv",
    "parquet": ".parquet",
    "rows": SUFFIX,
}
"""The formats that can be written, and how their files are called; of two the suffix means the latter."""
_BY_SUFFIX = {suffix: name for name, suffix in SUFFIXES.items()}


def write_dataset(
    data: Dataset | TextDataset,
    path: str | Path,
    format: str | None = None,
    *,
    label_separator: str = SEPARATOR,
    compression: str = "",
    spreadsheet_safe: bool = False,
) -> list[Path]:
    """Write a data set so that :func:`load_dataset` reads it back; returns the files written.

    Without test rows ``path`` is a file; with test rows, or with names to keep, it is a folder that gets ``train`` and
    ``test`` files, ``label_names`` and ``feature_names``.

    Parameters
    ----------
    data : Dataset or TextDataset
        A Dataset can be written as "xmc" or "libsvm", a TextDataset as "jsonl", "csv", "tsv", "parquet" or
        "annif" (lines ``text⇥<uri> <uri>``, with spaces for the line breaks of a text).
    path : str or Path
        A file, whose suffix tells the format, or a folder.
    format : str, optional
        By default by suffix, or "xmc" and "jsonl" in a folder.
    label_separator : str
        What separates labels in CSV and TSV.
    compression : {"", ".gz", ".xz"}
        How the files of a folder are packed; a single file is packed as its own name says.
    spreadsheet_safe : bool
        Put an apostrophe before cells of CSV and TSV that a spreadsheet would run as a formula: see
        :func:`write_records`.
    """
    path = Path(path)
    check_choice("compression", compression, ("", ".gz", ".xz"))
    kind = format or _BY_SUFFIX.get(plain_suffix(path)) or ("jsonl" if isinstance(data, TextDataset) else "xmc")
    check_choice("format", kind, tuple(SUFFIXES))
    is_text = isinstance(data, TextDataset)
    if is_text != (kind in WRITTEN_FORMATS):
        fix = "vectorize() them first" if is_text else "write xmc or libsvm"
        raise InvalidInput(
            f"{argument('format', kind)} cannot hold {'texts' if is_text else 'rows of features'}; {fix}"
        )
    if spreadsheet_safe and not is_text:
        raise InvalidInput(f"{argument('spreadsheet_safe', True)} is for csv and tsv, not for {kind}; leave it out")
    options = {"label_separator": label_separator, "spreadsheet_safe": spreadsheet_safe}
    if not data.has_test and (path.suffix or format):
        _write_split(data, "train", path, kind, options)
        return [path]
    packing = "" if kind == "parquet" else compression
    written = []
    for split in ("train", "test") if data.has_test else ("train",):
        target = path / f"{split}{SUFFIXES[kind]}{packing}"
        _write_split(data, split, target, kind, options)
        written.append(target)
    return written + _write_names(data, path)


def convert(
    source: str | Path,
    target: str | Path,
    format: str | None = None,
    *,
    spreadsheet_safe: bool = False,
    **reading: Any,
) -> list[Path]:
    """Read ``source`` as :func:`load_dataset` does (``reading`` goes to it) and write it to ``target``.

    Rows stay rows and texts stay texts; texts become rows of TF-IDF where ``target`` is a format of rows. Values are
    kept as they are. Returns the files written.
    """
    if stream(source, target, format, reading):
        return [Path(target)]
    data = load_dataset(source, **({"unit_rows": False} | reading))
    return write_converted(data, target, format, spreadsheet_safe=spreadsheet_safe)


def stream(source: str | Path, target: str | Path, format: str | None, reading: dict[str, Any]) -> bool:
    """Write mapped rows from one file of rows without having them in memory; False where that cannot be done."""
    if "rows" not in (format, _BY_SUFFIX.get(plain_suffix(target))) or not Path(source).is_file():
        return False
    given = {name: value for name, value in reading.items() if value is not None}
    kind = given.pop("format", None) or detect_format(source)
    given.pop("unit_rows", None)
    known = {"xmc": {"duplicates", "n_jobs"}, "libsvm": {"duplicates", "n_jobs", "label_base", "feature_base"}}
    if kind not in known or find_partner(Path(source)) is not None or not set(given) <= known[kind]:
        return False
    if kind == "libsvm":
        return convert_libsvm(source, target, **given)
    convert_xmc(source, target, **given)
    return True


def write_converted(
    data: Dataset | TextDataset, target: str | Path, format: str | None = None, *, spreadsheet_safe: bool = False
) -> list[Path]:
    """Write ``data`` as :func:`convert` does."""
    kind = format or _BY_SUFFIX.get(plain_suffix(target))
    if isinstance(data, TextDataset) and kind in ("xmc", "libsvm", "rows"):
        data = data.vectorize()
    return write_dataset(data, target, kind, spreadsheet_safe=spreadsheet_safe)


def _write_split(data: Any, split: str, path: Path, kind: str, options: dict[str, Any]) -> None:
    Y = getattr(data, f"Y_{split}")
    if kind in WRITTEN_FORMATS:
        labels = data.labels_of(split, ids=True)
        write_records(path, kind, getattr(data, f"texts_{split}"), labels, **options)
    else:
        {"xmc": write_xmc, "libsvm": write_libsvm, "rows": _write_mapped}[kind](path, getattr(data, f"X_{split}"), Y)


def _write_mapped(path: Path, X: sparse.csr_array, Y: sparse.csr_array) -> None:
    write_rows(path, blocks_of(X, Y), n_features=X.shape[1], n_labels=Y.shape[1])


def _write_names(data: Any, folder: Path) -> list[Path]:
    import json

    contents: dict[str, str] = {}
    if isinstance(data, TextDataset):
        if data.label_ids and data.label_names != data.label_ids:
            names = dict(zip(data.label_ids, data.label_names or data.label_ids, strict=True))
            contents["label_names.json"] = json.dumps(names, ensure_ascii=False, indent=0)
    else:
        for field in ("label_names", "feature_names"):
            if getattr(data, field) is not None:
                contents[f"{field}.json"] = json.dumps(getattr(data, field), ensure_ascii=False, indent=0)
    for name, text in contents.items():
        try:
            encoded = text.encode()
        except UnicodeEncodeError as error:
            found = text[error.start : error.end]
            raise InvalidInput(f"{folder / name}: a name has {found!r}, which UTF-8 cannot hold; remove it") from error
        with writing(folder / name) as file:
            file.write(encoded + b"\n")
    return [folder / name for name in contents]
