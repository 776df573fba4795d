"""Suggestions for texts: what Annif's clients ask for, and beyond it tail, exclusion, how many, several languages."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np

from tailwise.assigning import UTILITY, set_sizes
from tailwise.errors import InvalidInput
from tailwise.label_sets import N_CANDIDATES
from tailwise.serving.batching import Question, Ranking, Text
from tailwise.serving.operations import Call
from tailwise.serving.problems import Problem
from tailwise.serving.served import Served
from tailwise.tail.reranker import gains
from tailwise.tail.wrapper import as_probabilities
from tailwise.text.language import detect_language

_log = logging.getLogger("tailwise.serving.texts")

MOST_RESULTS = 1000
"""More are not given, whatever limit is asked for."""
VERSION_HEADER = "X-Tailwise-Model"
"""Which version of the model an answer is of."""


class Wish(NamedTuple):
    """How a ranking becomes results."""

    limit: int = 10
    threshold: float = 0.0
    tail: float | None = None
    exclude: frozenset[str] = frozenset()
    assign: str | None = None

    def depth(self, served: Served) -> int:
        """How many labels the model is asked for: what is left out leaves no gap, what is ranked anew needs more."""
        wanted = min(self.limit, MOST_RESULTS) + sum(uri in served.place for uri in self.exclude)
        if self.tail or self.assign:
            wanted = max(wanted, N_CANDIDATES)
        return min(wanted, served.n_labels)


async def rank(call: Call, served: Served, texts: list[Text], wish: Wish) -> list[Ranking]:
    """The rankings of texts, with at most as many labels as the wish needs."""
    if not wish.limit or not texts:
        return [Ranking(np.empty(0, np.int32), np.empty(0, np.float32))] * len(texts)
    k = wish.depth(served)
    try:
        found = await call.service.batcher.ask([Question(served, text, k) for text in texts])
    except InvalidInput as error:
        raise Problem(400, str(error)) from error
    call.service.metrics.suggested(served.id, len(texts))
    if call.service.settings.log_texts:
        _log.info("texts", extra={"project": served.id, "texts": texts})
    return found


class Chosen(NamedTuple):
    """The labels of a text that a wish leaves, best first, with the model's scores and whether each is assigned."""

    labels: list[int]
    scores: list[float]
    assigned: list[bool] | None


def choose(served: Served, ranking: Ranking, wish: Wish) -> Chosen:
    """What of a ranking is wished for; the order is that of gains where ``tail`` is, scores stay the model's."""
    labels, scores = ranking
    if wish.exclude:
        gone = np.array([served.place[uri] for uri in wish.exclude if uri in served.place], np.int64)
        kept = ~np.isin(labels, gone)
        labels, scores = labels[kept], scores[kept]
    assigned = None
    if wish.assign is not None:
        assigned = labels[: _size(served, scores, wish.assign)]
    if wish.tail:
        worth = gains(as_probabilities(scores, served.tagger.model_), labels, served.inverse_propensity, wish.tail)
        order = np.lexsort((labels, -worth))
        labels, scores = labels[order], scores[order]
    if wish.threshold > 0:
        kept = scores >= wish.threshold
        labels, scores = labels[kept], scores[kept]
    labels, scores = labels[: wish.limit], scores[: wish.limit]
    marks = None if assigned is None else np.isin(labels, assigned).tolist()
    return Chosen(labels.tolist(), scores.tolist(), marks)


def _size(served: Served, scores: np.ndarray, utility: str) -> int:
    """How many of the best labels ``utility`` assigns."""
    if not served.tagger.scores_are_probabilities:
        raise Problem(
            409, f"assign needs probabilities, and the scores of {served.id} are none; train it with calibration"
        )
    try:
        UTILITY.check("assign", utility)
    except InvalidInput as error:
        raise Problem(400, str(error)) from error
    return int(set_sizes(scores[None, :N_CANDIDATES].astype(np.float64), utility)[0]) if scores.size else 0


def text_of(served: Served, body: dict[str, Any]) -> Text:
    """The text of a JSON body, or its fields as the model has them."""
    given = body.get("fields")
    if given is None:
        if "text" not in body:
            raise Problem(400, "the body has neither text nor fields", title="Bad Request")
        return body["text"]
    if "text" in body:
        raise Problem(400, "the body has both text and fields; send one of them", title="Bad Request")
    if not served.fields:
        if len(given) > 1:
            raise Problem(400, f"{served.id} knows no fields; send text", title="Bad Request")
        return next(iter(given.values()))
    unknown = [name for name in given if name not in served.fields]
    if unknown:
        known = ", ".join(served.fields)
        raise Problem(400, f"{served.id} has no field {unknown[0]!r}; its fields are: {known}", title="Bad Request")
    return {name: given.get(name, "") for name in served.fields}


def with_metadata(served: Served, text: str, metadata: dict[str, str]) -> Text:
    """The text of an Annif document: what its metadata say of the model's fields comes before it, on lines of its own.

    A plain text's first line is its first field, so a title that comes as metadata is the title here too.
    """
    known = [metadata[name].replace("\n", " ") for name in served.fields if metadata.get(name)]
    return "\n".join([*known, text])


async def names_language(call: Call, served: Served, text: Text, asked: str | None) -> str | None:
    """The language that names are given in: the one asked for; else, of several, that of the text."""
    if asked or len(served.languages) < 2:
        return asked or next(iter(served.languages), None)
    return await call.service.batcher.run(_detect, text, served.languages)


def _detect(text: Text, languages: list[str]) -> str:
    whole = text if isinstance(text, str) else "\n".join(text.values())
    try:
        return detect_language(whole, languages) or languages[0]
    except InvalidInput:
        # A language of the vocabulary that the detector does not know.
        return languages[0]
