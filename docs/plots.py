"""Draw the pictures of the documentation: ``python docs/plots.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import tailwise as tw
from tailwise.tail import plot_classifier_norms, trade_off_curve
from tailwise.tail.wrapper import as_probabilities

IMAGES = Path(__file__).parent / "images"


def save(figure: plt.Figure, name: str) -> None:
    """Write one picture, the same bytes each time."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, transparent=True)
    plt.close(figure)


def propensity() -> None:
    """Propensity against label frequency for the three presets."""
    counts = np.unique(np.logspace(0, 4, 60).astype(int))
    figure, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for family in ("wikipedia", "amazon", "other"):
        model = tw.JainPropensity.preset(family)
        c = (np.log(100_000) - 1) * (model.b + 1) ** model.a
        ax.plot(counts, 1 / (1 + c * (counts + model.b) ** -model.a), label=f"{family}: A = {model.a}, B = {model.b}")
    ax.set(xscale="log", xlabel="training rows of a label (of 100,000)", ylabel="propensity", ylim=(0, 1))
    ax.legend()
    save(figure, "propensity")


def unbiased() -> None:
    """The plain and the propensity-scored estimate of precision over draws of missing labels, beside the truth."""
    data = tw.make_longtail(n_samples=4000, n_features=2000, n_labels=300, random_state=0)
    top = tw.Centroid().fit(data.X_train, data.Y_train).predict_topk(data.X_test, 5)
    complete = data.Y_test_complete
    rows = np.arange(complete.shape[0])[:, None]
    truth = 100 * complete.toarray()[rows, top.labels].mean()
    plain, scored = [], []
    for seed in range(100):
        observed = tw.drop_labels(complete, data.propensity, random_state=seed).toarray()
        hits = observed[rows, top.labels]
        plain.append(100 * hits.mean())
        scored.append(100 * (hits / data.propensity[top.labels]).mean())
    figure, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    ax.hist([plain, scored], bins=30, label=["plain P@5", "propensity-scored P@5"])
    ax.axvline(truth, color="black", linestyle="--", label="true P@5 on complete labels")
    ax.set(xlabel="estimate (percent)", ylabel="draws of missing labels")
    ax.legend()
    save(figure, "unbiased")


def tradeoff() -> None:
    """The curve between P@1 and PSP@1 of DiSMEC on EURLex-4K's test rows."""
    data = tw.load_dataset("eurlex-4k")
    model = tw.DiSMEC().fit(data.X_train, data.Y_train)
    top = model.predict_topk(data.X_test, 50)
    inverse = tw.JainPropensity().fit(data.Y_train).propensity_
    curve = trade_off_curve(top, as_probabilities(top.scores, model), data.Y_test, inverse)
    ax = curve.plot()
    save(ax.figure, "tradeoff")


def classifier_norms() -> None:
    """Weight norm against label frequency on EURLex-4K: plain, weighted by propensity, and with an augmented tail."""
    data = tw.load_dataset("eurlex-4k")
    models = {
        "DiSMEC": tw.DiSMEC(),
        "PWDiSMEC": tw.PWDiSMEC(),
        "TailAugmented(DiSMEC)": tw.TailAugmented(tw.DiSMEC(), random_state=0),
    }
    for model in models.values():
        model.fit(data.X_train, data.Y_train)
    save(plot_classifier_norms(models).figure, "classifier-norms")


if __name__ == "__main__":
    plt.switch_backend("svg")
    plt.rcParams["svg.hashsalt"] = "tailwise"
    propensity()
    unbiased()
    tradeoff()
    classifier_norms()
