"""Adam that updates only the rows a batch has touched."""

from __future__ import annotations

import math

import torch

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class RowAdam:
    """Adam (Kingma and Ba) over a dict of parameters; of tables, only the given rows move.

    A row that a batch did not touch keeps its value and its moments, so a step costs what the batch touched and not
    what the table holds. Where every row is touched this is plain Adam. ``state`` holds the moments and the number of
    steps as tensors: all that a resumed run needs.
    """

    def __init__(self, parameters: dict[str, torch.Tensor]) -> None:
        self.parameters = parameters
        self.state: dict[str, torch.Tensor] = {"steps": torch.zeros(1, dtype=torch.int64)}
        for name, value in parameters.items():
            self.state[f"mean.{name}"] = torch.zeros_like(value)
            self.state[f"square.{name}"] = torch.zeros_like(value)

    def step(
        self, gradients: dict[str, torch.Tensor], rows: dict[str, torch.Tensor | None], learning_rate: float
    ) -> None:
        """Move each parameter; ``rows[name]`` are the distinct rows its gradient is for, None means all of them."""
        self.state["steps"] += 1
        steps = int(self.state["steps"].item())
        rate = learning_rate * math.sqrt(1 - _BETA2**steps) / (1 - _BETA1**steps)
        for name, gradient in gradients.items():
            at = rows.get(name)
            value, mean, square = (
                table if at is None else table[at]
                for table in (self.parameters[name], self.state[f"mean.{name}"], self.state[f"square.{name}"])
            )
            mean.mul_(_BETA1).add_(gradient, alpha=1 - _BETA1)
            square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
            value.addcdiv_(mean, square.sqrt().add_(_EPSILON), value=-rate)
            if at is not None:
                self.parameters[name][at] = value
                self.state[f"mean.{name}"][at] = mean
                self.state[f"square.{name}"][at] = square
