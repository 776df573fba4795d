"""What a data set is: training and test rows with their labels, names, and where it all came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse

import tailwise
from tailwise.data.texts import take_texts
from tailwise.errors import InvalidInput
from tailwise.rows import unit_rows
from tailwise.validation import as_rng, check_features, check_labels, check_number, label_counts


class _Labelled:
    """What data sets with matrices and data sets with texts have in common: their labels."""

    name: str
    source: str
    Y_train: sparse.csr_array
    Y_test: sparse.csr_array | None
    label_names: list[str] | None
    label_ids: list[str] | None
    vocab: Any

    @property
    def n_labels(self) -> int:
        """Columns of ``Y_train``."""
        return int(self.Y_train.shape[1])

    @property
    def n_train(self) -> int:
        """Training rows."""
        return int(self.Y_train.shape[0])

    @property
    def n_test(self) -> int:
        """Test rows; 0 where there is no test set."""
        return 0 if self.Y_test is None else int(self.Y_test.shape[0])

    @property
    def has_test(self) -> bool:
        """Whether there are test rows."""
        return self.Y_test is not None

    @property
    def label_counts(self) -> np.ndarray:
        """How many training rows carry each label: (n_labels,) int64."""
        return label_counts(self.Y_train)

    @property
    def n_with_own_label(self) -> int:
        """Training rows with a label that no other row has; nearly all of them are a sign of misread labels."""
        own = self.label_counts[self.Y_train.indices] == 1
        rows = np.repeat(np.arange(self.n_train), np.diff(self.Y_train.indptr))
        return int(np.unique(rows[own]).size)

    def _check_labels(self, n_train: int, n_test: int | None) -> None:
        self.Y_train = check_labels(self.Y_train, n_rows=n_train)
        if (n_test is None) != (self.Y_test is None):
            raise InvalidInput("a test set needs both rows and labels; pass both or neither")
        if self.Y_test is not None:
            self.Y_test = check_labels(self.Y_test, n_rows=n_test, n_labels=self.n_labels)
        for names in ("label_names", "label_ids"):
            self._check_names(names, self.n_labels, "labels")

    def _check_names(self, which: str, expected: int, what: str) -> None:
        names = getattr(self, which)
        if names is not None and len(names) != expected:
            raise InvalidInput(f"{which} has {len(names):,} entries but there are {expected:,} {what}")

    def _validation_rows(self, fraction: float, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        check_number("fraction", fraction, low=0, high=1, open_low=True, open_high=True)
        if self.n_train < 2:
            raise InvalidInput(
                f"{self.name or 'the data set'} has {self.n_train} training rows; it needs 2 to be split"
            )
        order = as_rng(random_state).permutation(self.n_train)
        cut = min(max(1, round(fraction * self.n_train)), self.n_train - 1)
        return np.sort(order[cut:]), np.sort(order[:cut])

    def _label_facts(self) -> dict[str, Any]:
        counts = self.label_counts
        return {
            "name": self.name,
            "source": self.source,
            "train rows": self.n_train,
            "test rows": self.n_test,
            "labels": self.n_labels,
            "labels a training row": round(float(self.Y_train.nnz) / max(self.n_train, 1), 2),
            "training rows without labels": int((np.diff(self.Y_train.indptr) == 0).sum()),
            "labels without training rows": int((counts == 0).sum()),
            "training rows with a label of their own": self.n_with_own_label,
            "labels on fewer than 5 training rows": int(((counts > 0) & (counts < 5)).sum()),
            "largest label": int(counts.max(initial=0)),
        }


@dataclass(eq=False)
class Dataset(_Labelled):
    """Sparse rows with labels, ready for a model: ``model.fit(data.X_train, data.Y_train)``.

    Parameters
    ----------
    X_train, X_test : csr_array, float32
        Rows by features. ``X_test`` and ``Y_test`` are None where there is no test set.
    Y_train, Y_test : csr_array, float32 ones
        Rows by labels: what was observed.
    label_names, feature_names : list of str, optional
        Readable names, one a column.
    label_ids : list of str, optional
        What the labels are called in the file, where that differs from their names.
    name, source : str
        What it is called and where it came from.
    Y_train_complete, Y_test_complete : csr_array, optional
        The complete truth, where it is known: in synthetic data.
    propensity : (n_labels,) float64, optional
        The chance that a relevant label was observed, where it is known.
    text_features : TextFeatures, optional
        What turned texts into these rows.
    vocab : Vocabulary, optional
        What the labels are from.

    Examples
    --------
    >>> data = Dataset(np.eye(3), np.eye(3), name="tiny")
    >>> data.n_labels, data.has_test
    (3, False)
    """

    X_train: sparse.csr_array
    Y_train: sparse.csr_array
    X_test: sparse.csr_array | None = None
    Y_test: sparse.csr_array | None = None
    label_names: list[str] | None = None
    feature_names: list[str] | None = None
    name: str = ""
    source: str = ""
    label_ids: list[str] | None = None
    Y_train_complete: sparse.csr_array | None = None
    Y_test_complete: sparse.csr_array | None = None
    propensity: np.ndarray | None = None
    text_features: Any = None
    vocab: Any = None

    def __post_init__(self) -> None:
        self.X_train = check_features(self.X_train, allow_no_rows=True)
        if self.X_test is not None:
            self.X_test = check_features(self.X_test, n_features=self.n_features, allow_no_rows=True)
        self._check_labels(self.X_train.shape[0], None if self.X_test is None else self.X_test.shape[0])
        self._check_names("feature_names", self.n_features, "features")

    @property
    def n_features(self) -> int:
        """Columns of ``X_train``."""
        return int(self.X_train.shape[1])

    def with_unit_rows(self) -> Self:
        """The same data with every row of X scaled to unit length, which is what the models expect."""
        test = None if self.X_test is None else unit_rows(self.X_test)
        return replace(self, X_train=unit_rows(self.X_train), X_test=test)

    def validation_split(self, fraction: float = 0.1, random_state: Any = 0) -> Self:
        """A data set whose test rows are a ``fraction`` of the training rows: where settings are chosen."""
        train, held = self._validation_rows(fraction, random_state)
        complete = self.Y_train_complete
        return replace(
            self,
            X_train=self.X_train[train],
            Y_train=self.Y_train[train],
            X_test=self.X_train[held],
            Y_test=self.Y_train[held],
            Y_train_complete=None if complete is None else complete[train],
            Y_test_complete=None if complete is None else complete[held],
        )

    def summary(self) -> dict[str, Any]:
        """The figures that describe the data set, by name."""
        facts = self._label_facts()
        facts["features"] = self.n_features
        facts["features a training row"] = round(float(self.X_train.nnz) / max(self.n_train, 1), 2)
        return facts

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {self.n_train:,} + {self.n_test:,} rows, "
            f"{self.n_features:,} features, {self.n_labels:,} labels)"
        )


@dataclass(eq=False)
class TextDataset(_Labelled):
    """Texts with labels; :meth:`vectorize` turns it into a :class:`Dataset`.

    Parameters
    ----------
    texts_train, texts_test : Texts or list of str
        One text a row, with its fields where the file has several columns of text. ``texts_test`` and ``Y_test`` are
        None where there is no test set.
    Y_train, Y_test : csr_array, float32 ones
        Rows by labels. The columns are the labels of both sets, sorted by id.
    label_ids, label_names : list of str
        What the labels are called in the file, and their readable names (the ids where there are none).
    name, source : str
        What it is called and where it came from.
    reading : dict
        What was found out when the file was read, by name: its columns, its label separator, cells that were tidied.
    vocab : Vocabulary, optional
        What the labels are from.
    """

    texts_train: Sequence[str]
    Y_train: sparse.csr_array
    texts_test: Sequence[str] | None = None
    Y_test: sparse.csr_array | None = None
    label_names: list[str] | None = None
    name: str = ""
    source: str = ""
    label_ids: list[str] | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    vocab: Any = None

    def __post_init__(self) -> None:
        self._check_labels(len(self.texts_train), None if self.texts_test is None else len(self.texts_test))

    def labels_of(self, split: str = "train", *, ids: bool = False) -> list[list[str]]:
        """The label names (or ids) of each row of ``"train"`` or ``"test"``."""
        Y = self.Y_train if split == "train" else self.Y_test
        if Y is None:
            raise InvalidInput(f"{self.name or 'the data set'} has no {split} rows")
        names = (self.label_ids if ids else None) or self.label_names or [str(i) for i in range(self.n_labels)]
        cuts = Y.indptr.tolist()
        found = [names[label] for label in Y.indices.tolist()]
        return [found[a:b] for a, b in pairwise(cuts)]

    def vectorize(self, features: Any = None) -> Dataset:
        """Rows of TF-IDF: ``features``, by default ``TextFeatures()``, is fitted on the training texts unless it is."""
        if features is None:
            # By its public name: what makes rows of texts lives above data.
            features = tailwise.TextFeatures()
        fitted = features.__sklearn_is_fitted__()
        X_train = features.transform(self.texts_train) if fitted else features.fit_transform(self.texts_train)
        return Dataset(
            X_train=X_train,
            Y_train=self.Y_train,
            X_test=None if self.texts_test is None else features.transform(self.texts_test),
            Y_test=self.Y_test,
            label_names=self.label_names,
            feature_names=list(features.get_feature_names_out()),
            name=self.name,
            source=self.source,
            label_ids=self.label_ids,
            text_features=features,
            vocab=self.vocab,
        )

    def validation_split(self, fraction: float = 0.1, random_state: Any = 0) -> Self:
        """A data set whose test rows are a ``fraction`` of the training rows: where settings are chosen."""
        train, held = self._validation_rows(fraction, random_state)
        return replace(
            self,
            texts_train=take_texts(self.texts_train, train),
            Y_train=self.Y_train[train],
            texts_test=take_texts(self.texts_train, held),
            Y_test=self.Y_train[held],
        )

    def summary(self) -> dict[str, Any]:
        """The figures that describe the data set, by name."""
        facts = self._label_facts()
        characters = sum(map(len, self.texts_train))
        facts["characters a training text"] = round(characters / max(self.n_train, 1), 1)
        return facts | self.reading

    def __repr__(self) -> str:
        return f"TextDataset({self.name!r}, {self.n_train:,} + {self.n_test:,} texts, {self.n_labels:,} labels)"
