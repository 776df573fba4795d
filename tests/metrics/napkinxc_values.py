"""What napkinxc computes: reads {truth, predicted, inverse} as JSON from standard input, prints values as JSON."""

import json
import sys


def napkinxc_values(truth, predicted, inverse, k=5):
    import numpy as np
    from napkinxc import metrics as peer

    inverse = np.asarray(inverse)
    at_k = {
        "p": peer.precision_at_k(truth, predicted, k=k),
        "ndcg": peer.ndcg_at_k(truth, predicted, k=k),
        "recall": peer.recall_at_k(truth, predicted, k=k),
        "hit": peer.abandonment_at_k(truth, predicted, k=k),
        "coverage": peer.coverage_at_k(truth, predicted, k=k),
        "psp": peer.psprecision_at_k(truth, predicted, inverse, k=k),
        "psndcg": peer.psndcg_at_k(truth, predicted, inverse, k=k),
        "psrecall": peer.psrecall_at_k(truth, predicted, inverse, k=k),
        "macro_p": peer.macro_precision_at_k(truth, predicted, k=k),
        "macro_recall": peer.macro_recall_at_k(truth, predicted, k=k),
        "macro_f1": peer.macro_f1_measure_at_k(truth, predicted, k=k),
    }
    values = {f"{name}@{i + 1}": 100 * float(v) for name, column in at_k.items() for i, v in enumerate(column)}
    values["hamming"] = float(peer.hamming_loss(truth, predicted))
    values[f"f1@{k}"] = 100 * float(peer.f1_measure(truth, predicted, average="samples"))
    values[f"f1@{k}:all"] = 100 * float(peer.f1_measure(truth, predicted, average="micro"))
    return values


if __name__ == "__main__":
    json.dump(napkinxc_values(**json.load(sys.stdin)), sys.stdout)
