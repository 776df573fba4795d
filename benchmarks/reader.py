"""How fast is the reader of the Extreme Classification Repository's format beside others, on EURLex-4K's training file?

Everyone parses the same 49 MB on one thread. scikit-learn reads the format as svmlight, without the header line. The
figure to look at is MB a CPU-second: the project's own floor is 100. napkinxc is a compiled C++ reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Contender, measure

QUESTION = "How fast is the reader beside scikit-learn's load_svmlight_file(multilabel=True)?"
REPEATS = 5
THREADS = 1


def contenders() -> list[Contender]:
    path = str(_training_file())
    return [
        Contender("tailwise read_xmc", "read_ours", arguments={"path": path}),
        Contender("scikit-learn load_svmlight_file", "read_sklearn", arguments={"path": path}),
        Contender("napkinxc load_libsvm_file", "read_napkinxc", "peers", ("napkinxc",), {"path": path}),
    ]


def read_ours(path: str) -> dict[str, Any]:
    from tailwise.data import read_xmc

    _warm_up(read_xmc)
    with measure() as m:
        X, Y = read_xmc(path, n_jobs=1)
    return _figures(m, path, X, Y.nnz)


def read_sklearn(path: str) -> dict[str, Any]:
    from sklearn.datasets import load_svmlight_file

    body = Path(path).with_suffix(".body")
    if not body.exists():
        body.write_bytes(Path(path).read_bytes().partition(b"\n")[2])
    with measure() as m:
        X, labels = load_svmlight_file(str(body), multilabel=True, zero_based=True, n_features=5000, dtype="float32")
    return _figures(m, path, X, sum(map(len, labels)))


def read_napkinxc(path: str) -> dict[str, Any]:
    from napkinxc.datasets import load_libsvm_file

    with measure() as m:
        X, labels = load_libsvm_file(path, labels_format="list")
    return _figures(m, path, X, sum(map(len, labels)))


def _figures(m: Any, path: str, X: Any, n_labels: int) -> dict[str, Any]:
    megabytes = Path(path).stat().st_size / 1e6
    return {"read": m, "MB/CPU-s": megabytes / m.cpu, "non-zeros": int(X.nnz), "labels read": int(n_labels)}


def _training_file() -> Path:
    """The fetched file, linked under results so that every environment finds it."""
    from tailwise.data import fetch

    link = RESULTS / "data" / "eurlex-4k.txt"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(fetch("eurlex-4k") / "train.txt")
    return link


def _warm_up(read: Any) -> None:
    """Compile outside the measurement."""
    tiny = RESULTS / "data" / "tiny.txt"
    tiny.write_text("1 2 2\n0,1 0:0.5 1:1e-3\n")
    read(tiny, n_jobs=1)
