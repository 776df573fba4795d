"""``tailwise info``: what is in a model folder or a data file, or which parameters a model takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailwise.cli import inputs, options, output
from tailwise.cli.versions import installed, places
from tailwise.models import model_class, model_names

if TYPE_CHECKING:
    from tailwise.text import Tagger


@options.reads_data
def info(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL|DATA|NAME", help="A model folder, a data file or folder, a data set's or a model's name."
        ),
    ] = None,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Describe a model folder, data, or the parameters of a kind of model; alone: versions, threads and folders.

    Examples:

    tailwise info my-model

    tailwise info records.jsonl --text-columns title,abstract

    tailwise info dismec
    """
    output.set_up(quiet, jobs)
    path = Path(what or "")
    if what is None:
        facts: dict[str, Any] = installed() | places()
    elif path.is_dir() and not _holds_data(path):
        facts = _model_facts(path)
    elif not path.exists() and what.lower() in model_names():
        _emit_parameters(what, as_json)
        return
    else:
        facts = inputs.load(what, reading).summary()
    if as_json:
        output.emit_json(facts)
    else:
        output.emit_facts(facts)


def _holds_data(folder: Path) -> bool:
    """Whether a folder has files, and no model among them."""
    from tailwise.persistence.manifest import MANIFEST

    files = [file for file in folder.iterdir() if file.is_file()]
    return bool(files) and not any(file.name == MANIFEST or file.suffix == ".npy" for file in files)


def _model_facts(path: Path) -> dict[str, Any]:
    from tailwise.base import XMCModel
    from tailwise.display import describe
    from tailwise.persistence import load, read_manifest
    from tailwise.text import Tagger
    from tailwise.text.suggestions import RARITIES

    manifest = read_manifest(path)
    found = load(path)
    model = found.model_ if isinstance(found, Tagger) else found
    facts = {
        "kind": type(found).__name__,
        "model": describe(model),
        "written by tailwise": manifest["tailwise_version"],
        "format version": manifest["format_version"],
        "size in MB": round(sum(file["bytes"] for file in manifest["files"].values()) / 1e6, 3),
    }
    if isinstance(model, XMCModel):
        facts["labels"] = model.n_labels_
        facts["features"] = model.n_features_in_
        facts["scores are probabilities"] = model.scores_are_probabilities
    if isinstance(found, Tagger):
        facts["training rows"] = found.n_samples_
        facts["takes"] = "numeric rows" if found.features_ is None else f"texts ({describe(found.features_)})"
        if found.features_ is not None:
            groups = found.features_.groups_.items()
            facts["columns"] = ", ".join(f"{name} {last - first:,}" for name, (first, last) in groups)
        facts |= {f"{name} labels": int((found.rarity_ == i).sum()) for i, name in enumerate(RARITIES)}
        if found.vocabulary_ is not None:
            facts["vocabulary"] = found.vocabulary_.summary()
        facts |= _rules(found)
    return facts


def _rules(tagger: Tagger) -> dict[str, Any]:
    """What the tagger's rules say, and what they leave."""
    if tagger.rules is None or tagger.allowed_ is None:
        return {}
    effects = tagger.rules.effects(tagger.labels())
    said = {f"{word} labels": "; ".join(map(str, rules)) for word, rules in effects.items() if rules}
    return said | {"labels that may be suggested": int(tagger.allowed_.sum())}


def _emit_parameters(name: str, as_json: bool) -> None:
    """Parameters with their defaults and what else they may be."""
    from tailwise.display import Table
    from tailwise.parameters import constraints_of, signature_of

    cls = model_class(name)
    summary = (cls.__doc__ or "").strip().splitlines()[0]
    signature = signature_of(cls)
    allowed = {parameter: str(constraint) for parameter, constraint in constraints_of(cls).items()}
    required = {parameter for parameter in allowed if signature[parameter].default is signature[parameter].empty}
    shown = {parameter: "" if parameter in required else repr(signature[parameter].default) for parameter in allowed}
    if as_json:
        parameters = {name: {"default": shown[name] or None, "takes": allowed[name]} for name in allowed}
        output.emit_json({"model": name, "summary": summary, "parameters": parameters})
        return
    rows = [[parameter, shown[parameter], allowed[parameter]] for parameter in allowed]
    output.emit_table(Table(f"{name}: {summary}", ["parameter", "default", "takes"], rows, left=3))
