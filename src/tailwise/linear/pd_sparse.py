"""PDSparse: one max-margin problem over all labels at once, sparse in its weights and in its dual variables."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from tailwise.linear.max_margin import MaxMargin
from tailwise.linear.model import LinearModel
from tailwise.parallel import progress
from tailwise.parameters import Integer, Number
from tailwise.validation import as_rng, check_number


class PDSparse(LinearModel):
    """Every label of a row above every other label by a margin, with L1 and L2 penalties (Yen et al. 2016).

    ``min ½|W|² + l1 |W|₁ + C Σ_i max_{k∉y_i, l∈y_i} [1 + w_k·x_i - w_l·x_i]+``. The dual has a variable for each pair
    of a row and a label, of which few are not 0: block coordinate Frank–Wolfe visits a row's active labels only, and
    all labels are searched for new ones with the sparse weights. Unlike one-vs-rest models it ranks the labels of
    a row against each other; it has no bias. Scores are margins.

    Cost: a round searches once (non-zeros of the rows × weights a feature, on threads) and sweeps five times over
    active labels × non-zeros of their rows (on one thread, because each row changes what the next one sees).

    Parameters
    ----------
    C : float
        Weight of the loss against the penalties.
    l1 : float
        Strength of the L1 penalty: larger gives sparser weights.
    tol : float
        Stop when the duality gap is at most this share of the objective.
    max_rounds : int
        Stop after so many rounds in any case.
    normalize : bool
        Scale rows to unit length, in training and in prediction.
    random_state : int, Generator or None
        Seeds the order of rows.
    n_jobs : int or None
        Threads; None uses every core. The fitted bits do not depend on it.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels)
        float32.
    bias_ : ndarray (n_labels,)
        0; -inf for a label without rows, which is never predicted.
    gap_ : float
        The duality gap of the weights as a share of the objective: how far from the best they can be.
    n_rounds_ : int
        Rounds that it took.

    Examples
    --------
    >>> model = PDSparse().fit([[1.0, 0], [0, 1.0], [0, 0.9]], [[1, 0], [0, 1], [0, 1]])
    >>> model.predict_topk([[0.2, 0.8]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "C": Number(low=0, open_low=True),
        "l1": Number(low=0),
        "tol": Number(low=0, open_low=True),
        "max_rounds": Integer(low=1),
    }

    gap_: float
    n_rounds_: int

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1: float = 0.01,
        tol: float = 0.005,
        max_rounds: int = 50,
        normalize: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.l1 = l1
        self.tol = tol
        self.max_rounds = max_rounds
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        problem = MaxMargin(X, Y, C=self.C, l1=self.l1, rng=as_rng(self.random_state), n_jobs=self.n_jobs)
        self.n_rounds_ = 0
        with progress(f"Training {type(self).__name__}", self.max_rounds) as advance:
            found, bounds = problem.search()
            while bounds.gap > self.tol and self.n_rounds_ < self.max_rounds:
                problem.improve(found)
                found, bounds = problem.search()
                self.n_rounds_ += 1
                advance(note=f"gap {bounds.gap:.2g}")
        self.weights_, self.bias_, self.gap_ = problem.weights, problem.bias, bounds.gap

    def _check_state(self) -> None:
        super()._check_state()
        check_number("gap_", self.gap_)
        check_number("n_rounds_", self.n_rounds_, integer=True, low=0)
