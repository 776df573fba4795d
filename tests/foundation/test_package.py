import subprocess
import sys
from pathlib import Path

import pytest

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
    texts = [path.read_text() for path in (_ROOT / "tests").glob("*/test_*.py")]
    contracts = "".join(text for text in texts if "(ModelContract)" in text)
    missing = [name for name in sorted(models) if f"{name}(" not in contracts]
    assert not missing, f"no contract test for {missing}"


def test_the_version_is_written_once_more_only_in_pyproject():
    assert f'version = "{tailwise.__version__}"' in (_ROOT / "pyproject.toml").read_text()
