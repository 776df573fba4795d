"""Labelled rows: what is learned from or judged on, whether texts or rows of X."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.texts import take_texts
from tailwise.validation import check_choice


class Rows(NamedTuple):
    """Texts or rows of X with their observed labels, and what the labels are called."""

    name: str
    rows: Any
    """Texts or a CSR matrix."""
    Y: sparse.csr_array
    label_ids: list[str]
    label_names: list[str]
    vocab: Any = None
    """The Vocabulary that the labels are from, where there is one."""

    @classmethod
    def of(cls, data: Dataset | TextDataset, part: str = "train") -> Self:
        """The ``"train"`` or ``"test"`` rows of a data set; one without test rows gives all it has.

        >>> import numpy as np
        >>> Rows.of(Dataset(np.eye(2), np.eye(2), name="tiny"), "test").label_ids
        ['0', '1']
        """
        check_choice("part", part, ("train", "test"))
        rows, Y = (data.X_train, data.Y_train) if isinstance(data, Dataset) else (data.texts_train, data.Y_train)
        if part == "test" and data.Y_test is not None:
            rows, Y = (data.X_test, data.Y_test) if isinstance(data, Dataset) else (data.texts_test, data.Y_test)
        ids = data.label_ids or [str(label) for label in range(data.n_labels)]
        return cls(data.name, rows, Y, ids, data.label_names or ids, data.vocab)

    def take(self, rows: np.ndarray) -> Self:
        """Some of the rows, by number, with the labels that occur on them."""
        Y = self.Y[rows]
        seen = np.unique(Y.indices)
        chosen = take_texts(self.texts, rows) if self.texts is not None else self.rows[rows]
        ids, names = ([names[label] for label in seen.tolist()] for names in (self.label_ids, self.label_names))
        return self._replace(rows=chosen, Y=Y[:, seen], label_ids=ids, label_names=names)

    @property
    def texts(self) -> Sequence[str] | None:
        """The texts, where rows are texts."""
        return None if sparse.issparse(self.rows) else self.rows
