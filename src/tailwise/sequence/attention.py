"""The network of AttentionXML: two LSTMs, and for each label a look at the positions that matter to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F  # noqa: N812

from tailwise.sequence.networks import Network, Parameters, Targets, cross_entropy, drop, embed, gaussian, layer

if TYPE_CHECKING:
    from tailwise.sequence.attention_xml import AttentionXML

_OUTSIDE = -1e4


class Attention(Network):
    """``f_l = v·relu(U Σ_t softmax_t(h_t·a_l) h_t) + b_l`` with h from a bidirectional LSTM; U and v are all labels'.

    With groups of labels the same is done for groups first, with a U and v of their own, and for labels of the row's
    best groups only; a label's probability is then its own times its group's.
    """

    label_bias = "label.bias"

    def __init__(self, model: AttentionXML, n_labels: int, members: torch.Tensor | None) -> None:
        self.model, self.n_labels, self.members = model, n_labels, members
        """``members`` (n_groups, largest) int64 are the labels of each group, ``n_labels`` where there are no more."""

    def initial(self, n_tokens: int, generator: torch.Generator) -> Parameters:
        """Random words, LSTM weights, attention vectors and layers."""
        model = self.model
        width = 2 * model.hidden
        # Of length 1 a number: from smaller ones the LSTM's states are so alike that attention starts to learn late.
        parameters = {"words": gaussian((n_tokens + 1, model.word_dim), 1.0, generator)}
        for way in ("forward", "backward"):
            parameters[f"{way}.input"] = gaussian((4 * model.hidden, model.word_dim), model.word_dim**-0.5, generator)
            parameters[f"{way}.state"] = gaussian((4 * model.hidden, model.hidden), model.hidden**-0.5, generator)
            parameters[f"{way}.bias"] = torch.zeros(4 * model.hidden)
        sizes = {"label": self.n_labels} | ({} if self.members is None else {"group": len(self.members)})
        for name, size in sizes.items():
            parameters[f"{name}.attention"] = gaussian((size, width), width**-0.5, generator)
            parameters[f"{name}.hidden"] = layer(width, model.hidden, generator)
            parameters[f"{name}.hidden_bias"] = torch.zeros(model.hidden)
            parameters[f"{name}.output"] = gaussian((model.hidden,), model.hidden**-0.5, generator)
            parameters[f"{name}.bias"] = torch.zeros(size)
        return parameters

    def _states(self, parameters: Parameters, tokens: Any, generator: torch.Generator | None) -> torch.Tensor:
        """(n, length, 2 hidden). Padding stands at the end of both directions, so no state of a word has seen it."""
        words = drop(embed(parameters, tokens), self.model.word_dropout, generator)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        sizes = (tokens > 0).sum(1, keepdim=True)
        backwards = torch.where(places < sizes, sizes - 1 - places, places).unsqueeze(-1)
        states = self._lstm(parameters, "forward", words)
        turned = self._lstm(parameters, "backward", words.gather(1, backwards.expand_as(words)))
        return torch.cat([states, turned.gather(1, backwards.expand_as(turned))], dim=2)

    def _lstm(self, parameters: Parameters, way: str, words: torch.Tensor) -> torch.Tensor:
        weights = [parameters[f"{way}.{part}"] for part in ("input", "state", "bias")]
        # torch's own has a second bias beside the first.
        weights.append(torch.zeros_like(weights[2]))
        start = words.new_zeros(1, words.shape[0], self.model.hidden)
        return torch._VF.lstm(words, (start, start), weights, True, 1, 0.0, False, False, True)[0]

    def _attend(
        self,
        parameters: Parameters,
        name: str,
        states: torch.Tensor,
        tokens: Any,
        chosen: torch.Tensor | None,
        generator: torch.Generator | None,
    ) -> torch.Tensor:
        """Logits of all labels (or groups), or of those ``chosen`` (n, k) for each row."""
        vectors, bias = parameters[f"{name}.attention"], parameters[f"{name}.bias"]
        if chosen is None:
            weights = states @ vectors.T
        else:
            vectors, bias = vectors[chosen], bias[chosen]
            weights = states @ vectors.transpose(1, 2)
        weights = weights.masked_fill((tokens == 0).unsqueeze(-1), _OUTSIDE).softmax(dim=1)
        seen = drop(weights.transpose(1, 2) @ states, self.model.dropout, generator)
        hidden = torch.relu(F.linear(seen, parameters[f"{name}.hidden"], parameters[f"{name}.hidden_bias"]))
        return hidden @ parameters[f"{name}.output"] + bias

    def loss(self, parameters: Parameters, tokens: Any, batch: Targets, generator: torch.Generator) -> torch.Tensor:
        """The binary cross-entropy over all labels, or over groups and the labels of some groups.

        Those are the groups of the row's labels and those of the others that the network finds most likely.
        """
        states = self._states(parameters, tokens, generator)
        if self.members is None:
            return cross_entropy(self._attend(parameters, "label", states, tokens, None, generator), *batch)
        padded = F.pad(batch.labels, (0, 1))
        group_targets = padded[:, self.members].amax(2)
        logits = self._attend(parameters, "group", states, tokens, None, generator)
        best = (logits.detach() + group_targets * -_OUTSIDE).topk(min(self.model.beam, len(self.members))).indices
        labels = self.members[best].flatten(1)
        inside = labels < self.n_labels
        chosen = labels.clamp_max(self.n_labels - 1)
        own = self._attend(parameters, "label", states, tokens, chosen, generator)
        of_groups = cross_entropy(logits, group_targets, batch.weights)
        return of_groups + cross_entropy(own, padded.gather(1, labels), batch.weights * inside)

    def probabilities(self, parameters: Parameters, tokens: Any) -> torch.Tensor:
        """A sigmoid a label, times its group's; -inf for labels of other groups than the row's best."""
        states = self._states(parameters, tokens, None)
        if self.members is None:
            return torch.sigmoid(self._attend(parameters, "label", states, tokens, None, None))
        groups = torch.sigmoid(self._attend(parameters, "group", states, tokens, None, None))
        likely, best = groups.topk(min(self.model.beam, len(self.members)))
        labels = self.members[best].flatten(1)
        own = torch.sigmoid(
            self._attend(parameters, "label", states, tokens, labels.clamp_max(self.n_labels - 1), None)
        )
        found = torch.full((len(tokens), self.n_labels + 1), -torch.inf)
        found.scatter_(1, labels, own * likely.repeat_interleave(self.members.shape[1], dim=1))
        return found[:, : self.n_labels].contiguous()
