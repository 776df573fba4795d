"""TF-IDF rows from the columns of terms."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import part
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.sorting import sort_keys


@njit(nogil=True, cache=True, boundscheck=False)
def weigh_rows(columns, places, shares, frequency, idf, seen, sums, indptr, indices, data):
    """Rows of unit length: of each text the sum of its fields, each of unit length times its share (1 of a single one).

    Field f of text i has the ``columns`` (int32, below ``idf.size``, -1 for what has none) at
    ``places[j]:places[j + 1]`` with j = i · ``shares.size`` + f. A term that comes c times in a field weighs
    ``frequency[c]`` · ``idf``. ``indptr`` (int64), ``indices`` (int32) and ``data`` (float32), with room for all
    columns, are written, indices sorted; ``seen`` (int32) and ``sums`` (float32), zeros by column, are used and left as
    zeros; the others are read. Returns the number of entries.
    """
    fields = shares.size
    n = 0
    indptr[0] = 0
    for text in range(indptr.size - 1):
        start = n
        for field in range(fields):
            begin = n
            first, last = places[text * fields + field], places[text * fields + field + 1]
            for i in range(first, last):
                column = columns[i]
                if column >= 0:
                    if seen[column] == 0:
                        indices[n] = column
                        n += 1
                    seen[column] += 1
            square = 0.0
            for j in range(begin, n):
                weight = np.float64(frequency[seen[indices[j]]] * idf[indices[j]])
                square += weight * weight
            scale = 1.0 / np.sqrt(square) if square > 0 else 1.0
            end, n = n, begin
            for j in range(begin, end):
                column = indices[j]
                weight = np.float32(np.float64(frequency[seen[column]] * idf[column]) * scale) * shares[field]
                seen[column] = 0
                if sums[column] == 0 and weight != 0:
                    indices[n] = column
                    n += 1
                sums[column] += weight
        sort_keys(part(indices, start, n), n - start)
        square = 0.0
        for j in range(start, n):
            square += np.float64(sums[indices[j]]) * np.float64(sums[indices[j]])
        # A single field has unit length already.
        scale = 1.0 / np.sqrt(square) if square > 0 and fields > 1 else 1.0
        for j in range(start, n):
            data[j] = np.float64(sums[indices[j]]) * scale
            sums[indices[j]] = 0
        indptr[text + 1] = n
    return n
