"""Weight normalisation with one length a layer: a layer's columns are directions, and all share a trainable length."""

from __future__ import annotations

import torch

_SHORTEST = 1e-12


def normalized(directions: torch.Tensor, log_length: torch.Tensor) -> torch.Tensor:
    """``W = e^g V / |V|``, column by column: each output neuron has its own direction, all have the same length.

    >>> normalized(torch.tensor([[3.0, 0.0], [4.0, 5.0]]), torch.zeros(1))
    tensor([[0.6000, 0.0000],
            [0.8000, 1.0000]])
    """
    return directions * (log_length.exp() / _lengths(directions))


def through_normalization(
    gradient: torch.Tensor, directions: torch.Tensor, log_length: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of V and of g, given that of W: what points along a direction goes into the length alone."""
    lengths = _lengths(directions)
    unit = directions / lengths
    along = (gradient * unit).sum(0, keepdim=True)
    length = log_length.exp()
    return (gradient - along * unit) * (length / lengths), length * along.sum().reshape(1)


def mean_log_length(directions: torch.Tensor) -> torch.Tensor:
    """The g with which a layer starts as long as its first weights are on average."""
    return _lengths(directions).mean().log().reshape(1)


def _lengths(directions: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(directions, dim=0, keepdim=True).clamp_min(_SHORTEST)
