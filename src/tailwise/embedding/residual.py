"""A small residual network of images, as a body of :class:`~tailwise.embedding.RowNetwork`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class ResidualBlock(nn.Module):
    """``relu(x' + BN(conv(relu(BN(conv(x))))))``, two 3 × 3 convolutions (He et al. 2016).

    x' is x, or a 1 × 1 convolution of it where the size changes.
    """

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(channels_in, channels, 3, stride)
        self.second = _convolution(channels, channels, 3)
        same = channels_in == channels and stride == 1
        self.shortcut = nn.Identity() if same else _convolution(channels_in, channels, 1, stride)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (n, channels_in, h, w) to (n, channels, h / stride, w / stride)."""
        return torch.relu(self.shortcut(images) + self.second(torch.relu(self.first(images))))


class ResidualNetwork(nn.Module):
    """Three stages of residual blocks on images (n, channels, h, w), each of half the side and twice the width.

    The vector of an image, (4 · width,), is the mean over the last stage's pixels. ``blocks`` a stage: 1 makes a
    ResNet-8, 9 the ResNet-56 of He et al. ``first_stride=2`` halves the image at once, for a quarter of the work.
    """

    def __init__(self, channels: int, *, width: int = 16, blocks: int = 1, first_stride: int = 1) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(channels, width, 3, first_stride), nn.ReLU()]
        before = width
        for stage in range(3):
            for block in range(blocks):
                layers.append(ResidualBlock(before, width << stage, 2 if stage and not block else 1))
                before = width << stage
        self.layers = nn.Sequential(*layers)
        # One core computes a step in two thirds of the time where a pixel's channels lie side by side.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The images' vectors."""
        found: Any = self.layers(images.contiguous(memory_format=torch.channels_last))
        return found.mean(dim=(2, 3))


def _convolution(channels_in: int, channels: int, size: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, size, stride, size // 2, bias=False), nn.BatchNorm2d(channels)
    )
