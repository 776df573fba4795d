"""``tailwise warm`` leaves nothing to compile."""

import json
import subprocess
import sys

from tailwise.serving.demo import concepts, records

_RECORDS, _RARE = 1500, 300
_NEWLY_COMPILED = """
import importlib, pkgutil, sys
from numba.core.dispatcher import Dispatcher
import tailwise.kernels
from tailwise.cli import main

def run(*line):
    sys.argv = ["tailwise", *line]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line

def compiled():
    modules = (importlib.import_module(one.name) for one in pkgutil.walk_packages(*arguments))
    kernels = (value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher))
    return {(kernel.py_func.__name__, kernel_types) for kernel in kernels for kernel_types in kernel.overloads}

arguments = tailwise.kernels.__path__, "tailwise.kernels."
folder, *models = sys.argv[1:]
run("warm", "--quiet", *models)
ready = compiled()
for model in models:
    run("train", f"{folder}/train.jsonl", "-o", f"{folder}/{model}", "-m", model, "--quiet")
    run("suggest", f"{folder}/{model}", "history of wool", "--quiet")
run("compare", *(f"{folder}/{model}" for model in models), f"{folder}/train.jsonl", "--quiet")
print("not ready:", sorted(name for name, _ in compiled() - ready))
"""


def test_after_warm_nothing_is_left_to_compile(tmp_path):
    texts, labels = records(concepts(), _RECORDS)
    rows = [
        json.dumps({"title": title, "abstract": f"cask{i % _RARE}", "labels": [*own, f"rare {i % _RARE}"]})
        for i, (title, own) in enumerate(zip(texts.fields["title"], labels, strict=True))
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(rows), encoding="utf-8")
    command = [sys.executable, "-c", _NEWLY_COMPILED, tmp_path, "dismec", "bonsai", "parabel"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("not ready: []\n"), done.stdout[-500:] + done.stderr[-500:]
