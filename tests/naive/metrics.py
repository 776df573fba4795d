"""Plain twins of the metrics, on lists: ``truth`` and ``predicted`` hold one list of labels a row."""

from math import log2, nan

from naive.sparse import MASK, mix_bits


def row_metric(name, truth, predicted, k, *, p=None, slice_=None, relevant=None, normalize=True):
    """Any row metric by its plain name; ``p`` makes it propensity-scored, ``slice_`` is a set of labels."""
    scored, sliced = p is not None, slice_ is not None
    above = below = 0.0
    for i, (true, ranking) in enumerate(zip(truth, predicted, strict=True)):
        true = [l for l in true if not sliced or l in slice_]
        ranking = ranking[:k]
        inside = [l for l in ranking if not sliced or l in slice_]
        gain = {l: (1 / p[l] if scored else 1.0) for l in true}
        best = sorted(gain.values(), reverse=True)[:k]
        hits = [(j, gain[l]) for j, l in enumerate(ranking, 1) if l in gain]
        n_relevant = relevant[i] if relevant is not None and scored and not sliced else len(true)
        if name == "hamming":
            above += sum(gain.values()) - 2 * sum(g for _, g in hits) + len(inside)
            below += 1
            continue
        if name in ("hit", "mrr_first"):
            above += (1 if name == "hit" else 1 / hits[0][0]) if hits else 0
            below += 1 if not sliced else bool(true)
            continue
        weight = {
            "p": lambda j: 1.0,
            "ndcg": lambda j: 1 / log2(j + 1),
            "dcg": lambda j: 1 / log2(j + 1),
            "recall": lambda j: 1.0,
            "f1": lambda j: 2.0,
            "mrr": lambda j: 1 / j,
            "adg": lambda j: 1 / log2(j + 1),
        }[name]
        earned = sum(weight(j) * g for j, g in hits)
        possible = sum(weight(j) * g for j, g in enumerate(best, 1))
        if sliced and name in ("recall", "f1", "mrr", "adg"):
            above += earned
            below += sum(gain.values()) + (len(inside) if name == "f1" else 0)
            continue
        divisor = {
            "p": k,
            "ndcg": sum(1 / log2(j + 1) for j in range(1, min(k, int(n_relevant)) + 1)),
            "dcg": sum(1 / log2(j + 1) for j in range(1, k + 1)),
            "recall": n_relevant,
            "mrr": n_relevant,
            "adg": n_relevant,
            "f1": len(inside) + n_relevant,
        }[name]
        above += earned / divisor if divisor else 0
        if scored and normalize:
            below += possible / divisor if divisor else 0
        else:
            below += 1 if not (sliced and name == "ndcg") else bool(true)
    scale = 1 if name == "hamming" else 100
    return scale * above / below if below else nan


def label_counts(truth, predicted, k, n_labels):
    counts = [[0, 0, 0] for _ in range(n_labels)]
    for true, ranking in zip(truth, predicted, strict=True):
        for l in ranking[:k]:
            counts[l][0] += l in true
            counts[l][1] += 1
        for l in true:
            counts[l][2] += 1
    return counts


def label_metric(name, truth, predicted, k, n_labels, slice_=None):
    above = below = 0.0
    for l, (correct, shown, true) in enumerate(label_counts(truth, predicted, k, n_labels)):
        if slice_ is not None and l not in slice_:
            continue
        if name == "coverage":
            above, below = above + (correct > 0), below + (true > 0)
            continue
        below += 1
        if name == "predicted":
            above += shown > 0
        elif name == "macro_p" and shown:
            above += correct / shown
        elif name == "macro_recall" and true:
            above += correct / true
        elif name == "macro_f1" and shown + true:
            above += 2 * correct / (shown + true)
    return 100 * above / below if below else nan


def mark_hits(truth, labels, hits):
    """``truth`` a Csr: which predicted labels are true; the first row that names a label twice, or -1."""
    repeated = []
    for i, row in enumerate(labels):
        true = truth.indices[truth.indptr[i] : truth.indptr[i + 1]].tolist()
        hits[i] = [label in true for label in row]
        named = [label for label in row.tolist() if label >= 0]
        repeated += [i] * (len(set(named)) < len(named))
    return repeated[0] if repeated else -1


def sum_values(truth, values, sums):
    for i in range(sums.size):
        sums[i] = sum(values[l] for l in truth.indices[truth.indptr[i] : truth.indptr[i + 1]])


def best_values(truth, values, best):
    for i, row in enumerate(best):
        own = sorted((values[l] for l in truth.indices[truth.indptr[i] : truth.indptr[i + 1]]), reverse=True)
        row[:] = [*own, *[0.0] * row.size][: row.size]


def add_resampled(columns, first_row, seed, weight_of_byte, sums, first_replicate):
    """A row's byte is that of its place in a group of eight; a group's bits depend on the replicate and its number."""
    for b in range(len(sums)):
        stream = mix_bits(int(seed) + (first_replicate + b + 1) * 0x9E3779B97F4A7C15 & MASK)
        for i in range(len(columns)):
            group, part = divmod(first_row + i, 8)
            bits = mix_bits(stream + group * 0x9E3779B97F4A7C15 & MASK)
            sums[b] += weight_of_byte[bits >> 8 * part & 0xFF] * columns[i]
