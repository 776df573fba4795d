"""Metrics are named by strings: ``[ps]name[@k][:slice]``, such as ``"psp@5"`` or ``"recall@5:tail"``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

from tailwise.errors import InvalidInput
from tailwise.metrics.definitions import METRICS, Metric
from tailwise.parameters import Constraint

_FORM = re.compile(r"(?P<name>[a-z_0-9]+?)(?:@(?P<k>\d+))?(?::(?P<slice>\w+))?")


class Request(NamedTuple):
    """One metric that was asked for; ``k`` is None where the whole prediction counts."""

    text: str
    metric: Metric
    scored: bool
    k: int | None
    slice: str | None

    @property
    def base(self) -> str:
        """The name without the slice."""
        return self.text.partition(":")[0]


def metric_names() -> list[str]:
    """Every metric that can be asked for, with ``@k`` where a k must be named.

    Examples
    --------
    >>> metric_names()[:4]
    ['p@k', 'psp@k', 'ndcg@k', 'psndcg@k']
    """
    names = []
    for metric in METRICS.values():
        suffix = "@k" if metric.needs_k else ""
        names += [metric.name + suffix, *([f"ps{metric.name}{suffix}"] if metric.can_be_scored else [])]
    return names


def parse_metric(text: Any) -> Request:
    """Understand a metric's name.

    >>> parse_metric("psrecall@5:tail")._replace(metric=None)
    Request(text='psrecall@5:tail', metric=None, scored=True, k=5, slice='tail')
    """
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidInput(f"metric {text!r} does not have the form name@k or name@k:slice, such as 'recall@5:tail'")
    name = match["name"]
    metric, scored = METRICS.get(name), False
    if metric is None and name.startswith("ps"):
        metric, scored = METRICS.get(name[2:]), True
    if metric is None or (scored and not metric.can_be_scored):
        known = metric_names()
        close = get_close_matches(name, [k.partition("@")[0] for k in known], n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InvalidInput(f"metric {text!r} is not known; {hint}the metrics are {', '.join(known)}")
    if metric.needs_k and match["k"] is None:
        raise InvalidInput(f"metric {text!r} needs the number of labels to look at, such as '{name}@5'")
    k = int(match["k"]) if match["k"] else None
    if k == 0:
        raise InvalidInput(f"metric {text!r} looks at no label; k must be at least 1")
    return Request(text, metric, scored, k, match["slice"])


def parse_metrics(metrics: str | Iterable[str] | None, *, scored: bool) -> list[Request]:
    """Understand names, or one name; None is p@k for k = 1, 3, 5, the same of psp@k if ``scored``, and coverage@5."""
    if metrics is None:
        metrics = [f"p@{k}" for k in (1, 3, 5)] + [f"psp@{k}" for k in (1, 3, 5) if scored] + ["coverage@5"]
    requests = [parse_metric(text) for text in ([metrics] if isinstance(metrics, str) else metrics)]
    if not requests:
        raise InvalidInput("metrics is empty; name at least one, such as 'p@5'")
    return list({request.text: request for request in requests}.values())


class MetricName(Constraint):
    """The name of a metric."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a name that :func:`parse_metric` understands."""
        try:
            parse_metric(value)
        except InvalidInput as error:
            raise InvalidInput(f"{name}={value!r}: {error}") from error
        return value

    def __str__(self) -> str:
        return "a metric such as 'psp@5'"


METRIC = MetricName()
"""The constraint of a parameter that names a metric."""
