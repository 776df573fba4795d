"""What can go wrong, by cause. Each message names the argument, shows the value and says the fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any


class TailwiseError(Exception):
    """Base class of every error that tailwise raises on purpose."""


class InvalidInput(TailwiseError, ValueError):
    """An argument has a wrong value, shape or type."""


class Unsupported(InvalidInput):
    """A model was asked for what its kind cannot give; the message says why and which kinds can."""


class NotOffered(Unsupported, AttributeError):
    """A model lacks a method that others of its kind have: ``hasattr`` says so too, as scikit-learn asks."""


class DataFormatError(TailwiseError, ValueError):
    """A data file is malformed; the message names the file, the line, what was found and what was expected."""

    def __init__(self, path: object, line: int | None, found: str, expected: str) -> None:
        self.path, self.line, self.found, self.expected = path, line, found, expected
        where = f"{path}" if line is None else f"{path}, line {line:,}"
        super().__init__(f"{where}: found {found}; expected {expected}")


class ModelFileError(TailwiseError):
    """A saved model is missing, damaged, or of another kind or version."""


class DownloadError(TailwiseError, OSError):
    """A dataset could not be fetched or did not have the expected digest."""


class MissingExtra(TailwiseError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


def import_extra(module: str, extra: str, purpose: str, importer: Callable[[str], Any] = import_module) -> Any:
    """Import an optional ``module`` or say which extra installs it.

    >>> import_extra("no_such_module", "neural", "GLaS")
    Traceback (most recent call last):
    ...
    tailwise.errors.MissingExtra: GLaS needs no_such_module; install it with: pip install 'tailwise[neural]'
    """
    try:
        return importer(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"{purpose} needs {package}; install it with: pip install 'tailwise[{extra}]'") from error


if TYPE_CHECKING:
    from sklearn.exceptions import NotFittedError

    class NotFitted(TailwiseError, NotFittedError):
        """A model was used before ``fit``."""


def __getattr__(name: str) -> Any:
    """``NotFitted``, made when it is asked for: it is an error of scikit-learn too, which takes a second to import."""
    if name != "NotFitted":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError

    about = {"__doc__": "A model was used before ``fit``.", "__module__": __name__}
    made = globals()[name] = type(name, (TailwiseError, NotFittedError), about)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), "NotFitted"})


_spelling: ContextVar[Callable[[str, Any], str]] = ContextVar("_spelling", default="{}={!r}".format)


def argument(name: str, value: Any) -> str:
    """How a message tells its reader to pass an argument: as Python does, or as :func:`spelled` has it.

    >>> argument("encoding", "latin-1")
    "encoding='latin-1'"
    """
    return _spelling.get()(name, value)


@contextmanager
def spelled(how: Callable[[str, Any], str]) -> Iterator[None]:
    """Have messages spell arguments by ``how(name, value)``: the command has options in their place."""
    token = _spelling.set(how)
    try:
        yield
    finally:
        _spelling.reset(token)
