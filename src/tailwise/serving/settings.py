"""What is served, where, to whom and within which bounds; from options of the command or from ``service.toml``."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tailwise.errors import InvalidInput
from tailwise.validation import check_number

TOKEN_VARIABLE = "TAILWISE_TOKEN"  # nosec B105: where a token is, not one
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ModelSource:
    """Where a project's model is, and what the model does not say of itself."""

    path: Path
    name: str | None = None
    language: str | None = None
    """Of the texts, as Annif tells it of projects."""
    evaluation: Path | None = None
    """What ``tailwise report --keep`` wrote; by default ``evaluation.json`` in the model's folder."""


@dataclass(frozen=True)
class Settings:
    """All that can be set; every default is here."""

    models: dict[str, ModelSource] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    """Folders whose every model is served, also those that come later."""
    audits: dict[str, str] = field(default_factory=dict)
    """Folders of `tailwise audit plan`, or database URLs, by id."""
    host: str = "127.0.0.1"
    port: int = 5000
    workers: int | None = None
    """None is one a core."""
    jobs: int = 1
    """Threads of each worker."""
    token: str | None = field(default=None, repr=False)
    private: bool = False
    """Whether reads need the token too."""
    allow_learn: bool = False
    origins: tuple[str, ...] = ("*",)
    """Whose pages may call the service from a browser (CORS)."""
    max_body: int = 64_000_000
    """Bytes of a request; more is refused with 413."""
    max_waiting: int = 512
    """Texts that may wait in a worker; more is refused with 503."""
    max_batch: int = 32
    batch_ms: float = 2.0
    """How long a text waits for company while others are being worked on."""
    request_seconds: float = 60.0
    """In which a request must have arrived."""
    watch_seconds: float = 1.0
    """How often folders are looked at for another model."""
    log_texts: bool = False
    """Whether texts that labels are suggested for are written to the log."""
    quiet: bool = False
    """Whether requests that were answered are left out of the log."""

    def checked(self) -> Settings:
        """These settings, refused where a value makes no sense."""
        check_number("port", self.port, integer=True, low=0, high=65_535)
        if self.workers is not None:
            check_number("workers", self.workers, integer=True, low=1, high=1024)
        for name in ("jobs", "max_body", "max_waiting", "max_batch"):
            check_number(name, getattr(self, name), integer=True, low=1)
        for name in ("batch_ms", "request_seconds", "watch_seconds"):
            check_number(name, getattr(self, name), low=0)
        if self.private and self.token is None:
            raise InvalidInput(
                f"--token asks everybody for the token, but there is none; put it into {TOKEN_VARIABLE} or into a "
                "file that --token-file names"
            )
        if self.allow_learn and self.token is None and self.host not in _LOOPBACK:
            raise InvalidInput(
                f"--allow-learn would let anybody who reaches {self.host} change the models; set a token: "
                f"{TOKEN_VARIABLE}, or --token-file"
            )
        return self


def read_config(path: Path) -> Settings:
    """The settings in a ``service.toml``; paths in it are relative to its folder.

    A table ``[models.ID]`` has ``path`` and may have ``name``, ``language`` and ``evaluation``; ``[audits]`` maps ids
    to folders or database URLs; other keys are those of :class:`Settings`, and ``token_file``.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}") from error
    base = path.resolve().parent
    known = {each.name: each for each in fields(Settings)}
    settings: dict[str, Any] = {}
    for key, value in found.items():
        if key == "models":
            settings[key] = {name: _source(path, name, table, base) for name, table in _table(path, key, value)}
        elif key == "audits":
            settings[key] = {name: _place(base, str(where)) for name, where in _table(path, key, value)}
        elif key == "folders":
            settings[key] = tuple(base / str(folder) for folder in value)
        elif key == "token_file":
            settings["token"] = read_token(base / str(value))
        elif key == "origins":
            settings[key] = tuple(map(str, value))
        elif key in known and key != "token":
            settings[key] = _of_kind(path, key, value, known[key].type)
        else:
            allowed = ", ".join(sorted({*known, "token_file"} - {"token"}))
            raise InvalidInput(f"{path} has the key {key!r}, which is none of {allowed}")
    return Settings(**settings)


def _place(base: Path, where: str) -> str:
    return where if "://" in where else str(base / where)


def audit_id(where: str) -> str:
    """What an audit is called in addresses: its folder's or its database's name.

    >>> audit_id("audits/first/"), audit_id("postgresql://anna@server/second?sslmode=require")
    ('first', 'second')
    """
    path = urlsplit(where).path if "://" in where else str(Path(where).resolve())
    return Path(path).name


def _table(path: Path, key: str, value: Any) -> Any:
    if not isinstance(value, dict):
        raise InvalidInput(f"{path}: {key} = {value!r} must be a table: [{key}]")
    return value.items()


def _source(path: Path, name: str, table: Any, base: Path) -> ModelSource:
    allowed = {each.name for each in fields(ModelSource)}
    if not isinstance(table, dict) or "path" not in table or set(table) - allowed:
        raise InvalidInput(
            f"{path}: [models.{name}] is {table!r}; it needs path, and may have name, language, evaluation"
        )
    paths = {key: base / str(table[key]) for key in ("path", "evaluation") if key in table}
    return ModelSource(**{**{key: str(value) for key, value in table.items()}, **paths})  # type: ignore[arg-type]


def _of_kind(path: Path, key: str, value: Any, kind: Any) -> Any:
    kinds: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "int | None": (int,),
        "float": (int, float),
        "str": (str,),
        "bool": (bool,),
    }
    allowed = kinds[str(kind)]
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise InvalidInput(f"{path}: {key} = {value!r} must be {allowed[-1].__name__}")
    return value


def read_token(path: Path) -> str:
    """The token in a file: its text without the white space around it."""
    found = path.read_text(encoding="utf-8").strip()
    if len(found) < 8:
        raise InvalidInput(f"the token in {path} has {len(found)} characters; take at least 8: openssl rand -hex 32")
    return found


def token_of_environment() -> str | None:
    """The token that the environment has, or None."""
    return os.environ.get(TOKEN_VARIABLE, "").strip() or None


def with_given(settings: Settings, **given: Any) -> Settings:
    """The settings with what was given: not None, not an empty collection, not a flag that is off; 0 is a value."""
    kept = {name: value for name, value in given.items() if value is not None and value is not False}
    return replace(settings, **{name: value for name, value in kept.items() if value not in ((), {})})
