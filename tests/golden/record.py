"""Write ``outputs.npz`` anew: ``python tests/golden/record.py``. Only where a change of results is meant."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, PROCESSOR, SYNTHETIC_ONLY, load_eurlex, make_synthetic

from tailwise.data import is_cached


def record(only: list[str]) -> None:
    path = Path(__file__).with_name("outputs.npz")
    outputs = dict(np.load(path)) if path.exists() else {}
    sets = {"synthetic": make_synthetic()} | ({"eurlex": load_eurlex()} if is_cached("eurlex-4k") else {})
    for case in only or CASES:
        for name, (X, Y, X_new) in sets.items():
            if name == "eurlex" and case in SYNTHETIC_ONLY:
                continue
            top = CASES[case]().fit(X, Y).predict_topk(X_new, 5)
            for part, values in top._asdict().items():
                key = f"{case}/{name}/{part}"
                changed = key in outputs and not np.array_equal(outputs[key], values)
                outputs[key] = values
                if changed:
                    print(f"changed: {key}")
                outputs[f"{case}/processor"] = np.array(PROCESSOR)
    np.savez_compressed(path, **outputs)


if __name__ == "__main__":
    record(sys.argv[1:])
