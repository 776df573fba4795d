"""tailwise within Annif: a backend ``tailwise``, and the command ``tailwise-annif``, which is Annif that knows it.

Annif knows its backends by a dict and has no entry points: the command adds this one and is Annif from then on. A
project in ``projects.cfg``::

    [subjects]
    name=Subjects
    language=en
    backend=tailwise
    vocab=gnd(de)
    model=/models/my-model

``model`` is a folder that ``tailwise train`` wrote with the vocabulary's URIs as labels; without it, ``annif train``
trains one into the project's folder, by ``effort`` (quick, normal, best) or ``kind`` (a model's name, such as bonsai),
and with ``keep_training_data=true`` it learns more by ``annif learn``. An analyzer is not needed. Needs the extra
``annif``, and nothing of the service.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tailwise.errors import TailwiseError, import_extra
from tailwise.persistence import load
from tailwise.text import Tagger
from tailwise.vocabulary import Vocabulary

NAME = "tailwise"


def make_backend() -> type:
    """The backend's class; made when it is asked for, as Annif makes its own."""
    import_extra("annif", "annif", "the Annif backend")
    from annif.backend import backend
    from annif.exception import NotInitializedException, NotSupportedException, OperationFailedException
    from annif.suggestion import SuggestionBatch
    from annif.util import boolean
    from scipy.sparse import csr_array

    class TailwiseBackend(backend.AnnifLearningBackend):
        """Suggests what a tailwise model does, with its calibrated scores."""

        name = NAME
        DEFAULT_PARAMETERS = {"limit": 100, "effort": "normal", "keep_training_data": "false"}
        _tagger: Tagger | None = None
        _columns: np.ndarray

        @property
        def _folder(self) -> Path:
            given = self.params.get("model")
            return Path(given) if given else Path(self.datadir) / "tailwise-model"

        @property
        def _model_file_paths(self) -> list[str]:
            return [str(path) for path in self._folder.glob("*") if path.is_file()]

        def initialize(self, parallel: bool = False) -> None:
            """Open the model, and find which subject each of its labels is."""
            if self._tagger is not None:
                return
            if not self._folder.is_dir():
                raise NotInitializedException(f"model {self._folder} not found", backend_id=self.backend_id)
            self._take(self._told(load, self._folder))

        def _take(self, tagger: Tagger) -> None:
            if not isinstance(tagger, Tagger) or tagger.features_ is None:
                raise NotSupportedException(f"{self._folder} holds no model of texts", backend_id=self.backend_id)
            found = [self.project.subjects.by_uri(uri) for uri in tagger.label_ids_]
            self._columns = np.array([-1 if subject is None else subject for subject in found])
            if (self._columns < 0).all():
                raise NotSupportedException(
                    f"none of the {len(found):,} labels of {self._folder} is in the vocabulary; train it with the "
                    "vocabulary's URIs as labels",
                    backend_id=self.backend_id,
                )
            self._tagger = tagger

        def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
            assert self._tagger is not None
            texts = [_text_of(document, self._tagger) for document in documents]
            top = self._told(self._tagger.predict_topk, texts, int(params["limit"]))
            columns = np.where(top.labels >= 0, self._columns[top.labels], -1)
            # A score of zero or less is none to Annif.
            kept = (columns >= 0) & (top.scores > 0)
            rows = np.broadcast_to(np.arange(len(texts))[:, None], columns.shape)
            entries = (np.minimum(top.scores[kept], 1.0).astype(np.float32), (rows[kept], columns[kept]))
            return SuggestionBatch(csr_array(entries, shape=(len(texts), len(self.project.subjects))))

        def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
            if params.get("model"):
                raise NotSupportedException(
                    "this project has a trained model (model=…); train it with `tailwise train`, or leave model out",
                    backend_id=self.backend_id,
                )
            if corpus == "cached" or corpus.is_empty():
                raise NotSupportedException("training a tailwise project needs documents", backend_id=self.backend_id)
            texts, labels = self._records(corpus)
            tagger = Tagger(
                params.get("kind"),
                effort=params["effort"],
                keep_training_data=boolean(params["keep_training_data"]),
            )
            self._told(tagger.fit, texts, labels, vocab=self._vocabulary())
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._told(tagger.save, self._folder)
            self._take(tagger)

        def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
            self.initialize()
            assert self._tagger is not None
            texts, labels = self._records(corpus)
            self._told(self._tagger.update, texts, labels)
            self._told(self._tagger.save, self._folder)
            self._take(self._tagger)

        def _records(self, corpus: Any) -> tuple[list[str], list[list[str]]]:
            subjects = self.project.subjects
            found = [
                (document.text, [subjects[one].uri for one in document.subject_set]) for document in corpus.documents
            ]
            return [text for text, _ in found], [labels for _, labels in found]

        def _vocabulary(self) -> Vocabulary:
            language = self.project.vocab_lang
            named = {
                subject.uri: (subject.labels or {}).get(language) or subject.uri
                for _, subject in self.project.subjects.active
            }
            return Vocabulary.from_names(named, language)

        def _told(self, do: Any, *arguments: Any, **more: Any) -> Any:
            try:
                return do(*arguments, **more)
            except TailwiseError as error:
                raise OperationFailedException(str(error), backend_id=self.backend_id) from error

    return TailwiseBackend


def _text_of(document: Any, tagger: Tagger) -> str:
    """The document's text, with what its metadata say of the model's fields before it."""
    assert tagger.features_ is not None
    metadata = getattr(document, "metadata", None) or {}
    known = [metadata[name].replace("\n", " ") for name in tagger.features_.field_names if metadata.get(name)]
    return "\n".join([*known, document.text])


def register() -> None:
    """Have Annif know the backend, in this process."""
    registry = import_extra("annif.backend", "annif", "the Annif backend")
    registry._backend_fns.setdefault(NAME, make_backend)


def main() -> int:
    """Annif's command, with the backend."""
    register()
    from annif.cli import cli

    return int(cli(prog_name="tailwise-annif") or 0)


if __name__ == "__main__":
    sys.exit(main())
