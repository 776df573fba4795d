"""What a model is: what it was trained on, what it can do, and how well it did where it was judged."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from tailwise.display import describe
from tailwise.errors import ModelFileError
from tailwise.persistence import read_manifest
from tailwise.serving import schemas as s
from tailwise.serving.labels import rarity_counts
from tailwise.serving.operations import Call, Operation
from tailwise.serving.served import Served

_log = logging.getLogger("tailwise.serving")


def make_card(served: Served, allow_learn: bool) -> dict[str, Any]:
    """What is known of a model; reads its manifest and its evaluation."""
    tagger = served.tagger
    return {
        "id": served.id,
        "name": served.name,
        "version": served.version[:12],
        "model": describe(tagger.model_),
        "trained": {
            "rows": tagger.n_samples_,
            "labels": served.n_labels,
            "labels_by_rarity": rarity_counts(served),
            "label_rows": int(np.asarray(served.counts).sum()),
            "columns": tagger.model_.n_features_in_,
            "groups": {} if tagger.features_ is None else _sizes(tagger.features_.groups_),
            "when": served.modified.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "tailwise_version": read_manifest(served.source.path)["tailwise_version"],
            "effort": tagger.effort,
            "keeps_training_data": tagger.training_ is not None,
            "vocabulary": None if served.vocabulary is None else served.vocabulary.summary(),
        },
        "languages": served.languages,
        "fields": served.fields,
        "tail": True,
        "assign": bool(tagger.scores_are_probabilities),
        "similar": tagger.training_ is not None,
        "learn": allow_learn and tagger.training_ is not None,
        "evaluation": read_evaluation(served),
    }


def _sizes(groups: dict[str, tuple[int, int]]) -> dict[str, int]:
    return {name: last - first for name, (first, last) in groups.items()}


def read_evaluation(served: Served) -> Any:
    """What ``tailwise report --keep`` kept of the model, with the report's parts; None where nothing was."""
    from tailwise.experiments.report import kept

    try:
        return kept.shown(served.source.evaluation or served.source.path / kept.FILE, served.name, served.version)
    except ModelFileError as error:
        _log.warning("the evaluation cannot be read", extra={"project": served.id, "reason": str(error)})
        return None


async def card(call: Call) -> Any:
    """What a model is."""
    served = call.service.shelf.find(call.path["project_id"])
    return await call.service.batcher.run(make_card, served, call.service.settings.allow_learn)


OPERATIONS = [
    Operation(
        "GET",
        "/v1/projects/{project_id}/card",
        card,
        "What a model was trained on, what it can do and how well",
        "Projects",
        s.record(
            {
                "id": s.STRING,
                "name": s.STRING,
                "version": s.STRING,
                "model": s.STRING,
                "trained": {"type": "object"},
                "languages": s.array(s.STRING),
                "fields": s.array(s.STRING),
                "tail": s.BOOLEAN,
                "assign": s.BOOLEAN,
                "similar": s.BOOLEAN,
                "learn": s.BOOLEAN,
                "evaluation": {"type": ["object", "null"]},
            }
        ),
        problems=(404,),
    )
]
