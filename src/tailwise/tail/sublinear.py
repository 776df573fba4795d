"""Damped features for any model: a word that comes a hundred times does not say a hundred times as much."""

from __future__ import annotations

from scipy import sparse

from tailwise.base import XMCModel
from tailwise.parameters import Flag, Number
from tailwise.ranges import Range, Ranges
from tailwise.rows import RowView, idf_weights
from tailwise.tail.wrapper import OtherRows


class Sublinear(OtherRows):
    """Fit ``base`` on rows whose values are raised to ``power``, ``sign(x) |x|^power``, and scaled to unit length.

    Counts and TF-IDF values of long documents are dominated by a few words; a power below 1 lets the others speak,
    which rare labels need most. 0.5 is the square root of the Hellinger kernel. Texts that went through
    ``TextFeatures(sublinear_tf=True)`` are damped already. The wrapped model's scores are passed on unchanged.

    Parameters
    ----------
    base : XMCModel
        The model; it is cloned.
    power : float
        1 leaves the rows as they are, up to their length; 0 keeps only which features are there.
    idf : bool
        Weigh the damped values by ``ln((1 + n) / (1 + rows that have the feature)) + 1``, n training rows. For counts;
        published TF-IDF values have such a weight already.
    n_jobs : int or None
        Threads of the wrapped model; None leaves it its own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> model = Sublinear(Centroid()).fit([[100.0, 1], [0, 9.0]], [[1, 0], [0, 1]])
    >>> model.predict_topk([[0.0, 2.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {"power": Number(low=0), "idf": Flag()}

    def __init__(self, base: XMCModel, *, power: float = 0.5, idf: bool = False, n_jobs: int | None = None) -> None:
        self.base = base
        self.power = power
        self.idf = idf
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"power": Range(0.2, 1.0, self.power)}

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return RowView(power=self.power, weights=idf_weights(X) if self.idf else None, unit=True)
