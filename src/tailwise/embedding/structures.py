"""What an index of faiss knows besides the vectors, as plain arrays: they can be checked, and faiss's own bytes not."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from tailwise.errors import import_extra
from tailwise.persistence.checks import check_exact, check_finite, check_indices, check_range, check_that
from tailwise.validation import check_number

_RAREST = 1e-9
"""faiss has no level on which a vector would be with a smaller probability."""


class Lists(NamedTuple):
    """Inverted lists: ``centroids`` (n_lists, d) float32, and the list of each vector, ``assigned`` (n,) int64."""

    centroids: np.ndarray
    assigned: np.ndarray

    @classmethod
    def of(cls, index: Any) -> Self:
        """What ``index``, an IndexIVFFlat, has learned."""
        faiss = load_faiss()
        assigned = np.empty(index.ntotal, np.int64)
        for number in range(index.nlist):
            size = index.invlists.list_size(number)
            if size:
                assigned[faiss.rev_swig_ptr(index.invlists.get_ids(number), size)] = number
        return cls(faiss.downcast_index(index.quantizer).reconstruct_n(0, index.nlist), assigned)

    def check(self, n: int, d: int) -> None:
        """Refuse lists that could not hold ``n`` vectors of ``d`` values."""
        check_finite("centroids", check_exact("centroids", self.centroids, np.float32, (None, d)))
        check_indices("assigned", check_exact("assigned", self.assigned, np.int64, (n,)), self.centroids.shape[0])

    def open(self, vectors: np.ndarray, links: int) -> Any:
        """The index of ``vectors``, as it was; ``links`` is the graph's."""
        faiss = load_faiss()
        n_lists, d = self.centroids.shape
        quantizer = faiss.IndexFlatIP(d)
        quantizer.add(self.centroids)
        index = faiss.IndexIVFFlat(quantizer, d, n_lists, faiss.METRIC_INNER_PRODUCT)
        index.is_trained = True
        own, assigned = np.ascontiguousarray(vectors), np.ascontiguousarray(self.assigned)
        index.add_core(len(own), faiss.swig_ptr(own), None, faiss.swig_ptr(assigned))
        return index


class Graph(NamedTuple):
    """A navigable graph: on how many ``levels`` (n,) int32 each vector is, its ``neighbours`` int32, where to enter.

    A vector has places for 2 × links neighbours on level 0 and for as many as ``links`` on each other, -1 where free.
    """

    levels: np.ndarray
    neighbours: np.ndarray
    entry: int

    @classmethod
    def of(cls, index: Any) -> Self:
        """What ``index``, an IndexHNSWFlat, has learned."""
        faiss = load_faiss()
        arrays = faiss.vector_to_array(index.hnsw.levels), faiss.vector_to_array(index.hnsw.neighbors)
        return cls(*arrays, int(index.hnsw.entry_point))

    def check(self, n: int, links: int) -> None:
        """Refuse a graph that leads out of its ``n`` vectors, or to a vector that is not on the level."""
        check_range("levels", check_exact("levels", self.levels, np.int32, (n,)), 1, most_levels(links))
        places = (self.levels.astype(np.int64) + 1) * links
        neighbours = check_exact("neighbours", self.neighbours, np.int32, (int(places.sum()),))
        check_indices("neighbours", neighbours, n, missing=True)
        check_number("entry", self.entry, integer=True, low=0, high=n - 1)
        check_that(self.levels[self.entry] == self.levels.max(), f"entry={self.entry} is not on the highest level")
        # The first 2 × links places of a vector are of level 0, where all are.
        place = np.arange(neighbours.size) - np.repeat(np.cumsum(places) - places, places)
        level = np.maximum(place // links - 1, 0)
        reached = (neighbours < 0) | (self.levels[neighbours] > level)
        check_that(reached.all(), "neighbours leads to a vector that is not on the level")

    def open(self, vectors: np.ndarray, links: int) -> Any:
        """The index of ``vectors``, as it was."""
        faiss = load_faiss()
        index = faiss.IndexHNSWFlat(vectors.shape[1], links, faiss.METRIC_INNER_PRODUCT)
        index.storage.add(np.ascontiguousarray(vectors))
        offsets = np.concatenate([[0], np.cumsum((self.levels.astype(np.uint64) + 1) * links)]).astype(np.uint64)
        faiss.copy_array_to_vector(np.array(self.levels), index.hnsw.levels)
        faiss.copy_array_to_vector(np.array(self.neighbours), index.hnsw.neighbors)
        faiss.copy_array_to_vector(offsets, index.hnsw.offsets)
        index.hnsw.entry_point, index.hnsw.max_level = self.entry, int(self.levels.max()) - 1
        index.ntotal = len(vectors)
        return index


def most_levels(links: int) -> int:
    """How many levels a graph can have: on level l is a vector with probability ``(1 - 1/links) links^-l``."""
    return 1 + int(np.log((1 - 1 / links) / _RAREST) / np.log(links))


def load_faiss() -> Any:
    """The module, or the name of the extra that has it."""
    return import_extra("faiss", "ann", "FaissIndex")
