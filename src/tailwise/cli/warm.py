"""``tailwise warm``: compile ahead what the first run would wait for."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tailwise.cli import output
from tailwise.models import model_names

_WORDS = ("income duty levy revenue", "sea cod trawler quota", "iron furnace coal mill", "grape vineyard bottle cellar")
_RECORDS, _RARE = 240, 120
"""As many records as are calibrated on, and more labels than a leaf of a tree has."""


def warm(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME…", help=f"Kinds of model, of {', '.join(model_names())}; dismec and parabel."),
    ] = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Compile what training, predicting and judging need, and say what it was and where it is kept.

    For images, CI and the impatient. It goes where NUMBA_CACHE_DIR says, else beside the installed package or into the
    user's cache folder, else into a folder for temporary files. Code is compiled for this kind of processor and for
    these versions of Python, numba and tailwise; others compile anew.

    Examples:

    tailwise warm

    tailwise warm dismec bonsai
    """
    output.set_up(quiet, jobs)
    from tailwise.kernels.cache import cache_folder
    from tailwise.models import model_class

    names = models or ["dismec", "parabel"]
    for name in names:
        model_class(name)
    start = time.perf_counter()
    with TemporaryDirectory(prefix="tailwise-") as folder, _hearing() as compiled:
        for name in names:
            output.say(f"warming {name}")
            _use(name, Path(folder))
    seconds, kept = time.perf_counter() - start, cache_folder()
    if as_json:
        facts = {"models": names, "seconds": seconds, "folder": None if kept is None else str(kept)}
        output.emit_json(facts | {"compiled": sorted(compiled)})
    else:
        what = f"{len(compiled)} functions were compiled" if compiled else "nothing was left to compile"
        where = kept or "no folder: none is writable"
        output.emit(f"ready after {seconds:.1f} s; {what}; compiled code is kept in {where}")


@contextmanager
def _hearing() -> Iterator[list[str]]:
    """The names of functions that are compiled meanwhile."""
    names: list[str] = []
    logger, listener = logging.getLogger("tailwise.kernels"), logging.Handler()

    def hear(record: logging.LogRecord) -> bool:
        if getattr(record, "compiling", None) is False:
            names.append(str(record.args[0] if isinstance(record.args, tuple) else ""))
        return False

    listener.addFilter(hear)
    logger.addHandler(listener)
    try:
        yield names
    finally:
        logger.removeHandler(listener)


def _use(name: str, folder: Path) -> None:
    """What a user does with a model, in little: from texts and from rows, in memory and from a folder."""
    import numpy as np
    from scipy import sparse

    import tailwise
    from tailwise.data import Rows, load_dataset, write_xmc
    from tailwise.judging import default_metrics, judge
    from tailwise.label_lists import indicator
    from tailwise.models import make_model
    from tailwise.text import Tagger, TextFeatures

    texts = [f"{_WORDS[i % 4]} {_WORDS[i // 4 % 4]} cask{i % _RARE}" for i in range(_RECORDS)]
    Y, ids = indicator([sorted({str(i % 4), str(i // 4 % 4), f"rare {i % _RARE}"}) for i in range(_RECORDS)])
    tagger = Tagger(make_model(name), features=TextFeatures(min_df=1)).fit(texts, Y, label_ids=ids)
    tagger.save(folder / name)
    loaded = tailwise.load(folder / name)
    for one in (tagger, loaded):
        judge({name: one}, Rows(name, texts, Y, ids, ids), 5).metrics(default_metrics())
    X = sparse.csr_array(tagger.rows(texts), dtype=np.float32)
    write_xmc(folder / "rows.txt", X, Y)
    data = load_dataset(folder / "rows.txt")
    Tagger(make_model(name)).fit(data.X_train, data.Y_train).suggest(data.X_train)
