"""Approximate label search with faiss, for label sets that are too large to scan."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tailwise.embedding.index import LabelIndex, RecallReport, recall_report
from tailwise.errors import import_extra
from tailwise.parallel import count_jobs, map_blocks, row_blocks
from tailwise.validation import check_choice, check_number

KINDS = ("hnsw", "ivf")
_ROWS_A_BLOCK = 256
_SPARE = 8


class FaissIndex(LabelIndex):
    """Approximate search by inner product: a navigable graph (``"hnsw"``) or inverted lists (``"ivf"``).

    It may miss labels, rare ones first: ask :meth:`recall_report` how many. Labels it nominates are scored exactly.
    Needs the extra ``ann``. The index is built on one thread and from one seed, so that it is the same every time.

    Parameters
    ----------
    kind : {"hnsw", "ivf"}
        The graph answers faster at high recall; the lists build faster and take less memory.
    effort : int or None
        Labels visited a search (hnsw: efSearch, default 64) or lists visited (ivf: nprobe, default a 32nd of the
        lists). More effort: better recall, more time.
    links : int
        Links a label in the graph (M).
    build_effort : int
        Labels visited to place each label in the graph (efConstruction).
    lists : int or None
        Number of inverted lists; None takes about 4 √n_labels.
    n_jobs : int or None
        Threads for searching; None uses every core.
    """

    def __init__(
        self,
        kind: str = "hnsw",
        effort: int | None = None,
        links: int = 32,
        build_effort: int = 128,
        lists: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.effort = effort
        self.links = links
        self.build_effort = build_effort
        self.lists = lists
        self.n_jobs = n_jobs

    def recall_report(self, queries: Any, label_counts: Any, k: int = 5) -> RecallReport:
        """Recall against exact search, overall and by label-frequency decile: see :func:`recall_report`."""
        return recall_report(self, queries, label_counts, k)

    def _build(self) -> None:
        check_choice("kind", self.kind, KINDS)
        for name in ("effort", "lists"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), integer=True, low=1)
        check_number("links", self.links, integer=True, low=2)
        check_number("build_effort", self.build_effort, integer=True, low=1)
        faiss = _faiss()
        n, d = self.vectors_.shape
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            with threadpool_limits(limits=1, user_api="blas"):
                if self.kind == "hnsw":
                    made = faiss.IndexHNSWFlat(d, self.links, faiss.METRIC_INNER_PRODUCT)
                    made.hnsw.efConstruction = self.build_effort
                else:
                    lists = min(n, self.lists or max(1, int(4 * n**0.5)))
                    made = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
                    made.cp.min_points_per_centroid, made.cp.niter = 1, 10
                    made.train(self.vectors_[:: max(1, n // (64 * lists))])
                made.add(self.vectors_)
        finally:
            faiss.omp_set_num_threads(threads)
        self.structure_ = faiss.serialize_index(made)
        self._opened = made

    def _open(self) -> Any:
        if not hasattr(self, "_opened"):
            self._opened = _faiss().deserialize_index(np.array(self.structure_))
        return self._opened

    def _search(self, queries: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> None:
        faiss, index = _faiss(), self._open()
        wanted = min(positions.shape[1] + _SPARE, self.vectors_.shape[0])
        if self.kind == "hnsw":
            parameters = faiss.SearchParametersHNSW(efSearch=max(self.effort or 64, wanted))
        else:
            parameters = faiss.SearchParametersIVF(nprobe=min(index.nlist, self.effort or max(1, index.nlist // 32)))

        def search_block(block: tuple[int, int]) -> None:
            rows = slice(*block)
            part = np.ascontiguousarray(queries[rows])
            _, nominees = index.search(part, wanted, params=parameters)
            self._rank(part, nominees, positions[rows], scores[rows])

        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            size = min(_ROWS_A_BLOCK, -(-queries.shape[0] // count_jobs(self.n_jobs)) or 1)
            map_blocks(search_block, row_blocks(queries.shape[0], size), n_jobs=self.n_jobs)
        finally:
            faiss.omp_set_num_threads(threads)


def _faiss() -> Any:
    return import_extra("faiss", "ann", "FaissIndex")
