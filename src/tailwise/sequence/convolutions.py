"""The network of XMLCNN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F  # noqa: N812

from tailwise.sequence.networks import Network, Parameters, Targets, cross_entropy, drop, embed, gaussian

if TYPE_CHECKING:
    from tailwise.sequence.xml_cnn import XMLCNN


class Convolutions(Network):
    """``σ(V relu(U norm(relu(pool(conv(words))))))``, with dropout before the convolutions and before V.

    Weights start at length 1 and are divided by the root of a layer's inputs where they are used: a step of Adam then
    moves the outputs of wide and of narrow layers alike. What is pooled are maxima, most of them large and nearly the
    same for all rows; without the norm, each row's values less their mean and at unit variance, the first steps along
    that common part push every unit of the bottleneck below zero, where it stays.
    """

    label_bias = "label_bias"

    def __init__(self, model: XMLCNN, n_labels: int) -> None:
        self.model, self.n_labels = model, n_labels

    def initial(self, n_tokens: int, generator: torch.Generator) -> Parameters:
        """Random words and layers; labels start at their biases, which are zero."""
        model = self.model
        parameters = {"words": gaussian((n_tokens + 1, model.word_dim), 1.0, generator)}
        for number, width in enumerate(model.widths):
            parameters[f"filters.{number}"] = gaussian((model.n_filters, model.word_dim, width), 1.0, generator)
            parameters[f"filter_bias.{number}"] = torch.zeros(model.n_filters)
        pooled = len(model.widths) * model.n_filters * model.chunks
        parameters["bottleneck"] = gaussian((model.bottleneck, pooled), 1.0, generator)
        parameters["bottleneck_bias"] = torch.zeros(model.bottleneck)
        parameters["labels"] = torch.zeros(self.n_labels, model.bottleneck)
        parameters["label_bias"] = torch.zeros(self.n_labels)
        return parameters

    def _logits(self, parameters: Parameters, tokens: Any, generator: torch.Generator | None) -> torch.Tensor:
        model = self.model
        words = drop(embed(parameters, tokens), model.word_dropout, generator).transpose(1, 2)
        parts = _parts(tokens, model.chunks)
        pooled = []
        for number, width in enumerate(model.widths):
            # A response at every word, also at the first and the last.
            padded = F.pad(words, (width // 2, width - 1 - width // 2))
            found = F.conv1d(padded, _even(parameters[f"filters.{number}"]), parameters[f"filter_bias.{number}"])
            pooled += [found.masked_fill(~part, -torch.inf).amax(2) for part in parts]
        seen = torch.relu(torch.cat(pooled, dim=1))
        seen = F.layer_norm(seen, seen.shape[1:])
        hidden = torch.relu(F.linear(seen, _even(parameters["bottleneck"]), parameters["bottleneck_bias"]))
        return F.linear(drop(hidden, model.dropout, generator), _even(parameters["labels"]), parameters["label_bias"])

    def loss(self, parameters: Parameters, tokens: Any, batch: Targets, generator: torch.Generator) -> torch.Tensor:
        """The binary cross-entropy over all labels."""
        return cross_entropy(self._logits(parameters, tokens, generator), *batch)

    def probabilities(self, parameters: Parameters, tokens: Any) -> torch.Tensor:
        """A sigmoid a label."""
        return torch.sigmoid(self._logits(parameters, tokens, None))


def _even(weights: torch.Tensor) -> torch.Tensor:
    """Weights (outputs, inputs…) over the root of the number of inputs."""
    return weights * math.prod(weights.shape[1:]) ** -0.5


def _parts(tokens: torch.Tensor, chunks: int) -> list[torch.Tensor]:
    """Which positions are in each part of a row's words, (n, 1, length) of bool; padding is in none.

    Parts follow from a row's own words: the rows beside it in a batch, which decide the padding, change nothing.
    """
    sizes = (tokens > 0).sum(1, keepdim=True)
    places = torch.arange(tokens.shape[1], device=tokens.device)
    number = torch.where(places < sizes, places * chunks // sizes.clamp_min(1), chunks)
    return [(number == part).unsqueeze(1) for part in range(chunks)]
