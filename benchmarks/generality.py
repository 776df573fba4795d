"""Which defaults serve many data sets, and what does each cost where it is wrong? ``python -m benchmarks generality``.

Each setting of a family (``models``, ``trees``, ``beams``, ``leaves``, ``stacks``, ``one-vs-rest``, ``tail``,
``evidence``, ``forests``: words on the command line choose) is judged by cross-validation inside training rows, at most
``--rows 8000`` of each data set: EURLex-4K, Bibtex, Delicious, library records in English and German, WordNet's nouns
and glosses, Debian's packages by their tags, three shapes of ``make_longtail``, and four times as many rows of Debian's
packages by what they need (25,000 labels, 84 % of them on fewer than five rows of seven words) and of the German
records' titles alone; one that is not at hand is left out and named. Printed are, for each metric, every setting's
value on each set, its mean rank over the sets, and what it loses on average and at most against the best setting of
each set; ``models`` on all sets writes the table of ``docs/choosing.md`` too. ``--sets a,b`` takes some, ``--folds N``
judges N fifths in place of one.
What was computed is kept in ``benchmarks/results`` and not computed again: a new default begins with a new file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

import tailwise as tw
from benchmarks import corpora
from benchmarks.harness import RESULTS, ROOT, save_results
from tailwise.display import Table
from tailwise.label_lists import indicator
from tailwise.measure import measured

QUESTION = "Which defaults serve many data sets, and what does each cost where it is wrong?"
METRICS = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5")
_FIFTHS = 5
_ROWS = 8000
_MORE = 4
"""Times as many rows of sets that are here for their tens of thousands of labels."""


class Setting(NamedTuple):
    """A model, and what is changed of it once it is fitted: settings of prediction share a fit."""

    make: Callable[[], Any]
    changed: dict[str, Any] = {}


def _trees() -> dict[str, Setting]:
    found = {}
    tried = [("beam", C, decay, (0.1, 0.15, 0.2, 0.3)) for C, decay in _COSTS]
    tried += [("siblings", 1.0, decay, (0.5, 1.0)) for decay in (0.0, 0.2)]
    for negatives, C, decay, powers in tried:
        for power in powers:
            found[f"{negatives}, C {C:g}, decay {decay:g}, path {power:g}"] = Setting(
                lambda n=negatives, C=C, d=decay: tw.Bonsai(1, negatives=n, C=C, C_decay=d, random_state=0),
                {"path_weight_": power},
            )
    return found


def _beams() -> dict[str, Setting]:
    """Trees and beams: how wide the search was when negatives were found, and how wide it is in prediction."""
    found = {"DiSMEC": Setting(lambda: tw.DiSMEC(random_state=0))}
    for n_trees, beam, wider in ((3, 10, 50), (1, 10, None), (1, 30, None), (2, 20, None), (3, 20, None), (3, 30, 50)):
        name = f"{n_trees} {'tree' if n_trees == 1 else 'trees'}, beam {beam}"
        make = partial(tw.Bonsai, n_trees, beam=beam, random_state=0)
        found[name] = Setting(make)
        if wider:
            found[f"{name}, then {wider}"] = Setting(make, {"beam": wider})
    return found


def _leaves() -> dict[str, Setting]:
    """How many labels share a leaf of a binary tree."""
    return {
        f"Parabel(max_leaf={size})": Setting(lambda n=size: tw.Parabel(max_leaf=n, random_state=0))
        for size in (100, 50, 30, 20)
    }


def _stacks() -> dict[str, Setting]:
    """How much members and folds matter in a stack; the first is a member alone."""

    def stack(more: list[Any], n_folds: int = 3) -> Setting:
        few = [tw.DiSMEC(random_state=0), tw.PWDiSMEC(random_state=0), tw.Centroid(), tw.NearestRows()]
        return Setting(lambda: tw.Stacked([*few, *more], n_folds=n_folds, random_state=0))

    nearest = tw.NearestRows(k=5, sharpness=4.0)
    steep = tw.PWDiSMEC(0.3, weighting="steep", random_state=0)
    tree = tw.Bonsai(random_state=0)
    return {
        "PWDiSMEC alone": Setting(lambda: tw.PWDiSMEC(random_state=0)),
        "four members": stack([]),
        "four, five folds": stack([], 5),
        "and five nearest rows": stack([nearest]),
        "and steep, and a tree": stack([nearest, steep, tree]),
    }


_COSTS = ((0.5, 0.0), (1.0, 0.0), (1.0, 0.1), (1.0, 0.2), (1.0, 0.3), (1.5, 0.2))
"""C and how it falls."""


def _one_vs_rest() -> dict[str, Setting]:
    found = {
        f"C {C:g}, decay {decay:g}": Setting(lambda C=C, d=decay: tw.DiSMEC(C, C_decay=d, random_state=0))
        for C, decay in _COSTS
    }
    for scale in (0.3, 3.0):
        found[f"C 1, decay 0.2, bias {scale:g}"] = Setting(
            lambda s=scale: tw.DiSMEC(1.0, C_decay=0.2, bias_scale=s, random_state=0)
        )
    return found


def _tail() -> dict[str, Setting]:
    found = {"DiSMEC": Setting(lambda: tw.DiSMEC(random_state=0))}
    for weighting in ("mild", "tail", "convex"):
        for decay in (0.0, 0.2):
            made = Setting(lambda w=weighting, d=decay: tw.PWDiSMEC(C_decay=d, weighting=w, random_state=0))
            found[f"PWDiSMEC {weighting}, decay {decay:g}"] = made
    return found


def _evidence() -> dict[str, Setting]:
    """One linear model whose scores become probabilities by themselves or by all that is known of a label."""

    def ranked(base: Any, tails: tuple[float, ...]) -> dict[str, Setting]:
        make = partial(tw.PropensityReranker, base)
        name = repr(base).replace("random_state=0", "").replace(", )", ")")
        return {f"{name}, tail {tail:g}": Setting(make, {"tail_": tail}) for tail in tails}

    one = tw.DiSMEC(random_state=0)
    return {
        "DiSMEC()": Setting(lambda: one),
        "PWDiSMEC()": Setting(lambda: tw.PWDiSMEC(random_state=0)),
        **ranked(tw.Calibrated(one, random_state=0), _TAILS),
        **ranked(tw.TailCalibrated(one, random_state=0), _TAILS),
        **ranked(tw.TailCalibrated(one, nearest=True, random_state=0), _TAILS),
        **ranked(tw.Stacked([one, tw.Centroid()], random_state=0), _TAILS),
    }


_TAILS = (0.0, 0.5, 1.0)


def _forests() -> dict[str, Setting]:
    tried: list[tuple[Any, int]] = [(tw.FastXML, n) for n in (3, 5, 10, 20)]
    tried += [(kind, n) for kind in (tw.PfastXML, tw.PfastreXML) for n in (3, 5, 10)]
    return {
        f"{kind.__name__}, leaves of {n}": Setting(lambda kind=kind, n=n: kind(20, max_leaf=n, random_state=0))
        for kind, n in tried
    }


def _models() -> dict[str, Setting]:
    """As they come; the first is what the others are measured by."""
    return {
        "DiSMEC()": Setting(lambda: tw.DiSMEC(random_state=0)),
        "PWDiSMEC()": Setting(lambda: tw.PWDiSMEC(random_state=0)),
        "Bonsai()": Setting(lambda: tw.Bonsai(random_state=0)),
        'Bonsai(weighting="tail")': Setting(lambda: tw.Bonsai(weighting="tail", random_state=0)),
        "Parabel()": Setting(lambda: tw.Parabel(random_state=0)),
    }


FAMILIES = {
    "models": _models,
    "trees": _trees,
    "beams": _beams,
    "leaves": _leaves,
    "stacks": _stacks,
    "one-vs-rest": _one_vs_rest,
    "tail": _tail,
    "evidence": _evidence,
    "forests": _forests,
}


def _texts(records: corpora.Records, rows: int) -> tuple[Any, Any] | None:
    found = list(records)
    if not found:
        return None
    chosen = [found[i] for i in np.random.default_rng(0).permutation(len(found))[:rows]]
    texts = tw.Texts({name: [fields[name] for fields, _ in chosen] for name in chosen[0][0]})
    return tw.TextFeatures().fit_transform(texts), indicator([labels for _, labels in chosen])[0]


def _titles(records: corpora.Records) -> corpora.Records:
    return (({"title": fields["title"]}, labels) for fields, labels in records)


def _arff(name: str, rows: int) -> tuple[Any, Any] | None:
    path = corpora.DATA / f"{name}-train.arff.xz"
    if not path.exists():
        return None
    data = tw.load_dataset(path)
    return _cut(data.X_train, data.Y_train, rows)


def _cut(X: Any, Y: Any, rows: int) -> tuple[Any, Any]:
    chosen = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:rows])
    return X[chosen], Y[chosen]


def _eurlex(rows: int) -> tuple[Any, Any]:
    data = tw.load_dataset("eurlex-4k")
    return _cut(data.X_train, data.Y_train, rows)


def _longtail(rows: int, **shape: Any) -> tuple[Any, Any]:
    data = tw.make_longtail(rows, test_fraction=0, random_state=7, **shape)
    return data.X_train, data.Y_train


SETS: dict[str, Callable[[int], tuple[Any, Any] | None]] = {
    "eurlex": _eurlex,
    "bibtex": lambda rows: _arff("bibtex", rows),
    "delicious": lambda rows: _arff("delicious", rows),
    "records-en": lambda rows: _texts(corpora.tibkat("en"), rows),
    "records-de": lambda rows: _texts(corpora.tibkat("de"), rows),
    "nouns": lambda rows: _texts(corpora.nouns(), rows),
    "glosses": lambda rows: _texts(corpora.glosses(), rows),
    "packages": lambda rows: _texts(corpora.packages(), rows),
    "dependencies": lambda rows: _texts(corpora.dependencies(), _MORE * rows),
    "titles": lambda rows: _texts(_titles(corpora.tibkat("de")), _MORE * rows),
    "longtail": lambda rows: _longtail(rows, n_features=5000, n_labels=1000),
    "longtail, short rows": lambda rows: _longtail(
        rows, n_features=8000, n_labels=rows, labels_per_row=3.0, background_words=6.0
    ),
    "longtail, missing": lambda rows: _longtail(
        rows, n_features=5000, n_labels=2000, labels_per_row=8.0, propensity=tw.JainPropensity(1.0, b=4.0)
    ),
}


def main(arguments: list[str]) -> None:
    options = {"--rows": str(_ROWS), "--folds": "1", "--sets": ",".join(SETS)}
    wanted = []
    given = iter(arguments)
    for word in given:
        if word in options:
            options[word] = next(given)
        else:
            wanted.append(word)
    rows, folds = int(options["--rows"]), int(options["--folds"])
    names = [name.strip() for name in options["--sets"].split(",")] if "--sets" in arguments else list(SETS)
    path = RESULTS / f"generality-{rows}.jsonl"
    kept = _read(path)
    for family in wanted or list(FAMILIES):
        settings = FAMILIES[family]()
        values: dict[str, dict[str, dict[str, float]]] = {}
        for name in names:
            found = _judge(name, SETS[name], family, settings, rows, folds, kept, path)
            if found is None:
                print(f"{name} is not at hand; it was not measured")
            else:
                values[name] = found
        _print(family, list(settings), values)
        if family == "models" and len(values) == len(SETS):
            _write_page(values)
        save_results(f"generality-{family}", {"rows": rows, "folds": folds, "values": values})


_PAGE = ROOT / "docs" / "figures" / "choosing.md"
_SHORT, _RARE = 25, 5
"""Values of a short row, on average at most; rows of a frequent label at least."""
_GOALS = {"p@5": "P@5", "psp@5": "PSP@5, for rare labels"}


def _write_page(values: dict[str, dict[str, dict[str, float]]]) -> None:
    """What to take for each shape of data, as ``docs/choosing.md`` has it."""
    shapes: dict[str, list[str]] = {}
    for name in values:
        facts = next(iter(values[name].values()))
        length = "short" if facts["values a row"] <= _SHORT else "long"
        labels = "most labels rare" if facts["share of rare labels"] > 0.5 else "most labels frequent"
        shapes.setdefault(f"{length} rows, {labels}", []).append(name)
    lines = ["| data | to gain in | take | gains over `DiSMEC()` | CPU beside it | loses at most |"]
    lines.append("|---|---|---|---:|---:|---:|")
    for shape, names in sorted(shapes.items()):
        for metric, goal in _GOALS.items():
            settings = list(values[names[0]])
            table = np.array([[values[name][one][metric] for name in names] for one in settings])
            lost = table.max(0) - table
            best = int(lost.mean(1).argmin())
            seconds = np.array([[values[name][one]["CPU-s"] for name in names] for one in settings]).sum(1)
            gains = table[best] - table[0]
            lines.append(
                f"| {shape} ({'; '.join(names)}) | {goal} | `{settings[best]}` | {gains.mean():+.1f} "
                f"({gains.min():+.1f} to {gains.max():+.1f}) | {seconds[best] / seconds[0]:.1f} × | "
                f"{lost[best].max():.1f} |"
            )
    _PAGE.write_text("\n".join(lines) + "\n")
    print(_PAGE.read_text())


def _shape(X: Any, Y: Any) -> dict[str, float]:
    counts = np.diff(Y.tocsc().indptr)
    rare = float(np.mean(counts[counts > 0] < _RARE))
    return {"values a row": X.nnz / X.shape[0], "share of rare labels": rare, "labels": float(np.sum(counts > 0))}


def _read(path: Any) -> dict[tuple[str, ...], dict[str, float]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {tuple(entry["key"]): entry["values"] for entry in map(json.loads, lines)}


def _judge(
    name: str,
    load: Callable[[int], tuple[Any, Any] | None],
    family: str,
    settings: dict[str, Setting],
    rows: int,
    folds: int,
    kept: dict[tuple[str, ...], dict[str, float]],
    path: Any,
) -> dict[str, dict[str, float]] | None:
    """Each setting's metrics on a data set, means over the fifths that are judged."""
    data: tuple[Any, Any] | None = None
    for fold in range(folds):
        missing = [setting for setting in settings if (name, family, setting, str(fold)) not in kept]
        if not missing:
            continue
        data = data or load(rows)
        if data is None:
            return None
        for setting, values in _fold(*data, fold, {one: settings[one] for one in missing}):
            kept[name, family, setting, str(fold)] = values
            with path.open("a") as file:
                file.write(json.dumps({"key": [name, family, setting, str(fold)], "values": values}) + "\n")
            print(
                f"  {name:22} {setting:32} " + "  ".join(f"{m} {values[m]:5.2f}" for m in (*METRICS, "CPU-s")),
                flush=True,
            )
    parts = {one: [kept[name, family, one, str(fold)] for fold in range(folds)] for one in settings}
    return {one: {m: float(np.mean([part[m] for part in found])) for m in found[0]} for one, found in parts.items()}


def _fold(X: Any, Y: Any, fold: int, settings: dict[str, Setting]) -> Iterator[tuple[str, dict[str, float]]]:
    judged = np.random.default_rng(1).permutation(X.shape[0]) % _FIFTHS == fold
    Y = sparse.csr_array(Y)
    seen = np.flatnonzero(np.diff(Y[~judged].tocsc().indptr))
    Y = sparse.csr_array(Y[:, seen])
    propensity = tw.JainPropensity().fit(Y[~judged])
    fitted: dict[str, tuple[Any, float]] = {}
    shape = _shape(X[~judged], Y[~judged])
    for name, setting in settings.items():
        made = setting.make()
        key = repr(made)
        if key not in fitted:
            fitted.clear()
            with measured() as cost:
                model = made.fit(X[~judged], Y[~judged])
            fitted[key] = (model, cost.cpu_seconds)
        model, seconds = fitted[key]
        for attribute, value in setting.changed.items():
            setattr(model, attribute, value)
        top = model.predict_topk(X[judged], 5)
        result = tw.evaluate(Y[judged], top, METRICS, propensity=propensity, confidence=None)
        yield name, {metric: result[metric].value for metric in METRICS} | {"CPU-s": seconds} | shape


def _print(family: str, settings: list[str], values: dict[str, dict[str, dict[str, float]]]) -> None:
    for metric in METRICS:
        table = np.array([[values[name][setting][metric] for name in values] for setting in settings])
        ranks = np.mean([rankdata(-column, method="average") for column in table.T], axis=0)
        lost = table.max(0) - table
        rows = [
            [
                setting,
                *(f"{value:.1f}" for value in line),
                f"{rank:.1f}",
                f"{line_lost.mean():.2f}",
                f"{line_lost.max():.2f}",
            ]
            for setting, line, rank, line_lost in zip(settings, table, ranks, lost, strict=True)
        ]
        header = [metric, *values, "mean rank", "mean loss", "worst loss"]
        print(Table(f"{family}: {metric}, by cross-validation inside training rows", header, rows), "\n")
