"""The models that are served, by project; another version takes a model's place when it is whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tailwise.errors import InvalidInput, ModelFileError, TailwiseError
from tailwise.serving.problems import Problem
from tailwise.serving.served import Served, manifest_stamp
from tailwise.serving.settings import ModelSource, Settings

_log = logging.getLogger("tailwise.serving")


def find_models(paths: Iterable[Path]) -> tuple[dict[str, ModelSource], tuple[Path, ...]]:
    """What paths on a command line mean: models by the names of their folders, and folders of models."""
    models: dict[str, ModelSource] = {}
    folders = []
    for path in paths:
        if manifest_stamp(path) is not None:
            name = path.resolve().name
            if name in models:
                raise InvalidInput(
                    f"{models[name].path} and {path} would both be the project {name!r}; rename one, or name them in a "
                    "service.toml: [models.ID]"
                )
            models[name] = ModelSource(path)
        elif path.is_dir():
            if not models_in(path):
                raise ModelFileError(
                    f"{path} is no model and has none in it; train one: tailwise train DATA -o {path / 'my-model'}"
                )
            folders.append(path)
        else:
            what = "is a file, not a folder" if path.exists() else "does not exist"
            raise ModelFileError(f"{path} {what}; pass a folder that `tailwise train` wrote, or a folder of such")
    return models, tuple(folders)


def models_in(folder: Path) -> dict[str, ModelSource]:
    """The models in the folders of a folder."""
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return {}
    return {path.name: ModelSource(path) for path in inside if manifest_stamp(path) is not None}


class Shelf:
    """Projects with the version of each that answers now.

    :meth:`refresh` opens what is new and lets go of what is gone. Whoever answers holds the :class:`Served` that it
    began with, so an answer is of one version, and an old one is freed with its last answer.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._served: dict[str, Served] = {}
        self._refused: dict[str, tuple[int, ...] | None] = {}
        self.on_change: Callable[[str, str], Any] = lambda project, what: None

    def sources(self) -> dict[str, ModelSource]:
        """All projects that should be served now, by id; those that are named come before those of folders."""
        found: dict[str, ModelSource] = {}
        for folder in self._settings.folders:
            found |= models_in(folder)
        return found | self._settings.models

    def open(self) -> None:
        """Open every model; the first one that cannot be is refused with its reason."""
        for name, source in self.sources().items():
            self._served[name] = Served.open(name, source)
        if not self._served:
            raise ModelFileError(
                "there is no model to serve; name one, or a folder of models, or --config service.toml"
            )

    def refresh(self) -> None:
        """Take in what changed in the folders; a model that cannot be opened is logged, and the old one goes on."""
        sources = self.sources()
        for name in [name for name in self._served if name not in sources]:
            self._settle(name, None, "removed")
        for name, source in sources.items():
            stamp = manifest_stamp(source.path)
            old = self._served.get(name)
            # A model that is being replaced by hand is away for a moment: the one that is open goes on.
            if stamp is None or (old is not None and stamp == old.stamp) or self._refused.get(name) == stamp:
                continue
            try:
                new = Served.open(name, source)
            except (TailwiseError, OSError, MemoryError) as error:
                self._refused[name] = stamp
                going_on = "the model before goes on" if old is not None else "it is not served"
                _log.error("a new model was refused; %s", going_on, extra={"project": name, "reason": str(error)})
                self.on_change(name, "refused")
                continue
            self._settle(name, new, "replaced" if old is not None else "added")

    def _settle(self, name: str, new: Served | None, what: str) -> None:
        # A new dict: readers of the old one are not disturbed.
        left = {key: served for key, served in self._served.items() if key != name or new is not None}
        self._served = left if new is None else {**left, name: new}
        self._refused.pop(name, None)
        _log.info("model %s", what, extra={"project": name, "version": None if new is None else new.version[:12]})
        self.on_change(name, what)

    def all(self) -> list[Served]:
        """What answers now."""
        return list(self._served.values())

    def find(self, project_id: str) -> Served:
        """The version of a project that answers now."""
        served = self._served.get(project_id)
        if served is None:
            raise Problem(404, f"Project '{project_id}' not found", title="Project not found")
        return served
