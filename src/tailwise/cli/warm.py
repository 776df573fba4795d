"""``tailwise warm``: compile ahead what the first run would wait for."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tailwise.cli import output
from tailwise.models import model_names

_WORDS = ("income duty levy revenue", "sea cod trawler quota", "iron furnace coal mill", "grape vineyard bottle cellar")


def warm(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME…", help=f"Kinds of model, of {', '.join(model_names())}; dismec and parabel."),
    ] = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Compile what training, predicting and judging need, and say where it is kept: for images, CI and the impatient.

    It goes where NUMBA_CACHE_DIR says, else beside the installed package or into the user's cache folder. Code is
    compiled for this kind of processor and for these versions of Python and numba; others compile anew.

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
    with TemporaryDirectory(prefix="tailwise-") as folder:
        for name in names:
            output.say(f"warming {name}")
            _use(name, Path(folder))
    seconds, kept = time.perf_counter() - start, cache_folder()
    if as_json:
        output.emit_json({"models": names, "seconds": seconds, "folder": None if kept is None else str(kept)})
    else:
        output.emit(f"ready after {seconds:.1f} s; compiled code is kept in {kept or 'no folder: none is writable'}")


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

    texts = [f"{_WORDS[i % 4]} {_WORDS[i // 4 % 4]}" for i in range(48)]
    Y, ids = indicator([sorted({str(i % 4), str(i // 4 % 4)}) for i in range(48)])
    tagger = Tagger(make_model(name), features=TextFeatures(min_df=1)).fit(texts, Y, label_ids=ids)
    tagger.save(folder / name)
    loaded = tailwise.load(folder / name)
    for one in (tagger, loaded):
        judge({name: one}, Rows(name, texts, Y, ids, ids), 5).metrics(default_metrics())
    X = sparse.csr_array(tagger.rows(texts), dtype=np.float32)
    write_xmc(folder / "rows.txt", X, Y)
    data = load_dataset(folder / "rows.txt")
    Tagger(make_model(name)).fit(data.X_train, data.Y_train).suggest(data.X_train)
