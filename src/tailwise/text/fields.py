"""Which fields of texts are read, and what each weighs: what ``TextFeatures(fields=…)`` means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tailwise.data.texts import ONLY_FIELD, Texts
from tailwise.errors import InvalidInput
from tailwise.parameters import Constraint
from tailwise.persistence.checks import check_kind, check_that
from tailwise.validation import check_choice, check_number

CHOICES = ("balanced", "joined", "separate")


class FieldChoice(Constraint):
    """How fields of texts are read: one of :data:`CHOICES`, or a weight for each."""

    def check(self, name: str, value: Any) -> Any:
        """The value; weights are positive numbers by the names of fields."""
        if not isinstance(value, dict):
            return check_choice(name, value, CHOICES)
        if not value:
            raise InvalidInput(f"{name}={value!r} names no field; pass weights such as {{'title': 1, 'abstract': 2}}")
        for field, weight in value.items():
            if not isinstance(field, str):
                raise InvalidInput(f"{name} has the field {field!r}; fields are called by strings")
            check_number(f"{name}[{field!r}]", weight, low=0, open_low=True)
        return value

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, CHOICES))}, or a dict from field to weight"


def weigh_fields(choice: str | dict[str, float], texts: Sequence[str]) -> dict[str, float]:
    """What each field weighs, as learnt from training texts; none where texts are read as they are joined.

    Balanced, a field weighs the fourth root of its mean length in characters, beside the first one. The length of a row
    of TF-IDF grows as the square root of the text: this is half way between fields that all weigh the same and words
    that all weigh the same.

    >>> texts = Texts({"title": ["a" * 10, "b" * 30], "abstract": ["c" * 320, ""]})
    >>> weigh_fields("balanced", texts)
    {'title': 1.0, 'abstract': 2.0}
    """
    known = list(texts.fields) if isinstance(texts, Texts) else None
    if isinstance(choice, dict):
        missing = [field for field in choice if known is not None and field not in known]
        if missing:
            raise InvalidInput(
                f"fields={choice!r} has {missing[0]!r}, but the texts have the fields {', '.join(known or [])}; "
                "name those"
            )
        return {field: float(weight) for field, weight in choice.items()}
    if choice == "separate":
        return dict.fromkeys(known or [ONLY_FIELD], 1.0)
    if choice == "joined" or not isinstance(texts, Texts) or len(texts.fields) == 1:
        return {}
    means = {field: _mean_length(each) for field, each in texts.fields.items()}
    first = next((mean for mean in means.values() if mean), 1.0)
    return {field: (mean / first) ** 0.25 for field, mean in means.items() if mean}


def check_weights(choice: str | dict[str, float], weights: Any) -> None:
    """Refuse restored ``weights`` that :func:`weigh_fields` could not have given for this choice."""
    for field, weight in check_kind("fields_", weights, dict).items():
        check_number(f"fields_[{field!r}]", weight, low=0, open_low=True)
    if isinstance(choice, dict):
        check_that(list(weights) == list(choice), f"fields_ are {list(weights)}, not {list(choice)}")
    possible = not weights if choice == "joined" else weights or choice != "separate"
    check_that(possible, f"fields_={weights} cannot be of fields={choice!r}")


def _mean_length(texts: Sequence[str]) -> float:
    """Of those that are not empty."""
    lengths = [len(text) for text in texts if text]
    return sum(lengths) / len(lengths) if lengths else 0.0
