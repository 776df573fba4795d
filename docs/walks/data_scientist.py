"""A data scientist's first hour: scikit-learn habits, nothing but the installed package.

Runs in an empty folder: ``python data_scientist.py``. Every stumble would be an exception here.
"""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import classification_report
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

import tailwise as tw

TEXTS = [
    "income tax law",
    "tax of firms",
    "deep sea fish",
    "fishing quotas at sea",
    "law of the sea",
    "cod and herring",
] * 8
LABELS = [["tax", "law"], ["tax"], ["fish", "sea"], ["fish", "law"], ["law", "sea"], ["fish"]] * 8


def refused(ask: object, hint: str) -> None:
    """An error is expected, and that it says what to do."""
    try:
        ask()  # type: ignore[operator]
    except tw.TailwiseError as error:
        assert hint in str(error), error
        print("  as it should:", error)
    else:
        raise AssertionError(f"nothing was refused; expected a hint at {hint!r}")


def main() -> None:
    """The walk."""
    print("1. Texts straight into a model: told where texts go.")
    refused(lambda: tw.DiSMEC().fit(TEXTS, LABELS), "Tagger")

    print("2. A pipeline with lists of labels, searched without a scorer and with a ranking metric.")
    pipeline = make_pipeline(TfidfVectorizer(), tw.DiSMEC(random_state=0))
    assert GridSearchCV(pipeline, {"dismec__C": [0.1, 1.0]}, cv=2).fit(TEXTS, LABELS).best_score_ > 0.5
    search = GridSearchCV(pipeline, {"dismec__C": [0.1, 1.0]}, cv=2, scoring=tw.metric_scorer("p@1"))
    print("  best:", search.fit(TEXTS, LABELS).best_params_)
    assert tw.predict_topk(search, TEXTS, k=2).labels.shape == (48, 2)

    print("3. predict gives sets that a classification report makes sense of.")
    binarizer = MultiLabelBinarizer(sparse_output=True)
    Y = binarizer.fit_transform(LABELS)
    predicted = search.predict(TEXTS)
    report = classification_report(Y, predicted, target_names=binarizer.classes_, output_dict=True, zero_division=0)
    assert report["micro avg"]["f1-score"] > 0.9
    assert binarizer.inverse_transform(predicted)[0] == ("law", "tax")

    print("4. Probabilities, thresholds, weights, coefficients.")
    X = TfidfVectorizer().fit_transform(TEXTS)
    model = tw.DiSMEC(loss="logistic").fit(X, Y, sample_weight=np.linspace(1, 2, X.shape[0]))
    assert model.predict_proba(X, dense=True).shape == Y.shape
    assert model.predict(X, assign="precision>=0.9").nnz <= model.predict(X, threshold=0.01).nnz
    assert model.coef_.shape == (Y.shape[1], X.shape[1]) and model.intercept_.shape == (Y.shape[1],)
    refused(lambda: tw.DiSMEC().fit(X, Y).predict_proba(X), "Calibrated")
    refused(lambda: model.predict_topk(_one_row(X)), "X[[i]]")

    print("5. A ranking is evaluated; a set is not mistaken for one.")
    refused(lambda: tw.evaluate(Y, model.predict(X), "p@1"), "predict_topk")
    print(tw.evaluate(Y, model.predict_topk(X), ["p@1", "recall@5"]))

    print("6. Texts in, names out.")
    tagger = tw.Tagger(features=tw.TextFeatures(min_df=1)).fit(TEXTS, LABELS)
    print(tagger.suggest(["quotas for cod"], k=2))
    assert (cross_val_score(tagger, TEXTS, LABELS, cv=2) > 0.5).all()


def _one_row(X: object) -> object:
    """What ``X[i]`` of a sparse array is: a row with one dimension."""
    from scipy import sparse

    return sparse.csr_array(X)[0]


if __name__ == "__main__":
    main()
