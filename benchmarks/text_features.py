"""How fast do texts become TF-IDF rows beside scikit-learn's vectoriser, on 41,333 library records (52 MB of text)?

Both learn the vocabulary and transform the same texts on one thread and give the same matrix.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import ROOT, Contender, measure

QUESTION = "How fast is TextFeatures beside scikit-learn's TfidfVectorizer?"
REPEATS = 3
THREADS = 1


def contenders() -> list[Contender]:
    return [
        Contender("tailwise TextFeatures", "ours"),
        Contender("scikit-learn TfidfVectorizer", "scikit_learn"),
    ]


def ours() -> dict[str, Any]:
    from tailwise import TextFeatures

    texts = _texts()
    TextFeatures(min_df=1).fit_transform(texts[:2])
    with measure() as m:
        X = TextFeatures(n_jobs=1).fit_transform(texts)
    return {"fit and transform": m, "features": X.shape[1], "non-zeros": int(X.nnz)}


def scikit_learn() -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = _texts()
    with measure() as m:
        X = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype="float32").fit_transform(texts)
    return {"fit and transform": m, "features": X.shape[1], "non-zeros": int(X.nnz)}


def _texts() -> list[str]:
    from tailwise.data import read_texts

    path = ROOT.parent / "shared" / "data" / "tibkat-en-train.jsonl.xz"
    if not path.exists():
        raise SystemExit(f"{path} is not there; this benchmark reads the TIBKAT records from it")
    return read_texts(path, "jsonl")
