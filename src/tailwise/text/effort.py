"""What is trained where nobody names a model: by the effort it may take, how large the data are, what they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import XMCModel
from tailwise.baselines import Centroid, NearestRows
from tailwise.by_size import BySize
from tailwise.data.texts import Texts
from tailwise.errors import InvalidInput, import_extra
from tailwise.parameters import Choice
from tailwise.propensity import Propensity
from tailwise.tail import Calibrated, Columns, PropensityReranker, Stacked
from tailwise.text.features import TextFeatures
from tailwise.text.matched_names import MatchedNames
from tailwise.text.matcher import LabelMatcher
from tailwise.text.parts import TextParts
from tailwise.text.rows import KnownLabels, TextRows
from tailwise.trees import Bonsai

EFFORTS = ("quick", "normal", "best")
EFFORT = Choice(*EFFORTS)
"""The constraint of a parameter ``effort``."""

_ENOUGH_TO_CALIBRATE = 200
_HELD_OUT = {"quick": 5_000, "normal": 10_000, "best": 15_000}
"""Rows that are predicted out of fold, to calibrate or to combine."""
_QUICK_MINUTES = 1.0
_NEIGHBOUR_ROWS = 300_000
_TREE_SHARE = 0.6
"""What one tree over labels on runs of two words costs beside one classifier a label on words."""
_TITLE_SHARE = 0.3
"""What the title's words alone cost beside all words."""
_COMBINING_MINUTES = 2.5
"""What it takes to learn how members are combined, from all rows that are held out for it."""
_BYTES_AT_LEAST = 4e8
_BYTES_A_VALUE = 50
_BYTES_A_LABEL = 12_000
"""Of memory while training, for each stored value of X and each label with training rows, a rough guide."""
_BYTES_COMBINING = 1.2e9
"""Of memory for what members say of all rows that are held out."""
_NO_NAME = re.compile(r"\W*|[\d\W_]+|\w+:\S*")


class Plan(NamedTuple):
    """A model that is not fitted yet, why it was chosen, and about what its training takes."""

    model: XMCModel
    reason: str
    minutes: float
    """CPU-minutes."""
    gigabytes: float


def check_minutes(minutes: float | None, chosen: bool) -> None:
    """Refuse a time for settings where nothing chooses them: a named model, or no Optuna."""
    if minutes is None:
        return
    if not chosen:
        raise InvalidInput(
            f"minutes={minutes:g} is for a model that is chosen by effort; leave the model out, or choose its settings "
            "by `tailwise tune`"
        )
    import_extra("optuna", "tune", f"minutes={minutes:g}")


def plan_features(effort: str, texts: Sequence[str], labels: KnownLabels, given: TextRows | None = None) -> TextRows:
    """How texts become rows: as ``given``, or by their words.

    With more than quick effort also the names of labels found in them where labels have names, and for the best runs of
    two words, and the title's words where texts have fields, in columns of their own.

    >>> labels = KnownLabels(["u:1", "u:2"], ["law", "fish"], sparse.csr_array((1, 2)))
    >>> plan_features("normal", ["of fish"], labels)
    TextParts(parts=[TextFeatures(), LabelMatcher()])
    >>> plan_features("quick", ["of fish"], labels)
    TextFeatures()
    """
    given = TextFeatures() if given is None else given
    parts = list(given.parts) if isinstance(given, TextParts) and given.weights is None else [given]
    if effort == "best":
        parts.append(TextFeatures(word_ngrams=2, fields="joined"))
        if isinstance(texts, Texts) and len(texts.fields) > 1:
            parts.append(TextFeatures(fields={next(iter(texts.fields)): 1.0}))
    if effort != "quick" and have_names(labels) and not given.finds_labels:
        parts.append(LabelMatcher())
    return given if len(parts) == 1 else TextParts(parts)


def have_names(labels: KnownLabels) -> bool:
    """Whether most labels are called by words that a text could hold, not by numbers or addresses."""
    named = sum(not _NO_NAME.fullmatch(name) for name in labels.names)
    return 2 * named > len(labels.names)


def plan_model(
    effort: str,
    X: sparse.csr_array,
    Y: sparse.csr_array,
    groups: Mapping[str, tuple[int, int]],
    *,
    base: BySize,
    random_state: int | None,
) -> Plan:
    """The model for these rows; its parts read the groups of columns that are made for them.

    ``"quick"`` is one model, a tree unless one classifier a label takes under a minute. ``"normal"`` is the most
    accurate single model that takes minutes, and a stack of it with the names found where there are any. ``"best"`` is
    a stack of models that differ. ``base`` chooses between one classifier a label and a tree.
    """
    roles = _roles(groups)
    n_values = int(sum(_values(X, groups[name]) for name in roles["words"]) if groups else X.nnz)
    n_labels = int(np.unique(Y.indices).size)
    if effort == "quick":
        tree = base.tree or Bonsai(n_trees=1, random_state=random_state)
        minutes = min(base.max_minutes, _QUICK_MINUTES)
        base = BySize(one_vs_rest=base.one_vs_rest, tree=tree, max_minutes=minutes)
    chosen = base.for_size(X.shape[0], n_labels, n_values)
    fits = 1 + min(1.0, _HELD_OUT[effort] / max(1, X.shape[0])) if effort == "quick" else 2.0
    share = 1.0
    found = [("words", chosen.model)]
    if effort == "best":
        near = [NearestRows()] if X.shape[0] <= _NEIGHBOUR_ROWS else []
        tree = Bonsai(n_trees=1, random_state=random_state)
        found += [("words", member) for member in near]
        found += [("runs" if roles["runs"] else "words", tree), ("title", chosen.model)]
        found += [(role, member) for role in ("title", "vectors") for member in near or [Centroid()]]
        share += _TREE_SHARE + (_TITLE_SHARE if roles["title"] else 0)
    found.append(("names", MatchedNames(random_state=random_state)))
    # Rows of X without names of columns are read whole.
    members = [
        _on(member, roles[role], groups) for role, member in found if roles[role] or (role == "words" and not groups)
    ]
    model, reason = members[0], chosen.reason
    minutes = chosen.minutes * share * fits
    gigabytes = (_BYTES_AT_LEAST + X.nnz * _BYTES_A_VALUE + n_labels * _BYTES_A_LABEL * share) / 1e9
    if len(members) > 1:
        held_out = min(1.0, X.shape[0] / _HELD_OUT[effort])
        minutes += _COMBINING_MINUTES * held_out
        gigabytes += _BYTES_COMBINING * held_out / 1e9
        model = Stacked(members, n_rows=_HELD_OUT[effort], random_state=random_state)
        reason = f"{reason}; {len(members)} models are combined"
    return Plan(model, reason, minutes, gigabytes)


def _roles(groups: Mapping[str, tuple[int, int]]) -> dict[str, list[str]]:
    """What groups of columns are: the words that one model reads alone, others beside them, vectors, names."""
    roles: dict[str, list[str]] = {"words": [], "runs": [], "title": [], "vectors": [], "names": []}
    for name in groups:
        if name in ("vectors", "names"):
            role = name
        elif name == "words 2":
            role = "runs"
        elif name.endswith(" words") and "words" in groups:
            role = "title"
        else:
            role = "words"
        roles[role].append(name)
    return roles


def _on(model: XMCModel, names: list[str], groups: Mapping[str, tuple[int, int]]) -> XMCModel:
    """``model`` on these groups; itself where they are all there are."""
    if len(names) == len(groups):
        return model
    return Columns(model, group=names if len(names) > 1 else names[0])


def _values(X: sparse.csr_array, columns: tuple[int, int]) -> int:
    first, last = columns
    return int(((X.indices >= first) & (X.indices < last)).sum())


def compose(
    model: XMCModel,
    *,
    n_rows: int,
    effort: str,
    calibrate: bool,
    tail: float,
    propensity: Propensity | None,
    random_state: int | None,
) -> XMCModel:
    """``model`` with scores that are probabilities, where ``calibrate`` wants them, leaning to rare labels by ``tail``.

    Fewer than 200 rows are too few to calibrate on: the scores stay what they are.
    """
    if calibrate and not model.scores_are_probabilities and n_rows >= _ENOUGH_TO_CALIBRATE:
        model = Calibrated(model, per="frequency-bin", n_rows=_HELD_OUT[effort], random_state=random_state)
    return PropensityReranker(model, tail=tail, propensity=propensity) if tail else model
