"""What the documentation is made of: docstrings as the site shows them, formulas, the walks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALKS = sorted((ROOT / "docs" / "walks").glob("*.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two pages of the site, built as the whole is: one with formulas, one from docstrings."""
    for needed in ("sphinx", "myst_nb", "pydata_sphinx_theme"):
        pytest.importorskip(needed)
    from sphinx.application import Sphinx

    source = tmp_path_factory.mktemp("docs")
    (source / "index.md").write_text("# Index\n\n```{toctree}\nproxml\nmodels\n```\n")
    formula = (ROOT / "docs" / "methods" / "proxml.md").read_text(encoding="utf-8").split("\nPositives")[0]
    (source / "proxml.md").write_text(formula + "\n", encoding="utf-8")
    page = "# Models\n\n```{eval-rst}\n.. automodule:: tailwise.linear\n   :members: DiSMEC, PWDiSMEC\n```\n"
    (source / "models.md").write_text(page)
    overrides = {"html_static_path": [], "html_css_files": []}
    out = source / "out"
    app = Sphinx(source, ROOT / "docs", out, source / "trees", "html", overrides, status=None, warningiserror=True)
    app.build()
    return {path.stem: path.read_text(encoding="utf-8") for path in out.glob("*.html")}


def test_no_role_is_left_as_it_was_written(site):
    assert "DiSMEC" in site["models"]
    assert not re.findall(r":(?:class|func|meth|mod|attr|data):", site["models"])


def test_no_parameter_gets_the_type_of_another(site):
    plain = re.sub("<(?!/?strong).*?>", "", site["models"])
    entries = re.findall(r"<strong>(\w+)</strong>(?: \((.*?)\) –)?", plain)
    kinds = {name: {kind for other, kind in entries if other == name} for name, _ in entries}
    # Those that are as in another model are listed without a type of their own.
    assert kinds["normalize"] == {"bool", ""} and {"float or None", ""} <= kinds["C"]


def test_formulas_are_mathml(site):
    assert site["proxml"].count("<math") == 1 and "<munder" in site["proxml"] and "$$" not in site["proxml"]


def test_nothing_is_fetched(site):
    addresses = set(re.findall(r"""(?:src|href)=["'](https?:[^"']+)""", "".join(site.values())))
    assert addresses == set()


def test_no_page_shows_a_formula_as_code():
    for page in (ROOT / "docs").rglob("*.md"):
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        assert not [block for language, block in blocks if not language and re.search(r"[Σ½λ²]|min_w", block)], page


@pytest.mark.parametrize("script", WALKS, ids=lambda path: path.stem)
def test_walks(script, tmp_path):
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
