"""The whole site, built as `make docs` builds it but for running the notebook."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site."""
    for needed in ("sphinx", "myst_nb", "pydata_sphinx_theme"):
        pytest.importorskip(needed)
    from sphinx.application import Sphinx

    folder = tmp_path_factory.mktemp("docs")
    out = folder / "site" / "dev"
    overrides = {"nb_execution_mode": "off", "docs_version": "dev"}
    docs = ROOT / "docs"
    app = Sphinx(docs, docs, out, folder / "trees", "html", overrides, status=None, warningiserror=True)
    app.build()
    return out
