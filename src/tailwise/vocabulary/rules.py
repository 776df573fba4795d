"""Which labels may be suggested: rules by id, name, scheme, collection and frequency, as a mask over columns."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from tailwise import persistence
from tailwise.errors import InvalidInput
from tailwise.parameters import Constraint, check_parameters
from tailwise.vocabulary.vocabulary import Groups, Vocabulary

WAYS = "id:ID, name:PATTERN, scheme:NAME, collection:NAME, rows<5, deprecated"
_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq}


class Labels(NamedTuple):
    """The columns that rules are about: ids, names and training rows of each, and the vocabulary they are from."""

    ids: Sequence[str]
    names: Sequence[str]
    counts: np.ndarray
    vocabulary: Vocabulary | None = None


class Effect(NamedTuple):
    """What one rule does: to how many labels it applies."""

    rule: str
    labels: int

    def __str__(self) -> str:
        return f"{self.rule} ({self.labels:,} labels)"


class _Rules(Constraint):
    """A list of rules that can be read, whatever the labels are."""

    def check(self, name: str, value: Any) -> Any:
        """The value, every rule of which can be read."""
        if isinstance(value, str) or not isinstance(value, list | tuple):
            raise InvalidInput(f"{name}={value!r}; pass a list of rules: [{value!r}]")
        for rule in value:
            _parse(rule)
        return value

    def __str__(self) -> str:
        return f"a list of {WAYS}"


class LabelRules(persistence.Saveable, BaseEstimator):
    """Labels to include and to exclude; a label may be suggested if an ``include`` and no ``exclude`` applies to it.

    Parameters
    ----------
    include, exclude : list of str
        Rules. Without ``include`` every label is. A rule is one of

        * ``id:ID``, or an id alone: that label;
        * ``name:PATTERN``: labels with such a name or synonym; ``*`` is any text, ``?`` any character, case does not
          matter;
        * ``scheme:NAME``, ``collection:NAME``: concepts in it, by its id or its name;
        * ``rows<5`` (``<= > >= =`` too): by how many training rows have the label;
        * ``deprecated``: what the vocabulary says is no longer given.

    Examples
    --------
    >>> labels = Labels(["u:1", "u:2", "u:3"], ["Fish", "Law", "Fishing law"], np.array([9, 4, 2]))
    >>> LabelRules(include=["name:*law"], exclude=["rows<3"]).mask(labels).tolist()
    [False, True, False]
    """

    _parameters = {"include": _Rules(), "exclude": _Rules()}

    def __init__(self, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self.include = include
        self.exclude = exclude

    def _check_state(self) -> None:
        check_parameters(self)

    def __bool__(self) -> bool:
        return bool(self.include or self.exclude)

    def mask(self, labels: Labels) -> np.ndarray:
        """Which labels may be suggested: (n_labels,) bool. Rules that leave none are refused."""
        check_parameters(self)
        allowed = np.full(len(labels.ids), not self.include)
        for rule in self.include:
            allowed |= _applies(rule, labels)
        for rule in self.exclude:
            allowed &= ~_applies(rule, labels)
        if not allowed.any():
            raise InvalidInput(f"{self!r} leaves none of the {len(labels.ids):,} labels; take a rule away")
        return allowed

    def effects(self, labels: Labels) -> dict[str, list[Effect]]:
        """Each rule, by what it is for, and to how many labels it applies."""
        return {
            name: [Effect(rule, int(_applies(rule, labels).sum())) for rule in rules]
            for name, rules in (("include", self.include), ("exclude", self.exclude))
        }


def _parse(rule: Any) -> tuple[str, Any]:
    if not isinstance(rule, str) or not rule.strip():
        raise InvalidInput(f"the rule {rule!r} is no rule; pass one of {WAYS}")
    rule = rule.strip()
    if rule == "deprecated":
        return "deprecated", None
    counted = re.fullmatch(r"rows\s*(<=|>=|<|>|=)\s*(\d{1,18})", rule)
    if counted:
        return "rows", (_COMPARISONS[counted[1]], int(counted[2]))
    if rule.startswith("rows") and not rule[4:5].isalnum():
        raise InvalidInput(f"the rule {rule!r} does not compare with a number; write it like rows<5 or rows>=100")
    kind, colon, value = rule.partition(":")
    if colon and kind in ("id", "name", "scheme", "collection"):
        if not value.strip():
            raise InvalidInput(f"the rule {rule!r} says no {kind}; pass one of {WAYS}")
        return kind, value.strip()
    return "id", rule


def _applies(rule: str, labels: Labels) -> np.ndarray:
    kind, value = _parse(rule)
    if kind == "rows":
        compare, number = value
        return np.asarray(compare(labels.counts, number), bool)
    if kind == "id":
        return _of_id(rule, value, labels)
    if kind == "name":
        return _of_name(value, labels)
    if labels.vocabulary is None:
        raise InvalidInput(f"the rule {rule!r} needs a vocabulary; the labels have none")
    place = labels.vocabulary.places(labels.ids)
    if kind == "deprecated":
        return (place >= 0) & labels.vocabulary.deprecated[place]
    groups = labels.vocabulary.schemes if kind == "scheme" else labels.vocabulary.collections
    return np.isin(place, _members(rule, value, groups))


def _of_id(rule: str, label: str, labels: Labels) -> np.ndarray:
    chosen = np.fromiter((known == label for known in labels.ids), bool, len(labels.ids))
    if not chosen.any() and (labels.vocabulary is None or label not in labels.vocabulary):
        raise InvalidInput(f"the rule {rule!r} names no label and no concept; pass one of {WAYS}")
    return chosen


def _of_name(pattern: str, labels: Labels) -> np.ndarray:
    match = re.compile(fnmatch.translate(pattern.casefold())).match
    chosen = np.fromiter((match(name.casefold()) is not None for name in labels.names), bool, len(labels.names))
    if labels.vocabulary is not None:
        terms = labels.vocabulary.terms
        named = np.fromiter((match(text.casefold()) is not None for text in terms.text), bool, len(terms.text))
        chosen |= np.isin(labels.vocabulary.places(labels.ids), terms.concept[named])
    return chosen


def _members(rule: str, group: str, groups: Groups) -> np.ndarray:
    found = [i for i, (known, name) in enumerate(zip(groups.ids, groups.names, strict=True)) if group in (known, name)]
    if not found:
        there = ", ".join(groups.names[:10]) or "none"
        raise InvalidInput(f"the rule {rule!r} names none of those in the vocabulary: {there}")
    return groups.members[np.isin(groups.members[:, 1], found), 0]
