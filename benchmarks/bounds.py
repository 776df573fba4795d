"""Could one-vs-rest skip labels that cannot be among a row's best five, by bounds on clusters of labels?

On EURLex-4K with DiSMEC: labels are clustered by their weights (k-means of 50 directions), a cluster's bound for a row
is the score of the largest weight that any of its labels has for each feature, and a cluster is skipped whose bound is
below the fifth best score of the row. That is the most that an exact search could skip: it would have to know the fifth
best score first. "to score" counts a bound as one label, and then the labels of clusters that are left.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from benchmarks.harness import save_results
from tailwise.display import Table

QUESTION = "Could one-vs-rest skip labels that cannot be among a row's best, by bounds on clusters of labels?"
_CLUSTERS = (64, 256, 1024)
_ROWS = 500
_BEST = 5


def main(arguments: list[str]) -> None:
    import tailwise as tw

    data = tw.load_dataset("eurlex-4k")
    model = tw.DiSMEC(random_state=0).fit(data.X_train, data.Y_train)
    ranked = np.isfinite(model.bias_)
    weights, bias = model.weights_.toarray()[:, ranked], model.bias_[ranked]
    rows = normalize(data.X_test[:_ROWS])
    scores = rows @ weights + bias
    fifth = -np.sort(-scores, axis=1)[:, _BEST - 1 : _BEST]
    places = normalize(TruncatedSVD(50, random_state=0).fit_transform(weights.T))
    lines = []
    for n_clusters in _CLUSTERS:
        cluster = KMeans(n_clusters, n_init=1, random_state=0).fit_predict(places)
        sizes = np.bincount(cluster, minlength=n_clusters)
        order = np.argsort(cluster, kind="stable")
        starts = np.append(0, np.cumsum(sizes)[:-1])
        largest = np.maximum.reduceat(weights[:, order], starts, axis=1)
        left = rows @ largest + np.maximum.reduceat(bias[order], starts) >= fifth
        to_score = (n_clusters + (left @ sizes).mean()) / bias.size
        lines.append([n_clusters, 100 * left.mean(), 100 * (left @ sizes).mean() / bias.size, 100 * to_score])
    header = ["clusters", "left, %", "their labels, %", "to score, % of labels"]
    print(Table("", header, [[f"{value:,.0f}" for value in line] for line in lines]).markdown())
    save_results("bounds", {"header": header, "lines": lines})
