"""Approximate label search with faiss, for label sets that are too large to scan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tailwise.embedding.index import ExactIndex, LabelIndex, RecallReport, found_in, recall_report
from tailwise.embedding.structures import Graph, Lists, load_faiss
from tailwise.parallel import ONE_BLAS_THREAD, count_jobs, map_blocks, row_blocks
from tailwise.parameters import Choice, Integer, Number, OrNone
from tailwise.persistence.checks import check_kind
from tailwise.scoring import rank_vectors
from tailwise.validation import check_number

_ROWS_A_BLOCK = 256
_SPARE = 8
_JUDGED_AT = 5


class FaissIndex(LabelIndex):
    """Approximate search by inner product: inverted lists (``"ivf"``) or a navigable graph (``"hnsw"``).

    It may miss labels, rare ones first: ask :meth:`recall_report` how many. Labels it nominates are scored exactly.
    Given queries, :meth:`build` looks for the least effort that keeps ``min_recall``; a model that is fitted with
    ``index=FaissIndex()`` gives held-out rows, or training rows where none are held out. Needs the extra ``ann``. The
    index is built on one thread and from one seed, so that it is the same every time.

    Parameters
    ----------
    kind : {"ivf", "hnsw"}
        Among 100,000 labels of 128 values, at recall 0.96, the lists took 0.3 ms a row and 6 s to build, the graph
        1.5 ms and 21 s.
    effort : int or None
        Labels visited a search (hnsw: efSearch) or lists visited (ivf: nprobe). More effort: better recall, more time.
        None chooses it for ``min_recall``; where ``build`` gets no queries it is 64, or a 32nd of the lists.
    min_recall : float
        Share of the five best labels to be found, with two standard errors to spare on the queries.
    links : int
        Links a label in the graph (M).
    build_effort : int
        Labels visited to place each label in the graph (efConstruction).
    lists : int or None
        Number of inverted lists; None takes about 4 √n_labels.
    n_jobs : int or None
        Threads for searching; None uses every core.

    Attributes
    ----------
    effort_ : int
        The effort that searches take.
    """

    _parameters = {
        "kind": Choice("ivf", "hnsw"),
        "effort": OrNone(Integer(low=1)),
        "min_recall": Number(low=0, high=1),
        "links": Integer(low=2),
        "build_effort": Integer(low=1),
        "lists": OrNone(Integer(low=1)),
    }

    effort_: int
    structure_: Graph | Lists

    def __init__(
        self,
        kind: str = "ivf",
        *,
        effort: int | None = None,
        min_recall: float = 0.95,
        links: int = 32,
        build_effort: int = 128,
        lists: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.effort = effort
        self.min_recall = min_recall
        self.links = links
        self.build_effort = build_effort
        self.lists = lists
        self.n_jobs = n_jobs

    def recall_report(self, queries: Any, label_counts: Any, k: int = 5) -> RecallReport:
        """Recall against exact search, overall and by label-frequency decile: see :func:`recall_report`."""
        return recall_report(self, queries, label_counts, k)

    def _build(self) -> None:
        faiss = load_faiss()
        n, d = self.vectors_.shape
        with _one_openmp_thread(faiss), ONE_BLAS_THREAD:
            if self.kind == "hnsw":
                made = faiss.IndexHNSWFlat(d, self.links, faiss.METRIC_INNER_PRODUCT)
                made.hnsw.efConstruction = self.build_effort
            else:
                lists = min(n, self.lists or max(1, int(4 * n**0.5)))
                made = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
                made.cp.min_points_per_centroid, made.cp.niter = 1, 10
                made.train(self.vectors_[:: max(1, n // (64 * lists))])
            made.add(self.vectors_)
        self.structure_ = (Graph if self.kind == "hnsw" else Lists).of(made)
        self._opened = made
        most = n if self.kind == "hnsw" else made.nlist
        self.effort_ = min(most, self.effort or (64 if self.kind == "hnsw" else max(1, most // 32)))

    def _check_state(self) -> None:
        super()._check_state()
        check_number("effort_", self.effort_, integer=True, low=1)
        n, d = self.vectors_.shape
        if self.kind == "hnsw":
            check_kind("structure_", self.structure_, Graph).check(n, self.links)
        else:
            check_kind("structure_", self.structure_, Lists).check(n, d)

    def _adapt(self, queries: np.ndarray) -> None:
        """Double the effort until the recall suffices, then halve the gap to the last one that did not."""
        if self.effort is not None:
            return
        exact = ExactIndex(n_jobs=self.n_jobs).build(self.vectors_).search(queries, _JUDGED_AT).labels

        def suffices(effort: int) -> bool:
            self.effort_ = effort
            positions = np.full(exact.shape, -1, np.int32)
            self._search(queries, positions, np.full(exact.shape, -np.inf, np.float32))
            shares = found_in(exact, positions).sum(1) / np.maximum(1, (exact >= 0).sum(1))
            return bool(shares.mean() - 2 * shares.std() / shares.size**0.5 >= self.min_recall)

        most = self.vectors_.shape[0] if self.kind == "hnsw" else self._open().nlist
        low, high = 0, min(most, 16 if self.kind == "hnsw" else 1)
        while high < most and not suffices(high):
            low, high = high, min(most, 2 * high)
        while high - low > max(1, high // 8):
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        self.effort_ = high

    def _open(self) -> Any:
        if not hasattr(self, "_opened"):
            self._opened = self.structure_.open(self.vectors_, self.links)
        return self._opened

    def _search(self, queries: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> None:
        faiss, index = load_faiss(), self._open()
        wanted = min(positions.shape[1] + _SPARE, self.vectors_.shape[0])
        effort = self.effort or self.effort_
        if self.kind == "hnsw":
            parameters = faiss.SearchParametersHNSW(efSearch=min(max(effort, wanted), self.vectors_.shape[0]))
        else:
            parameters = faiss.SearchParametersIVF(nprobe=min(index.nlist, effort))

        def search_block(block: tuple[int, int]) -> None:
            rows = slice(*block)
            part = np.ascontiguousarray(queries[rows])
            with _one_openmp_thread(faiss):
                _, nominees = index.search(part, wanted, params=parameters)
            rank_vectors(part, self.vectors_, nominees, positions[rows], scores[rows])

        size = min(_ROWS_A_BLOCK, -(-queries.shape[0] // count_jobs(self.n_jobs)) or 1)
        map_blocks(search_block, row_blocks(queries.shape[0], size), n_jobs=self.n_jobs)


@contextmanager
def _one_openmp_thread(faiss: Any) -> Iterator[None]:
    """Run what faiss does on the thread that asks for it; OpenMP keeps this number for each thread."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
