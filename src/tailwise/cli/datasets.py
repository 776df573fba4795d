"""``tailwise datasets``: the data sets known by name."""

from __future__ import annotations

from typing import Annotated

import typer

from tailwise.cli import output

_HELP = """List, fetch and describe the data sets known by name.

Example:

tailwise datasets fetch eurlex-4k
"""
app = typer.Typer(help=_HELP, no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set's name, such as eurlex-4k.")]


@app.command("list")
def list_datasets(jobs: output.Jobs = None, as_json: output.Json = False, quiet: output.Quiet = False) -> None:
    """List the data sets, and whether they are here already.

    Example:

    tailwise datasets list
    """
    output.set_up(quiet, jobs)
    from tailwise.data import REGISTRY, is_cached

    facts = [
        {"name": d.name, "size": d.shape, "cached": is_cached(d.name), "description": d.description}
        for d in REGISTRY.values()
    ]
    if as_json:
        output.emit_json(facts)
        return
    from tailwise.display import Table

    rows = [[f["name"], f["size"], "here" if f["cached"] else "to fetch", f["description"]] for f in facts]
    output.emit_table(Table("", ["name", "size", "state", "what it is"], rows, left=4))


@app.command()
def public(jobs: output.Jobs = None, as_json: output.Json = False, quiet: output.Quiet = False) -> None:
    """List public data sets with their shapes, A and B of their propensities, and how their files are read.

    Example:

    tailwise datasets public --json
    """
    output.set_up(quiet, jobs)
    from tailwise.data.public import PLACE, PUBLIC, SOURCE

    facts = [one._asdict() | dict(zip("AB", one.a_and_b, strict=True)) for one in PUBLIC]
    if as_json:
        output.emit_json(facts)
        return
    from tailwise.display import Table

    columns = ("name", "train_rows", "test_rows", "features", "labels", "A", "B", "files")
    rows = [[_shown(fact[column]) for column in columns] for fact in facts]
    notes = [f"from {SOURCE}: {PLACE}", "--propensity amazon, wikipedia or other sets A and B"]
    output.emit_table(Table("", [column.replace("_", " ") for column in columns], rows, notes))


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


@app.command()
def fetch(name: Name, jobs: output.Jobs = None, as_json: output.Json = False, quiet: output.Quiet = False) -> None:
    """Download a data set, check its digest and keep it in the cache folder (TAILWISE_HOME moves it).

    Example:

    tailwise datasets fetch eurlex-4k
    """
    output.set_up(quiet, jobs)
    from tailwise.data import fetch as fetch_dataset

    folder = fetch_dataset(name)
    if as_json:
        output.emit_json({"name": name, "folder": str(folder)})
    else:
        output.emit(str(folder))


@app.command()
def info(name: Name, jobs: output.Jobs = None, as_json: output.Json = False, quiet: output.Quiet = False) -> None:
    """Describe a data set: rows, features, labels, how long its tail is. Fetches it first where needed.

    Example:

    tailwise datasets info eurlex-4k
    """
    output.set_up(quiet, jobs)
    from tailwise.data import load_dataset

    facts = load_dataset(name).summary()
    if as_json:
        output.emit_json(facts)
    else:
        output.emit_facts(facts)
