"""How many labels a text gets by the command: the ``k`` best, or as many as it calls for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tailwise.text import Suggestions, Tagger

_K = 5
K = Annotated[
    int | None,
    typer.Option("-k", min=1, help=f"How many labels a row gets: {_K}, unless --assign chooses.", show_default=False),
]
Assign = Annotated[
    str | None,
    typer.Option(
        "--assign",
        metavar="UTILITY",
        help="As many labels as a row calls for: f1, f0.5, jaccard, 'precision>=0.8' or 'recall>=0.8', as expected.",
    ),
]
Missing = Annotated[
    bool,
    typer.Option(
        "--missing", help="With --assign: what counts is that a label is right, not that somebody would record it."
    ),
]


def suggester(
    tagger: Tagger, k: int | None, assign: str | None, missing: bool, **how: Any
) -> Callable[[Any], Suggestions]:
    """What gives texts their labels; ``how`` goes on to :meth:`Tagger.suggest` or :meth:`Tagger.assign`."""
    from tailwise.assigning import UTILITY
    from tailwise.errors import InvalidInput

    if assign is None:
        if missing:
            raise InvalidInput("--missing is for sets of labels; pass --assign too, such as --assign f1")
        return lambda texts: tagger.suggest(texts, _K if k is None else k, **how)
    if k is not None:
        raise InvalidInput(f"-k {k} and --assign {assign} exclude each other; pass one")
    UTILITY.check("--assign", assign)
    if not tagger.scores_are_probabilities:
        raise InvalidInput(
            f"--assign {assign} needs probabilities, and the scores of this model are none; train it without "
            "--no-calibrate, on 200 rows or more"
        )
    return lambda texts: tagger.assign(texts, assign, missing=missing, **how)
