"""The networks as pure functions of tensors by name: threads share them, and gradients are taken part by part."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch.nn import functional as F  # noqa: N812

Parameters = dict[str, torch.Tensor]


class Targets(NamedTuple):
    """What the rows of a batch should get."""

    labels: torch.Tensor
    """(n, n_labels) of zeros and ones"""
    weights: torch.Tensor
    """(n, 1): how often each row counts"""


class Network:
    """First parameters, the loss of a padded batch of tokens, and the probabilities of labels.

    ``words`` holds a vector a token; token 0 is padding. In :meth:`loss` the tokens number rows of ``words`` as given.
    """

    label_bias: ClassVar[str]
    """The parameter that holds each label's bias."""

    @abstractmethod
    def initial(self, n_tokens: int, generator: torch.Generator) -> Parameters:
        """Parameters to start from."""

    @abstractmethod
    def loss(self, parameters: Parameters, tokens: Any, batch: Targets, generator: torch.Generator) -> torch.Tensor:
        """The summed loss of rows with these labels, each as often as it counts."""

    @abstractmethod
    def probabilities(self, parameters: Parameters, tokens: Any) -> torch.Tensor:
        """(n, n_labels) float32; -inf where a label was not looked at."""


def gaussian(shape: tuple[int, ...], deviation: float, generator: torch.Generator) -> torch.Tensor:
    """Random numbers; only their shape on the device ``meta``."""
    made = torch.empty(shape)
    return made if made.is_meta else made.normal_(0, deviation, generator=generator)


def layer(before: int, after: int, generator: torch.Generator) -> torch.Tensor:
    """Weights (after, before) of a dense layer."""
    return gaussian((after, before), (2 / (before + after)) ** 0.5, generator)


def embed(parameters: Parameters, tokens: Any) -> torch.Tensor:
    """Word vectors (n, length, word_dim), zeros where there is padding."""
    return F.embedding(tokens, parameters["words"]) * (tokens > 0).unsqueeze(-1)


def drop(values: torch.Tensor, share: float, generator: torch.Generator | None) -> torch.Tensor:
    """Dropout that draws from ``generator``; nothing without one."""
    if generator is None or share == 0:
        return values
    kept = torch.rand(values.shape, generator=generator) >= share
    return values * kept.to(values.device) / (1 - share)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The summed binary cross-entropy; ``weights`` says how often each entry counts."""
    return F.binary_cross_entropy_with_logits(logits, targets, weights, reduction="sum")
