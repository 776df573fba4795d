"""PPDSparse: hinge losses with L1 and L2 penalties, solved in the dual over the few rows and features that matter."""

from __future__ import annotations

from typing import Any

from tailwise.kernels.solvers.problems import Labels, Options, Rows, Standing, Start, Weights
from tailwise.kernels.solvers.solve import solve_block
from tailwise.linear.one_vs_rest import OneVsRest
from tailwise.parameters import Choice, Number
from tailwise.ranges import Range, Ranges


class PPDSparse(OneVsRest):
    """One classifier a label with sparse weights *and* few support rows (Yen et al. 2016, 2017).

    For each label ``min ½|w|² + l1 |w|₁ + ½(b + 1)² + C Σ_i c_i loss(z_i (w·x_i + b))``. The dual keeps
    ``u = Σ α_i z_i x_i`` with α >= 0 and ``w = soft(u, l1)``: both α and w are sparse at the optimum, and descent
    visits rows of a working set only. Scores are margins.

    Parameters
    ----------
    C : float
        Weight of the loss against the penalties.
    l1 : float
        Strength of the L1 penalty: larger gives sparser weights.
    loss : {"squared_hinge", "hinge"}
        The loss of a margin s: ``max(0, 1 - s)²``, as in the authors' code and better on validation rows, or
        ``max(0, 1 - s)``, as in their papers, which keeps fewer rows.
    prune, positive_weight, normalize, tol, random_state, n_jobs
        As in :class:`DiSMEC`; what L1 leaves is kept by default.

    Examples
    --------
    >>> model = PPDSparse().fit([[1.0, 0], [0, 1.0], [0, 0.9]], [[1, 0], [0, 1], [0, 1]])
    >>> model.predict_topk([[0.2, 0.8]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {"l1": Number(low=0), "loss": Choice("squared_hinge", "hinge")}

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1: float = 0.02,
        loss: str = "squared_hinge",
        prune: float = 0.0,
        positive_weight: Any = 1.0,
        normalize: bool = True,
        tol: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.l1 = l1
        self.loss = loss
        self.prune = prune
        self.positive_weight = positive_weight
        self.normalize = normalize
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return super()._ranges() | ({"l1": Range.around(self.l1, 8)} if self.l1 else {})

    def _solve(self, rows: Rows, labels: Labels, seed: int, prepared: Any, start: Start | Standing) -> Weights:
        options = Options(loss=self.loss, l1=self.l1, tol=self.tol, prune=self.prune, seed=seed, **self._effort(start))
        return solve_block(rows, labels, options, start)
