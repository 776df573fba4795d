"""Predictions as files: CSV and TSV with a header, JSON Lines, Parquet, or a sparse matrix in .npz."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.atomic import told_when_unwritable, write_whole, writing
from tailwise.display import plain, visible
from tailwise.errors import import_extra
from tailwise.parallel import progress, row_blocks
from tailwise.rows import row_range
from tailwise.runs import current_run
from tailwise.text import Suggestion, Suggestions

COLUMNS = ("row", "rank", "id", "name", "score")
ROW_ID = "row_id"
_ROWS_AT_ONCE = 2000
_ROWS_OF_A_RUN = 200_000
"""At once where pieces of the work are done elsewhere."""

Block = list[tuple[int, list[Suggestion]]]


def suggested(suggest: Callable[[Any], Suggestions], rows: Any) -> Iterator[Block]:
    """Rows, numbered from 0, with what ``suggest`` gives them, in blocks: a file of any length takes bounded memory."""
    numeric = sparse.issparse(rows)
    n = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    with progress("Predicting", n) as advance:
        for first, last in row_blocks(n, _ROWS_AT_ONCE if current_run() is None else _ROWS_OF_A_RUN):
            found = suggest(row_range(rows, first, last) if numeric else rows[first:last])
            advance(last - first)
            yield list(enumerate(found, start=first))


def as_lines(blocks: Iterable[Block], row_ids: list[str] | None = None) -> Iterator[str]:
    """A line a row: the row's id if there is one, then pairs of id and score, all between tabs."""
    for block in blocks:
        for row, labels in block:
            first = [] if row_ids is None else [visible(row_ids[row])]
            yield "\t".join([*first, *(f"{visible(s.id)} {s.score:.4g}" for s in labels)]) + "\n"


def as_json_lines(blocks: Iterable[Block], row_ids: list[str] | None = None) -> Iterator[str]:
    """A JSON object a row."""
    for block in blocks:
        for row, labels in block:
            named = {} if row_ids is None else {ROW_ID: row_ids[row]}
            found = {"row": row, **named, "labels": [plain(s) for s in labels]}
            yield json.dumps(found, ensure_ascii=False) + "\n"


def as_table(blocks: Iterable[Block], delimiter: str, row_ids: list[str] | None = None) -> Iterator[str]:
    """CSV or TSV: a line for each label of each row."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(_columns(row_ids))
    for block in blocks:
        writer.writerows((*values, f"{score:.6g}") for *values, score in _flat(block, row_ids))
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def write_parquet(path: Path, blocks: Iterable[Block], row_ids: list[str] | None = None) -> None:
    """The table of :func:`as_table` as Parquet; atomic."""
    pa, parquet = (import_extra(module, "parquet", "writing Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    columns = _columns(row_ids)
    kinds = {"row": pa.int64(), "rank": pa.int32(), "score": pa.float32()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    with told_when_unwritable(path), writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for block in blocks:
            rows = [dict(zip(columns, values, strict=True)) for values in _flat(block, row_ids)]
            writer.write_table(pa.Table.from_pylist(rows, schema))


def write_npz(path: Path, blocks: Iterable[Block], label_ids: list[str], row_ids: list[str] | None = None) -> None:
    """A (rows, labels) CSR matrix of scores that ``scipy.sparse.load_npz`` reads, with the ids beside; atomic."""
    column = {label: place for place, label in enumerate(label_ids)}
    found = [labels for block in blocks for _, labels in block]
    cuts = np.cumsum([0, *map(len, found)])
    columns = np.array([column[s.id] for labels in found for s in labels], np.int32)
    scores = np.array([s.score for labels in found for s in labels], np.float32)
    matrix = sparse.csr_array((scores, columns, cuts), shape=(len(found), len(label_ids)))
    matrix.sort_indices()
    parts = {"indices": matrix.indices, "indptr": matrix.indptr, "data": matrix.data, "shape": matrix.shape}
    names = {"label_ids": np.array(label_ids, str)} | ({} if row_ids is None else {"row_ids": np.array(row_ids, str)})
    with told_when_unwritable(path), writing(path) as file:
        np.savez_compressed(file, format=b"csr", _is_array=True, **names, **parts)  # type: ignore[arg-type]


def write_predictions(
    path: Path, kind: str, blocks: Iterable[Block], label_ids: list[str], row_ids: list[str] | None = None
) -> None:
    """Write predictions whole or not at all, in the format that ``kind``, a suffix without its dot, names."""
    if kind == "parquet":
        write_parquet(path, blocks, row_ids)
    elif kind == "npz":
        write_npz(path, blocks, label_ids, row_ids)
    elif kind in ("csv", "tsv"):
        write_whole(path, as_table(blocks, "," if kind == "csv" else "\t", row_ids))
    else:
        write_whole(path, (as_json_lines if kind == "jsonl" else as_lines)(blocks, row_ids))


def _columns(row_ids: list[str] | None) -> tuple[str, ...]:
    return COLUMNS if row_ids is None else (COLUMNS[0], ROW_ID, *COLUMNS[1:])


def _flat(block: Block, row_ids: list[str] | None) -> Iterator[tuple[Any, ...]]:
    for row, labels in block:
        named = () if row_ids is None else (row_ids[row],)
        for rank, suggestion in enumerate(labels, start=1):
            yield row, *named, rank, suggestion.id, suggestion.name, float(suggestion.score)
