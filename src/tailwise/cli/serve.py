"""``tailwise serve``: models behind a REST API and a page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailwise.cli import output

if TYPE_CHECKING:
    from tailwise.serving.settings import Settings


def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MODEL…", help="Folders that `tailwise train` wrote, or folders of such."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A service.toml; options given here go before it.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="The address to listen on; 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="The port; 5000. 0 is any that is free.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, help="Processes that answer; one a core.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Holds the token that writes need; TAILWISE_TOKEN in the environment does too.",
        ),
    ] = None,
    token: Annotated[bool, typer.Option("--token", help="Ask for the token on reads too.")] = False,
    allow_learn: Annotated[bool, typer.Option("--allow-learn", help="Let clients send records to learn from.")] = False,
    audits: Annotated[
        list[str] | None,
        typer.Option(
            "--audit",
            metavar="AUDIT",
            help="What `tailwise audit plan` made, to be reviewed: a folder or a database URL.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what would be served and what memory it takes, and end.")
    ] = False,
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Write texts of requests to the log.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Threads of each worker; 1, as workers have a core each.")
    ] = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Serve models: suggestions, explanations and review, over REST as Annif's clients know it and on a page.

    Examples:

    tailwise serve my-model

    tailwise serve models/ --host 0.0.0.0 --port 8080 --workers 4

    curl -d 'text=Catalytic oxidation of cerium' http://127.0.0.1:5000/v1/projects/my-model/suggest
    """
    output.set_up(quiet, jobs)
    from tailwise.errors import import_extra

    for module in ("starlette", "uvicorn", "httptools", "multipart", "prometheus_client", "jsonschema_rs", "uvloop"):
        import_extra(module, "serve", "the service", _is_there)
    settings = _settings(models or [], config, token_file, token)
    from tailwise.serving.settings import audit_id, with_given

    settings = with_given(
        settings,
        host=host,
        port=port,
        workers=workers,
        jobs=jobs,
        private=token,
        allow_learn=allow_learn,
        log_texts=log_texts,
        quiet=quiet,
        audits={audit_id(where): where for where in audits or []},
    ).checked()
    if check:
        from tailwise.serving.checking import facts_of

        facts = facts_of(settings)
        output.emit_json(facts) if as_json else output.emit_facts(facts)
        return
    _run(settings)


def _is_there(module: str) -> None:
    """Not imported yet: it is told what it needs to know before that."""
    if find_spec(module) is None:
        raise ModuleNotFoundError(module)


def _settings(models: list[Path], config: Path | None, token_file: Path | None, token: bool) -> Settings:
    from tailwise.errors import InvalidInput, ModelFileError
    from tailwise.serving.settings import Settings, read_config, read_token, token_of_environment, with_given
    from tailwise.serving.shelf import find_models

    settings = Settings() if config is None else read_config(config)
    if not models and not settings.models and not settings.folders:
        raise InvalidInput(
            "there is no model to serve; name a folder that `tailwise train` wrote, a folder of such, or --config FILE"
        )
    try:
        named, folders = find_models(models)
    except ModelFileError as error:
        hint = "; a token is no argument: put it into a file, --token-file FILE" if token else ""
        raise ModelFileError(f"{error}{hint}") from error
    given = token_of_environment() if token_file is None else read_token(token_file)
    return with_given(settings, models={**settings.models, **named}, folders=(*settings.folders, *folders), token=given)


def _run(settings: Settings) -> None:
    from tailwise.serving.shelf import Shelf
    from tailwise.serving.workers import listen, run

    listening = listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    names = ", ".join(Shelf(settings).sources())
    output.say(f"opening {names}")
    run(settings, listening, lambda: output.say(f"serving {names} on http://{host}:{port}/ (Ctrl-C ends it)"))
    output.say("ended")
