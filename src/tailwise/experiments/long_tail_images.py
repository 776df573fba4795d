"""Images with few rows for most labels: CIFAR-10 and Omniglot from files, cut along a profile; scikit-learn's digits.

A profile says how many rows of each label are kept, from the most frequent to the rarest (Cui et al. 2019, Cao et al.
2019): ``exp`` falls by the same factor from label to label; ``step`` has two numbers, half the labels each.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.errors import DataFormatError, InvalidInput, import_extra
from tailwise.validation import check_choice

_FOLDERS = ("data", "../shared/data")
_CIFAR_SIDE, _OMNIGLOT_SIDE, _OMNIGLOT_POOL, _DRAWINGS, _TEST_DRAWINGS = 32, 105, 7, 20, 5


class Images(NamedTuple):
    """Images (n, channels, h, w) float32, of mean 0 and deviation 1 a channel, and the label of each (n,)."""

    pixels: np.ndarray
    labels: np.ndarray

    def some(self, rows: Any) -> Images:
        """The given rows."""
        return Images(self.pixels[rows], self.labels[rows])

    def indicator(self, n_labels: int) -> sparse.csr_array:
        """The labels as a binary matrix (n, n_labels)."""
        n = self.labels.size
        return sparse.csr_array((np.ones(n, np.float32), self.labels, np.arange(n + 1)), shape=(n, n_labels))


class ImageSet(NamedTuple):
    """Training images to cut a long tail from, test images, and how they are usually cut and augmented."""

    train: Images
    test: Images
    most: dict[str, tuple[int, int]]
    """Rows of the most frequent and of the rarest label, by profile."""
    shuffled: bool
    """Whether each repeat draws which labels are rare; else those stay rare of which there are fewest rows."""
    cuts: tuple[int, int]
    """A label with at least the first number of rows is head, with fewer than the second tail."""
    n_negatives: int
    flipped: bool
    """Whether a mirrored image shows the same label."""


def load_image_set(name: str, folder: str = "") -> ImageSet:
    """The images of that name: ``"cifar10-lt"``, ``"omniglot"`` (from files) or ``"digits"``."""
    check_choice("dataset", name, _READERS)
    if name == "digits":
        return _read_digits()
    for candidate in [folder] if folder else _FOLDERS:
        if (found := Path(candidate) / name).is_dir():
            return _READERS[name](found)
    where = folder or " or ".join(_FOLDERS)
    raise InvalidInput(f"there is no folder {name!r} in {where}; pass the folder that holds it with --data")


def profile_counts(profile: str, n_labels: int, most: int, least: int) -> np.ndarray:
    """Rows of each label, the most frequent first.

    >>> profile_counts("exp", 5, 100, 1).tolist(), profile_counts("step", 5, 100, 1).tolist()
    ([100, 32, 10, 3, 1], [100, 100, 100, 1, 1])
    """
    check_choice("profile", profile, ("exp", "step"))
    place = np.arange(n_labels) / max(1, n_labels - 1)
    if profile == "step":
        return np.where(place <= 0.5, most, least)
    return np.maximum(1, np.round(most * (least / most) ** place)).astype(int)


def cut_to_profile(labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator, shuffled: bool) -> np.ndarray:
    """Rows, drawn at random, such that the labels have ``counts`` rows, or all there are."""
    available = np.bincount(labels, minlength=counts.size)
    order = rng.permutation(counts.size) if shuffled else np.argsort(-available, kind="stable")
    kept = []
    for label, count in zip(order, counts, strict=True):
        kept.append(rng.permutation(np.flatnonzero(labels == label))[:count])
    return np.sort(np.concatenate(kept))


def shift_and_flip(pad: int, flipped: bool) -> Callable[[Any, np.random.Generator], Any]:
    """Move each image by up to ``pad`` pixels and, where ``flipped``, mirror half of them."""

    def augment(images: Any, rng: np.random.Generator) -> Any:
        n, _, height, width = images.shape
        padded = np.pad(images.numpy(), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        down, right = rng.integers(0, 2 * pad + 1, (2, n, 1))
        across = np.arange(width)[None, :] + np.zeros((n, 1), int)
        if flipped:
            across = np.where(rng.random((n, 1)) < 0.5, across[:, ::-1], across)
        rows, columns = down + np.arange(height)[None, :], right + across
        moved = padded[np.arange(n)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return images.new_tensor(np.ascontiguousarray(moved.transpose(0, 3, 1, 2)))

    return augment


def _read_cifar(folder: Path) -> ImageSet:
    """CIFAR-10 cut to a long tail: one image a line of a PNG; pooled to 16 × 16."""
    parts = []
    for part in ("train", "test"):
        found = _read_png(folder / f"{part}.png")
        labels = np.asarray(json.loads(_existing(folder / f"{part}-labels.json").read_text(encoding="utf-8")), int)
        if found.shape != (labels.size, _CIFAR_SIDE**2, 3):
            raise DataFormatError(
                folder / f"{part}.png",
                None,
                f"pixels of shape {found.shape} for {labels.size:,} labels",
                "a line of 1,024 RGB pixels an image",
            )
        pixels = found.reshape(-1, _CIFAR_SIDE, _CIFAR_SIDE, 3).transpose(0, 3, 1, 2)
        parts.append(Images(_pooled(pixels, 2), labels))
    return ImageSet(
        *_standardised(*parts),
        most={"exp": (1000, 10), "step": (600, 6)},
        shuffled=False,
        cuts=(100, 20),
        n_negatives=3,
        flipped=True,
    )


def _read_omniglot(folder: Path) -> ImageSet:
    """Omniglot's characters, each once; of 20 drawings the last 5 are test images; pooled to 15 × 15."""
    drawings: dict[str, list[np.ndarray]] = {}
    for archive in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(archive) as files:
            for name in sorted(name for name in files.namelist() if name.endswith(".png")):
                character = "/".join(name.split("/")[-3:-1])
                if len(drawings.setdefault(character, [])) < _DRAWINGS:
                    with files.open(name) as file:
                        drawings[character].append(_read_png(file))
    whole = (_DRAWINGS, _OMNIGLOT_SIDE, _OMNIGLOT_SIDE)
    if not drawings or any(np.shape(found) != whole for found in drawings.values()):
        raise InvalidInput(f"{folder} holds no whole Omniglot; it needs zip files with 20 PNG a character, 105 × 105")
    ink = 1 - np.stack([np.stack(found) for _, found in sorted(drawings.items())]).astype(np.float32)
    pooled = _pooled(ink.reshape(-1, 1, _OMNIGLOT_SIDE, _OMNIGLOT_SIDE), _OMNIGLOT_POOL)
    labels = np.repeat(np.arange(len(drawings)), _DRAWINGS)
    is_test = np.tile(np.arange(_DRAWINGS) >= _DRAWINGS - _TEST_DRAWINGS, len(drawings))
    every = Images(pooled, labels)
    return ImageSet(
        *_standardised(every.some(~is_test), every.some(is_test)),
        most={"exp": (15, 1), "step": (15, 1)},
        shuffled=True,
        cuts=(7, 3),
        n_negatives=64,
        flipped=False,
    )


def _read_digits() -> ImageSet:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    every = Images(pixels.reshape(-1, 1, 8, 8).astype(np.float32), labels)
    cut = len(labels) // 2
    return ImageSet(
        *_standardised(every.some(slice(cut)), every.some(slice(cut, None))),
        most={"exp": (80, 2), "step": (80, 2)},
        shuffled=True,
        cuts=(30, 6),
        n_negatives=3,
        flipped=False,
    )


_READERS: dict[str, Callable[..., ImageSet]] = {
    "cifar10-lt": _read_cifar,
    "omniglot": _read_omniglot,
    "digits": _read_digits,
}


def _read_png(file: Any) -> np.ndarray:
    image = import_extra("PIL.Image", "report", "reading images")
    return np.asarray(image.open(_existing(file) if isinstance(file, Path) else file))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InvalidInput(f"{path.parent} lacks {path.name}; pass the folder that holds it with --data")
    return path


def _pooled(pixels: np.ndarray, side: int) -> np.ndarray:
    """Means of squares of ``side`` pixels, as float32."""
    n, channels, height, width = pixels.shape
    cut = pixels.reshape(n, channels, height // side, side, width // side, side)
    return cut.mean(axis=(3, 5), dtype=np.float32)


def _standardised(train: Images, test: Images) -> tuple[Images, Images]:
    mean = train.pixels.mean(axis=(0, 2, 3), keepdims=True)
    deviation = train.pixels.std(axis=(0, 2, 3), keepdims=True)
    first, second = (images._replace(pixels=(images.pixels - mean) / deviation) for images in (train, test))
    return first, second
