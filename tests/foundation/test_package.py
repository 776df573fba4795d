import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from contracts import ModelContract

import tailwise
from tailwise.base import XMCModel

_ROOT = Path(__file__).resolve().parents[2]


def test_import_is_light():
    code = "import sys, tailwise; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "scipy", "sklearn", "numba", "torch", "pyarrow", "matplotlib", "typer", "rich", "faiss"}
    assert heavy.isdisjoint(loaded)


@pytest.mark.parametrize("name", tailwise.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(tailwise, name)
    assert name in dir(tailwise)
    if name != "__version__":
        assert value.__doc__ and value.__doc__.strip()


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = tailwise.Nothing


def test_every_public_model_keeps_the_contract():
    models = {
        name
        for name in tailwise.__all__
        if isinstance(getattr(tailwise, name), type) and issubclass(getattr(tailwise, name), XMCModel)
    } - {"XMCModel"}
    tested = set()
    for path in (_ROOT / "tests").glob("*/test_*.py"):
        if "(ModelContract)" not in path.read_text():
            continue
        spec = importlib.util.spec_from_file_location(f"contract_of_{path.parent.name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        suites = [
            value for value in vars(module).values() if isinstance(value, type) and issubclass(value, ModelContract)
        ]
        tested |= {type(suite().make()).__name__ for suite in suites if suite is not ModelContract}
    assert models - tested == set(), "each public model needs a suite of its own"


def test_the_version_is_written_once_and_stands_in_the_changelog():
    assert 'version = { attr = "tailwise.__version__" }' in (_ROOT / "pyproject.toml").read_text()
    assert f"## [{tailwise.__version__}]" in (_ROOT / "CHANGELOG.md").read_text()


def _calls(path):
    """The names of what a module calls: ``print``, ``sys.stderr.write``, …"""
    return {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}


def test_the_library_logs_and_never_prints():
    package = _ROOT / "src" / "tailwise"
    calls = {
        str(path.relative_to(package)): _calls(path)
        for path in package.rglob("*.py")
        if "cli" not in path.relative_to(package).parts
    }
    assert {name for name, called in calls.items() if "print" in called} == set(), "logging and warnings tell"
    # A bar that is drawn over and over has no place in a log.
    assert {name for name, called in calls.items() if "sys.stderr.write" in called} <= {"notebook.py"}
    assert not any("sys.stdout.write" in called for called in calls.values())
