"""The training loop over sequences: batches in parts of about equal length, on threads, and one Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse

from tailwise.embedding.optimizer import RowAdam
from tailwise.embedding.runtime import Processes
from tailwise.parallel import map_blocks
from tailwise.sequence.networks import Network, Parameters, Targets
from tailwise.sequence.tokens import Tokens

_ROWS_A_PART = 16


class Settings(NamedTuple):
    """How to train."""

    batch_size: int
    learning_rate: float
    seed: int
    n_jobs: int | None


class SequenceTrainer:
    """Trains ``parameters`` in place, an epoch a call.

    A batch is cut into parts of 16 rows, shortest rows first, so that little is padding. Each part is differentiated
    on one thread with random numbers of its own, and sums run over the parts in order: the weights have the same bits
    for every number of threads, and a resumed run continues as if it had never stopped.
    """

    def __init__(
        self,
        network: Network,
        parameters: Parameters,
        known_tokens: np.ndarray,
        settings: Settings,
        processes: Processes,
    ) -> None:
        self.network, self.parameters, self.known_tokens = network, parameters, known_tokens
        self.settings, self.processes = settings, processes
        self.optimizer = RowAdam(parameters)

    def n_steps(self, n_rows: int) -> int:
        """Batches an epoch."""
        return -(-n_rows // self.settings.batch_size)

    def run_epoch(
        self, epoch: int, X: sparse.csr_array, Y: sparse.csr_array, done: Callable[[float], None] = lambda loss: None
    ) -> float:
        """One pass over the rows in random order; the mean loss. ``done(loss)`` is called after each batch.

        Each row has a label; an entry of Y is how often its row counts.
        """
        tokens = Tokens.of(X, self.known_tokens)
        order = np.random.default_rng([self.settings.seed, epoch]).permutation(X.shape[0])
        losses = []
        for step, rows in enumerate(np.array_split(order, self.n_steps(X.shape[0]))):
            losses.append(self._step(tokens, Y, rows, [self.settings.seed, epoch, step]))
            done(losses[-1])
        return float(np.mean(losses))

    def _step(self, tokens: Tokens, Y: sparse.csr_array, rows: np.ndarray, seeds: list[int]) -> float:
        device = self.processes.device
        parts = list(enumerate(tokens.buckets(rows, _ROWS_A_PART)))
        batches = [tokens.padded(part) for _, part in parts]
        # Only the vectors of words that occur are differentiated and moved.
        used = np.unique(np.concatenate([[0], *(batch.ravel() for batch in batches)]))
        at = torch.from_numpy(used).to(device)
        leaves = {
            name: (value[at] if name == "words" else value).detach().requires_grad_()
            for name, value in self.parameters.items()
        }

        def differentiate(numbered: tuple[int, np.ndarray]) -> tuple[float, list[Any]]:
            number, part = numbered
            generator = torch.Generator().manual_seed(int(np.random.default_rng([*seeds, number]).integers(2**62)))
            batch = torch.from_numpy(np.searchsorted(used, batches[number])).to(device)
            counted = torch.from_numpy(Y[part].toarray()).to(device)
            targets = Targets((counted > 0).to(counted.dtype), counted.amax(1, keepdim=True))
            loss = self.network.loss(leaves, batch, targets, generator) / rows.size
            return float(loss.detach()), list(torch.autograd.grad(loss, list(leaves.values()), allow_unused=True))

        gradients = {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
        total = torch.zeros(1, dtype=torch.float64, device=device)
        for loss, found in map_blocks(differentiate, self.processes.share(parts), n_jobs=self.settings.n_jobs):
            total += loss
            for name, gradient in zip(leaves, found, strict=True):
                if gradient is not None:
                    gradients[name] += gradient
        self.processes.add([*gradients.values(), total])
        gradients["words"][0] = 0
        self.optimizer.step(gradients, {"words": at}, self.settings.learning_rate)
        return float(total.item())
