"""What the words of a report mean, for a reader who meets them there for the first time."""

from __future__ import annotations

from tailwise.metrics.slices import COUNT_THRESHOLDS
from tailwise.pages.page import tags

_FEW, _MANY = COUNT_THRESHOLDS

WORDS = {
    "p@k": "Precision: how many of the first k labels of a row are right, on average.",
    "recall@k": "How many of a row's labels are among the first k, on average.",
    "f1@k": "The harmonic mean of precision and recall among the first k labels.",
    "ndcg@k": "Like precision, but a right label counts more the higher it stands.",
    "psp@k, psndcg@k": (
        "Propensity-scored: a right label counts one over its propensity, so rare labels, which are missing from the "
        "records more often, count for more; relative to the best possible ranking of the recorded labels."
    ),
    "propensity": "The chance that a label is recorded on a row to which it truly belongs; lower for rare labels.",
    "coverage@k": "How many of the labels that occur in these rows are found at least once among the first k.",
    "head, torso, tail": (
        f"Labels by the number of their training rows: head {_MANY} and more, torso {_FEW} to {_MANY - 1}, tail fewer "
        f"than {_FEW}."
    ),
    "decile": "A tenth of the labels seen in training; the first holds the most frequent ones.",
    "interval": (
        "Had other rows of the same kind been judged, the value would probably lie in it; of 100 such intervals about "
        "95 hold the true value."
    ),
}


def glossary() -> str:
    """Every word with its meaning."""
    return "<dl>" + "".join(f"<dt>{tags(word)}</dt><dd>{tags(said)}</dd>" for word, said in WORDS.items()) + "</dl>"
