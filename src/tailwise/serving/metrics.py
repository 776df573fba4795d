"""Counts and times for Prometheus, right with several workers: each writes its own, and any of them adds them up.

prometheus_client keeps the numbers of each process in a mapped file where ``PROMETHEUS_MULTIPROC_DIR`` says, which
:mod:`tailwise.serving.workers` sets before it is imported; a counter of a worker that died keeps what it had.
"""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """What is counted in this process, and the sum over all."""

    def __init__(self) -> None:
        if os.environ.get(FOLDER_VARIABLE):
            # A worker forks no more; else every count would ask the system for the number of its process.
            here = os.getpid()
            values.ValueClass = values.MultiProcessValue(lambda: here)
        self._registry = CollectorRegistry()
        registry = self._registry
        self._requests = Counter("tailwise_requests", "Requests answered.", ["operation", "status"], registry=registry)
        self._seconds = Histogram(
            "tailwise_request_seconds", "Time to an answer.", ["operation"], buckets=_SECONDS, registry=registry
        )
        self._texts = Counter("tailwise_texts", "Texts that got suggestions.", ["project"], registry=registry)
        self._batches = Histogram(
            "tailwise_batch_texts", "Texts that a model answered together.", buckets=_ROWS, registry=registry
        )
        self._models = Counter(
            "tailwise_model_changes",
            "Models added, replaced, refused, removed.",
            ["project", "change"],
            registry=registry,
        )
        self._under_way = Gauge(
            "tailwise_requests_under_way", "Requests being answered.", multiprocess_mode="livesum", registry=registry
        )

    def began(self) -> None:
        """A request came."""
        self._under_way.inc()

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """A request is done."""
        self._under_way.dec()
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def suggested(self, project: str, texts: int) -> None:
        """So many texts got suggestions."""
        self._texts.labels(project).inc(texts)

    def batched(self, texts: int) -> None:
        """A model answered so many together."""
        self._batches.observe(texts)

    def model_changed(self, project: str, what: str) -> None:
        """A model was added, replaced, refused or removed."""
        self._models.labels(project, what).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it: of every worker where there are several."""
        if os.environ.get(FOLDER_VARIABLE):
            whole = CollectorRegistry()
            MultiProcessCollector(whole)
            return generate_latest(whole)
        return generate_latest(self._registry)
