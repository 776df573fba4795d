"""What the documentation is made of: docstrings as the site shows them, formulas, the walks."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALKS = sorted((ROOT / "docs" / "walks").glob("*.py"))


@pytest.fixture(scope="module")
def pages(site):
    """The HTML of every page, by its path without the suffix."""
    found = {
        str(path.relative_to(site).with_suffix("")): path.read_text(encoding="utf-8") for path in site.rglob("*.html")
    }
    return {name: html for name, html in found.items() if not name.startswith("_static")}


def test_every_page_of_the_sources_is_built(pages):
    sources = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    assert {name for name in sources if not name.startswith("figures")} | {"first-hour"} <= set(pages)
    assert {"spreadsheet", "texts", "scoring", "production", "annif"} <= set(pages), "pages that were missed once"


def test_no_role_is_left_as_it_was_written(pages):
    assert "DiSMEC" in pages["api/models"]
    for name, html in pages.items():
        text = re.sub(r"<[^>]+>", "", html)
        assert not re.findall(r":(?:class|func|meth|mod|attr|data|exc):|(?<!`)``(?!`)\w", text), name


def test_every_documented_parameter_has_the_type_of_its_docstring(pages):
    """No entry of a table of parameters reads `normalize (float or None)` where the docstring groups names."""
    api = "".join(html for name, html in pages.items() if name.startswith("api/"))
    plain = re.sub("<(?!/?strong).*?>", "", api)
    shown = {(name, unescape(kind)) for name, kind in re.findall(r"<strong>(\w+)</strong> \((.*?)\) –", plain)}
    assert len(shown) > 60
    written = set()
    for source in (ROOT / "src" / "tailwise").rglob("*.py"):
        for names, kind in re.findall(r"^    +([\w, ]+) : (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE):
            written |= {(name.strip(), kind.replace("`", "").strip()) for name in names.split(",")}
    alike = {(name, re.sub(r"[^\w]", "", kind)) for name, kind in written}
    assert {(name, kind) for name, kind in shown if (name, re.sub(r"[^\w]", "", kind)) not in alike} == set()


def test_formulas_are_mathml(pages):
    formulas = [name for name, html in pages.items() if "<math" in html]
    assert {"methods/proxml", "missing-labels"} <= set(formulas) and "<munder" in pages["methods/proxml"]
    assert not [name for name, html in pages.items() if "$$" in html or "\\frac" in html]


def test_nothing_is_fetched(pages):
    fetched = re.findall(r"""<(?:script|img|link)[^>]+(?:src|href)=["'](https?:[^"']+)""", "".join(pages.values()))
    assert fetched == []


def test_every_page_leads_to_the_other_versions(site, pages):
    assert (site.parent / "versions.js").read_text() == 'window.tailwiseVersions = ["dev"];\n'
    assert 'url=dev/index.html"' in (site.parent / "index.html").read_text()
    for name, html in pages.items():
        up = "../" * (name.count("/") + 1)
        assert f'data-root="{up}" data-page="{name}.html" data-version="dev"' in html, name
        assert f'<script src="{up}versions.js">' in html


def test_versions_are_listed_from_the_newest(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    from versions import list_versions, versions_in

    for name in ("dev", "0.2", "0.10", "0.9.1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "objects.inv").touch()
    (tmp_path / "jupyter_execute").mkdir()
    assert versions_in(tmp_path) == ["0.10", "0.9.1", "0.2", "dev"]
    list_versions(tmp_path)
    assert 'url=0.10/index.html"' in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.stem)
def test_pictures_have_no_paper(picture):
    """The page shows through them, so that they can be read on dark pages."""
    svg = picture.read_text(encoding="utf-8")
    first = svg[svg.index('id="patch_1"') :]
    assert 'style="fill: none"' in first[: first.index("/>") + 2], "draw it with transparent=True"


def test_no_page_shows_a_formula_as_code():
    for page in (ROOT / "docs").rglob("*.md"):
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        assert not [block for language, block in blocks if not language and re.search(r"[Σ½λ²]|min_w", block)], page


@pytest.mark.parametrize("script", WALKS, ids=lambda path: path.stem)
def test_walks(script, tmp_path):
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
