"""Opening a data set by name or by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scipy import sparse

from tailwise.data.arff import read_arff
from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.download import fetch
from tailwise.data.files import plain_name
from tailwise.data.libsvm import read_libsvm_files
from tailwise.data.locate import FORMATS, Sources, detect_format, locate, read_names
from tailwise.data.mapped import read_rows
from tailwise.data.pairs import Pair, read_pair
from tailwise.data.records import Columns, scan_records, with_vectors
from tailwise.data.registry import REGISTRY, find_registered
from tailwise.data.tables import TEXT_FORMATS, Layout
from tailwise.data.xmc import read_xmc, read_xmc_split
from tailwise.errors import DataFormatError, InvalidInput, argument
from tailwise.label_lists import encode_labels
from tailwise.validation import check_choice


class _Options(NamedTuple):
    """How files are read, beside their format."""

    columns: Columns
    layout: Layout
    split_column: int
    label_base: int | None
    feature_base: int | None
    duplicates: str
    n_jobs: int | None


def load_dataset(
    path: str | Path,
    *,
    test: str | Path | None = None,
    format: str | None = None,
    text_columns: Sequence[str] | str | None = None,
    label_column: str | None = None,
    label_separator: str | None = None,
    label_names: str | Path | Sequence[str] | Mapping[str, str] | None = None,
    vocab: Any = None,
    split_column: int = 0,
    label_base: int | None = None,
    feature_base: int | None = None,
    duplicates: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    quoting: str | None = None,
    vectors: str | Path | None = None,
    unit_rows: bool = True,
    n_jobs: int | None = None,
) -> Any:
    """Open a data set: a registered name such as ``"eurlex-4k"``, a file, or a folder with training and test files.

    Sparse rows (the Extreme Classification Repository's format, libsvm, ARFF) give a :class:`Dataset`; texts (JSON
    Lines, CSV, TSV, Parquet, Excel, Annif's corpora) give a :class:`TextDataset`, whose ``vectorize()`` makes a
    Dataset. Files that end in .gz or .xz are read as they are. A malformed line is refused with file and line; nothing
    is skipped.

    Parameters
    ----------
    path : str or Path
        A name of the registry (fetched once, then cached), a file, or a folder. In a folder the files are told by
        name: ``train``/``trn`` and ``test``/``tst`` (or ``dev``/``valid``); ``*_trSplit`` and ``*_tstSplit`` beside one
        data file; ``trn_X_Xf`` beside ``trn_X_Y``, or PECOS's ``X.trn.npz`` beside ``Y.trn.npz``; Mulan's ``.xml``
        beside ``.arff``; ``label_names`` (.txt or .json) and ``feature_names.txt``. A folder of texts, each with its
        labels beside it (``x.txt`` and ``x.tsv`` or ``x.key``) or of JSON documents, is one set of rows.
    test : str or Path, optional
        The test file that goes with the training file ``path``.
    format : str, optional
        "xmc", "libsvm", "arff", "rows" (a folder ``x.rows`` that ``convert`` wrote: mapped, not read), "jsonl", "csv",
        "tsv", "parquet", "xlsx", "annif" (lines ``text⇥uri uri …``) or "documents" (a folder with a file a text); by
        default told from names and first lines.
    text_columns, label_column, label_separator, delimiter, encoding, quoting
        Where and how text formats keep texts and labels: see :func:`read_records`.
    vocab : Vocabulary, optional
        The vocabulary that the labels are from: it names them, finds labels that are given by their text (Annif's
        ``.key`` files and ``subjects``), and is kept with the data and in a model trained on them.
    label_names : path, list or dict, optional
        Names for the labels: one a line or a JSON list, in the order of the columns, or a JSON object from id to name.
        For ARFF the Mulan xml.
    split_column : int
        The column of the split files, counted from 0.
    label_base, feature_base : {0, 1}, optional
        Where a libsvm file starts to count, if it does not tell: see :func:`read_libsvm`.
    duplicates : {"refuse", "merge"}, optional
        What to do with an entry that comes twice in a row: refused unless told, or typed into a cell by hand.
    vectors : path, optional
        An ``.npy`` file with a dense vector for each text of a file without test rows: what ``GivenVectors`` reads.
    unit_rows : bool
        Scale each row of X to unit length, which is what the models expect. False keeps the values of the file.
    n_jobs : int or None
        Threads that parse; None is every core.
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    if vocab is not None and not hasattr(vocab, "preferred_names"):
        raise InvalidInput(f"vocab={vocab!r} is no vocabulary; read it first: Vocabulary.read(path)")
    if label_names is None and vocab is not None:
        label_names = dict(zip(vocab.ids, vocab.preferred_names(), strict=True))
    columns = Columns(text_columns, label_column, label_separator, duplicates, vocab)
    layout = Layout(delimiter, encoding, quoting)
    options = _Options(columns, layout, split_column, label_base, feature_base, duplicates or "refuse", n_jobs)
    if not Path(path).exists():
        return _load_registered(str(path), options, unit_rows)
    sources = locate(path, test)
    kind = format or ("pairs" if sources.labels else detect_format(sources.train))
    name = plain_name(path)
    if kind in TEXT_FORMATS:
        return _load_texts(sources, kind, options, _names_given(label_names, sources), name, vectors)
    if vectors is not None:
        raise InvalidInput(f"{argument('vectors', str(vectors))} stands beside texts, but {path} has numeric rows")
    if kind == "arff":
        data = _load_arff(sources, label_names)
    else:
        data = _load_rows(sources, kind, options)
        data.label_names = _in_order(_names_given(label_names, sources), data.n_labels, "label", sources.label_names)
        features = None if sources.feature_names is None else read_names(sources.feature_names)
        data.feature_names = _in_order(features, data.n_features, "feature", sources.feature_names)
    data.name, data.source, data.vocab = name, str(path), vocab
    # Mapped rows were scaled when they were written.
    return data.with_unit_rows() if unit_rows and kind != "rows" else data


def _load_registered(name: str, options: _Options, unit_rows: bool) -> Dataset:
    if "/" in name or "\\" in name or Path(name).suffix:
        raise InvalidInput(f"{name} does not exist; pass a file, a folder, or a name: {', '.join(REGISTRY)}")
    entry = find_registered(name)
    folder = fetch(entry.name)
    data = _load_rows(Sources(folder / entry.train.name, folder / entry.test.name), "xmc", options)
    data.name, data.source = entry.name, f"{entry.description}; from {entry.archive}"
    return data.with_unit_rows() if unit_rows else data


def _load_rows(sources: Sources, kind: str, options: _Options) -> Dataset:
    reading = {"duplicates": options.duplicates, "n_jobs": options.n_jobs}
    if sources.splits is not None:
        return Dataset(*read_xmc_split(sources.train, *sources.splits, column=options.split_column, **reading))  # type: ignore[arg-type]
    if sources.labels is not None:
        X_files = [sources.train] if sources.test is None else [sources.train, sources.test]
        pairs = map(Pair, X_files, sources.labels)
        return _joined(sources, [read_pair(pair, **reading) for pair in pairs])  # type: ignore[arg-type]
    paths = [sources.train] if sources.test is None else [sources.train, sources.test]
    if kind == "libsvm":
        bases = {"label_base": options.label_base, "feature_base": options.feature_base}
        return _joined(sources, read_libsvm_files(paths, **bases, **reading))  # type: ignore[arg-type]
    if kind == "rows":
        return _joined(sources, [read_rows(path) for path in paths])
    return _joined(sources, [read_xmc(path, **reading) for path in paths])  # type: ignore[arg-type]


def _joined(sources: Sources, parts: list[tuple[sparse.csr_array, sparse.csr_array]]) -> Dataset:
    """Training and test rows as one data set, where they have the same columns."""
    for matrix, other, word in zip(parts[0], parts[-1], ("features", "labels"), strict=True):
        if matrix.shape[1] != other.shape[1]:
            expected = f"{matrix.shape[1]:,} {word}, as in {sources.train}"
            raise DataFormatError(sources.test, 1, f"{other.shape[1]:,} {word}", expected)
    return Dataset(*(matrix for part in parts for matrix in part))


def _load_arff(sources: Sources, label_names: Any) -> Dataset:
    xml = sources.label_names if label_names is None else label_names
    if xml is None:
        raise InvalidInput(
            f"{sources.train} needs its labels: pass {argument('label_names', 'labels.xml')}, the Mulan file"
        )
    labels = xml if isinstance(xml, str | Path) else list(xml)
    train = read_arff(sources.train, labels)
    test = None if sources.test is None else read_arff(sources.test, labels)
    if test is not None and test.feature_names != train.feature_names:
        raise DataFormatError(sources.test, None, "other attributes", f"the attributes of {sources.train}")
    return Dataset(
        train.X,
        train.Y,
        None if test is None else test.X,
        None if test is None else test.Y,
        label_names=train.label_names,
        feature_names=train.feature_names,
    )


def _load_texts(
    sources: Sources, kind: str, options: _Options, names: Any, name: str, vectors: str | Path | None
) -> TextDataset:
    if vectors is not None and sources.test is not None:
        raise InvalidInput(
            f"{argument('vectors', str(vectors))} has rows for one file, but {name} has training and test rows; "
            "read the files apart"
        )
    texts_train, labels_train, facts = scan_records(sources.train, kind, options.columns, options.layout)
    texts_test, labels_test = None, None
    if sources.test is not None:
        # What the training rows showed holds for the test rows, which may be few.
        separator = options.columns.separator or facts.get("label separator", "").strip(" ") or None
        same = options.columns._replace(separator=separator)
        texts_test, labels_test, _ = scan_records(sources.test, kind, same, options.layout)
    labels_train, labels_test = labels_train or [], labels_test or []
    ids = _sorted_ids({label for row in (*labels_train, *labels_test) for label in row})
    if not ids:
        raise DataFormatError(sources.train, None, "no label in any row", "at least one label")
    return TextDataset(
        with_vectors(texts_train, vectors),
        encode_labels(labels_train, ids),
        texts_test,
        None if texts_test is None else encode_labels(labels_test, ids),
        label_names=_by_id(names, ids),
        label_ids=ids,
        name=name,
        source=str(sources.train.parent if sources.test else sources.train),
        reading=facts,
        vocab=options.columns.vocabulary,
    )


def _sorted_ids(ids: set[str]) -> list[str]:
    """Numbers by value, and among equal ones (``01`` and ``1``) as texts; other ids as texts."""
    if all(label.isascii() and label.isdecimal() for label in ids):
        digits = {label: label.lstrip("0") for label in ids}
        return sorted(ids, key=lambda label: (len(digits[label]), digits[label], label))
    return sorted(ids)


def _names_given(label_names: Any, sources: Sources) -> Any:
    chosen = sources.label_names if label_names is None else label_names
    return read_names(chosen) if isinstance(chosen, str | Path) else chosen


def _by_id(names: Any, ids: list[str]) -> list[str]:
    if names is None:
        return list(ids)
    if isinstance(names, Mapping):
        return [names.get(label, label) for label in ids]
    if len(names) != len(ids):
        raise InvalidInput(
            f"label_names has {len(names):,} entries but the files have {len(ids):,} labels; name them by id"
        )
    return list(names)


def _in_order(names: Any, size: int, word: str, path: Path | None) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, Mapping):
        return [names.get(str(place), str(place)) for place in range(size)]
    if len(names) != size:
        found = f"{len(names):,} names"
        if path is None:
            raise InvalidInput(f"{word}_names has {found}, but there are {size:,} {word}s")
        raise DataFormatError(path, None, found, f"{size:,}, one for each {word}")
    return list(names)
