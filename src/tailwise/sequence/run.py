"""One training run of a network on sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tailwise.embedding.run import Run
from tailwise.sequence.networks import Parameters
from tailwise.sequence.training import SequenceTrainer, Settings
from tailwise.validation import label_counts


class SequenceRun(Run):
    """Trains the network that a :class:`~tailwise.sequence.model.SequenceModel` describes."""

    def _build(self) -> tuple[Parameters, Any]:
        model = self.model
        self.network = model.build_network(self.Y.shape[1])
        generator = torch.Generator().manual_seed(self.seed)
        parameters = {
            name: value.to(self.processes.device)
            for name, value in self.network.initial(model.tokens_.size, generator).items()
        }
        given = model.first_vectors(self.X)
        if given is not None:
            has = torch.from_numpy(given.any(axis=1))
            parameters["words"][1:][has] = torch.from_numpy(given).to(self.processes.device)[has]
        settings = Settings(model.batch_size, model.learning_rate, self.seed, model.n_jobs)
        return parameters, SequenceTrainer(self.network, parameters, model.tokens_, settings, self.processes)

    def _start(self) -> None:
        # From the first step on the network learns which words speak for a label, not how frequent it is.
        share = (label_counts(self.Y) + 0.5) / (self.Y.shape[0] + 1)
        bias = self.parameters[self.network.label_bias]
        bias.copy_(torch.from_numpy(np.log(share / (1 - share)).astype(np.float32)))

    def _average_from(self) -> int | None:
        return self.model.average_from

    def _validate(self, parameters: Parameters) -> float:
        here = {name: value.cpu() for name, value in parameters.items()}
        inside = {label: place for place, label in enumerate(self.model.known_.tolist())}

        def predict(X: Any, k: int) -> Any:
            top = self.model._predict_with(self.network, here, X, k)
            top.labels[top.labels >= 0] = [inside[label] for label in top.labels[top.labels >= 0].tolist()]
            return top

        return self.held_out.measure(predict)
