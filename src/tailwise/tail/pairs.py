"""Which candidates to learn from: all that tell much, and a share of the many that tell little."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.validation import as_rng

_LEAST_SHARE = 0.05


class Pairs(NamedTuple):
    """Candidates to learn from: features (n, m) float32, whether each is right, and how much each counts."""

    features: np.ndarray
    hits: np.ndarray
    weights: np.ndarray


class PairSample:
    """About ``n_pairs`` of the candidates that come block by block: of the easy ones the share that there is room for.

    An easy pair stays while its own draw is below that share, which only falls as more come. So the sample is the one
    that all pairs together would give, and there is never much more in memory.
    """

    def __init__(self, n_pairs: int, random_state: int | None) -> None:
        self._n_pairs, self._rng = n_pairs, as_rng(random_state)
        self._counts = np.zeros(2, np.int64)
        self._blocks: list[tuple[np.ndarray, Pairs]] = []

    def add(self, pairs: Pairs, easy: np.ndarray) -> None:
        """Take some of a block of pairs; ``easy`` (n,) bool tells which need not all be there."""
        self._counts += np.bincount(easy, minlength=2)
        self._blocks.append((np.where(easy, self._rng.random(easy.size), -1.0), pairs))
        self._blocks = [
            (draws[stays], Pairs(*(part[stays] for part in block)))
            for draws, block in self._blocks
            for stays in [draws < self.share]
        ]

    @property
    def share(self) -> float:
        """The share of the easy pairs that is taken."""
        n_others, n_easy = self._counts.tolist()
        return min(1.0, max(_LEAST_SHARE, (self._n_pairs - n_others) / max(1, n_easy)))

    def taken(self) -> Pairs:
        """The sample; easy pairs count for those that were left out."""
        draws, blocks = zip(*self._blocks, strict=True)
        features, hits, weights = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return Pairs(features, hits, np.where(np.concatenate(draws) >= 0, weights / self.share, weights))
