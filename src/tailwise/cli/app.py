"""The verbs, put together.

A verb is a module of this package with a function of its own name (a command) or a ``typer.Typer`` named ``app``
(a group of commands). Its module imports only typer at the top, so that ``tailwise --help`` is quick.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

VERBS = {
    "From texts to labels": ("train", "tune", "learn", "suggest", "predict", "explain"),
    "Judging models": ("evaluate", "compare", "report"),
    "What is missing": ("audit",),
    "Serving": ("serve",),
    "Data and models": ("info", "labels", "vocab", "convert", "split", "datasets", "compact", "warm"),
    "The papers": ("reproduce", "experiment"),
}

_EPILOG = """\
Results go to standard output, messages and progress to standard error; every verb takes --json and --jobs.

Exit status: 0 done · 1 a bug, please report it · 2 wrong usage · 3 bad data or arguments · 4 not a usable model ·
5 download failed · 6 an optional package is missing · 7 output cannot be written · 130 interrupted · 143 terminated.
"""


def _show_version(wanted: bool) -> None:
    if wanted:
        from tailwise.cli.versions import installed, places

        for name, value in (installed() | places()).items():
            print(f"{name} {value}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print versions and folders.")
    ] = False,
) -> None:
    """Name the few relevant labels out of thousands to millions, the rare ones included."""


def command() -> Any:
    """The whole command, ready to be called with arguments."""
    app = typer.Typer(
        name="tailwise",
        no_args_is_help=True,
        epilog=_EPILOG,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_start)
    for panel, verbs in VERBS.items():
        for verb in verbs:
            module = import_module(f"tailwise.cli.{verb}")
            if hasattr(module, "app"):
                app.add_typer(module.app, name=verb, rich_help_panel=panel)
            else:
                app.command(name=verb, rich_help_panel=panel)(getattr(module, verb))
    whole = typer.main.get_command(app)
    _dress(whole)
    return whole


def _speaking_of_options(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, with messages of the library that speak of options where Python has arguments."""

    @functools.wraps(verb)
    def run(**given: Any) -> None:
        from tailwise.cli.options import as_option
        from tailwise.errors import spelled

        with spelled(as_option):
            verb(**given)

    return run


def _dress(command: Any, around: Any = None) -> None:
    """Have help show flags without the type of a value, which they do not take, and messages speak of options."""
    context = command.context_class(command, parent=around, **command.context_settings)
    for parameter in [command.get_help_option(context), *command.params]:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    verbs = getattr(command, "commands", None)
    if verbs is None:
        command.callback = _speaking_of_options(command.callback)
    for verb in (verbs or {}).values():
        _dress(verb, context)
